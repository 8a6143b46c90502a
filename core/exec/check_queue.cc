// SPDX-License-Identifier: Apache-2.0
#include "core/exec/check_queue.h"

#include <cstring>

#include "core/exec/host_errors.h"

namespace tpu::exec {
namespace {

constexpr size_t kLooseEntries = 64;   // beyond, results that are there are looked at
constexpr size_t kMostEntries = 1024;  // beyond, the newest failures are not kept

[[noreturn]] void raise(const CheckQueue::Entry& entry, size_t index, int64_t value) {
  TPU_CHECK(index < entry.checks.size(), "a program reports one of its own checks");
  const ir::Check& check = entry.checks[index];
  if (check.kind == ir::CheckKind::kHostCall) throw take_host_error(value);
  std::string text = check.message;
  if (const size_t at = text.find("{}"); at != text.npos) {
    text.replace(at, 2, std::to_string(value));
  }
  if (!entry.origin.empty()) text += fmt::format(" (op {} recorded at {})", entry.op, entry.origin);
  throw Error(check.kind == ir::CheckKind::kIndex ? ErrorKind::kIndex : ErrorKind::kRuntime, text);
}

}  // namespace

bool CheckQueue::passed(const pjrt::Buffer& ready_result) const {
  if (!host_readable_) return false;
  const auto pointer = ready_result.unsafe_pointer();
  int64_t failed = 1;
  if (pointer.ok()) std::memcpy(&failed, pointer.value(), sizeof(failed));
  return failed == 0;
}

void CheckQueue::add(Entry entry) {
  const std::lock_guard guard(lock_);
  if (entries_.size() >= kLooseEntries) drop_passed();
  if (entries_.size() < kMostEntries) entries_.push_back(std::move(entry));
}

std::optional<CheckQueue::Entry> CheckQueue::take_first(bool only_ready) {
  const std::lock_guard guard(lock_);
  if (entries_.empty()) return std::nullopt;
  if (only_ready) {
    const auto event = entries_.front().result.ready_event();
    if (event.ok() && !event->is_ready()) return std::nullopt;
  }
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  return entry;
}

void CheckQueue::raise_first() {
  while (auto entry = take_first(/*only_ready=*/false)) raise_if_failed(*entry);
}

void CheckQueue::raise_first_ready() {
  while (auto entry = take_first(/*only_ready=*/true)) raise_if_failed(*entry);
}

void CheckQueue::raise_if_failed(const Entry& entry) const {
  const Failure failure = read(entry.result);
  if (failure.check > 0) raise(entry, static_cast<size_t>(failure.check - 1), failure.value);
}

CheckQueue::Failure CheckQueue::read(const pjrt::Buffer& result) const {
  int64_t words[2] = {0, 0};
  if (!result.await().ok()) return {};
  if (host_readable_) {
    const auto pointer = result.unsafe_pointer();
    if (pointer.ok()) std::memcpy(words, pointer.value(), sizeof(words));
  } else {
    const auto copied = result.to_host(words, sizeof(words));
    if (!copied.ok() || !copied->await().ok()) return {};
  }
  return {words[0], words[1]};
}

void CheckQueue::drop_passed() {
  std::erase_if(entries_, [&](const Entry& e) {
    const auto event = e.result.ready_event();
    return event.ok() && event->is_ready() && read(e.result).check == 0;
  });
}

}  // namespace tpu::exec
