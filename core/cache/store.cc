// SPDX-License-Identifier: Apache-2.0
#include "core/cache/store.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>

#include "core/cache/directory.h"

namespace tpu::cache {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'P', 'U', 'C', 'A', 'C', 'H', 'E'};
constexpr uint32_t kVersion = 1;
constexpr std::string_view kSuffix = ".entry";
constexpr time_t kAbandonedSeconds = 600;  // a temporary file this old has no writer any more

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t body_bytes;
  uint64_t key[2];
  uint64_t checksum[2];
};
static_assert(sizeof(Header) == 56, "the layout on disk has no padding");

Hash128 checksum(const Hash128& key, std::string_view body) {
  Hasher hasher;
  hasher.add(kVersion);
  hasher.add(key);
  hasher.add(hash_bytes(body));
  return hasher.finish();
}

Header make_header(const Hash128& key, std::string_view body) {
  const Hash128 sum = checksum(key, body);
  return {kMagic, kVersion, sizeof(Header), body.size(), {key.low, key.high}, {sum.low, sum.high}};
}

std::string file_name(const Hash128& key) { return key.hex() + std::string(kSuffix); }

bool is_ours(std::string_view name) {
  return name.ends_with(kSuffix) || name.starts_with(Directory::kTemporaryPrefix);
}

// The body, if `file` is exactly what put() wrote for `key`.
std::optional<std::string> verified_body(const Hash128& key, std::string file) {
  if (file.size() < sizeof(Header)) return std::nullopt;
  const std::string_view body = std::string_view(file).substr(sizeof(Header));
  const Header expected = make_header(key, body);
  if (std::memcmp(file.data(), &expected, sizeof(expected)) != 0) return std::nullopt;
  file.erase(0, sizeof(Header));
  return file;
}

bool older(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

struct Store::Impl {
  const std::string path;
  const uint64_t max_bytes;
  mutable std::mutex lock;  // guards everything below; never held while reading or writing files
  std::shared_ptr<const Directory> directory;  // null: no disk
  StoreStats stats;
  bool warned = false;

  Impl(std::string path, size_t max_bytes) : path(std::move(path)), max_bytes(max_bytes) {}

  std::shared_ptr<const Directory> open() const {
    const std::lock_guard guard(lock);
    return directory;
  }

  void reopen() {
    auto opened = Directory::open(path);
    if (!opened.ok()) {
      warn(opened.status());
      return;
    }
    auto shared = std::make_shared<const Directory>(std::move(opened).value());
    uint64_t bytes = 0;
    for (const Directory::Entry& e : shared->list()) bytes += is_ours(e.name) ? e.bytes : 0;
    const std::lock_guard guard(lock);
    directory = std::move(shared);
    stats.bytes = bytes;
  }

  void warn(const Status& status) {
    {
      const std::lock_guard guard(lock);
      if (std::exchange(warned, true)) return;
    }
    std::fprintf(stderr, "torch_tpu: compiled programs are not kept on disk: %s\n",
                 status.message().c_str());
  }

  void trim(const Directory& d);
};

// Removes what was used longest ago until 80% of the bound is left, and files of dead writers.
void Store::Impl::trim(const Directory& d) {
  const Directory::TryLock only_one(d);
  if (!only_one) return;
  std::vector<Directory::Entry> entries = d.list();
  std::erase_if(entries, [](const Directory::Entry& e) { return !is_ours(e.name); });
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return older(a.last_use, b.last_use); });
  uint64_t total = 0;
  for (const Directory::Entry& e : entries) total += e.bytes;
  uint64_t removed = 0;
  const time_t now = std::time(nullptr);
  for (const Directory::Entry& e : entries) {
    const bool temporary = e.name.starts_with(Directory::kTemporaryPrefix);
    const bool dead = temporary && now - e.last_use.tv_sec > kAbandonedSeconds;
    if (!dead && (temporary || total <= max_bytes / 5 * 4)) continue;
    d.remove(e.name);
    total -= e.bytes;
    removed += !temporary;
  }
  const std::lock_guard guard(lock);
  stats.bytes = total;
  stats.evicted += removed;
}

Store::Store(std::string directory, size_t max_bytes)
    : impl_(std::make_unique<Impl>(std::move(directory), max_bytes)) {
  if (impl_->path.empty()) return;
  impl_->reopen();
}

Store::~Store() = default;

bool Store::enabled() const { return impl_->open() != nullptr; }

std::optional<std::string> Store::get(const Hash128& key) {
  const auto directory = impl_->open();
  if (directory == nullptr) return std::nullopt;
  const std::string name = file_name(key);
  auto file = directory->read(name);
  std::optional<std::string> body;
  const bool absent = !file.ok() && file.status().code() == Code::kNotFound;
  if (file.ok()) body = verified_body(key, std::move(file).value());
  if (body) {
    directory->touch(name);
  } else if (!absent) {
    directory->remove(name);
  }
  const std::lock_guard guard(impl_->lock);
  ++(body ? impl_->stats.hits : impl_->stats.misses);
  if (!body && !absent) ++impl_->stats.damaged;
  return body;
}

void Store::put(const Hash128& key, std::string_view bytes) {
  auto directory = impl_->open();
  if (directory == nullptr || bytes.size() + sizeof(Header) > impl_->max_bytes) return;
  const Header header = make_header(key, bytes);
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof(header));
  Status status = directory->write(file_name(key), head, bytes);
  if (status.code() == Code::kNotFound) {  // someone removed the directory
    impl_->reopen();
    directory = impl_->open();
    status = directory->write(file_name(key), head, bytes);
  }
  bool full = false;
  {
    const std::lock_guard guard(impl_->lock);
    ++(status.ok() ? impl_->stats.writes : impl_->stats.failed_writes);
    if (status.ok()) impl_->stats.bytes += head.size() + bytes.size();
    full = impl_->stats.bytes > impl_->max_bytes;
  }
  if (!status.ok()) impl_->warn(status);
  if (full) impl_->trim(*directory);
}

void Store::remove(const Hash128& key) {
  if (const auto directory = impl_->open()) directory->remove(file_name(key));
}

void Store::clear() {
  const auto directory = impl_->open();
  if (directory == nullptr) return;
  for (const Directory::Entry& e : directory->list()) {
    if (is_ours(e.name)) directory->remove(e.name);
  }
  const std::lock_guard guard(impl_->lock);
  impl_->stats.bytes = 0;
}

StoreStats Store::stats() const {
  const std::lock_guard guard(impl_->lock);
  return impl_->stats;
}

}  // namespace tpu::cache
