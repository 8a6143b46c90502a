// SPDX-License-Identifier: Apache-2.0
// 128-bit content hashes: cache keys, program identity, checksums. XXH3, stable across processes
// and machines, so a hash may name a file.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tpu {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

struct Hash128Hasher {
  size_t operator()(const Hash128& h) const { return static_cast<size_t>(h.low); }
};

Hash128 hash_bytes(const void* data, size_t size);
inline Hash128 hash_bytes(std::string_view bytes) { return hash_bytes(bytes.data(), bytes.size()); }

// Gathers words and hashes them once; no allocation up to kInline words. Not thread-safe.
class Hasher {
 public:
  void add(uint64_t word) {
    if (size_ < kInline) [[likely]] {
      inline_[size_++] = word;
    } else {
      spill(word);
    }
  }
  void add(std::string_view text);
  void add(const Hash128& h) {
    add(h.low);
    add(h.high);
  }
  Hash128 finish() const { return finish_first(size()); }
  // The hash of the first `words` words alone.
  Hash128 finish_first(size_t words) const;
  size_t size() const { return size_ + spilled_.size(); }

 private:
  static constexpr size_t kInline = 120;
  void spill(uint64_t word);
  size_t size_ = 0;
  std::array<uint64_t, kInline> inline_;
  std::vector<uint64_t> spilled_;
};

}  // namespace tpu
