// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace tpu {

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash_bytes(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.low64, h.high64};
}

void Hasher::add(std::string_view text) {
  add(text.size());
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof(word), text.size() - i));
    add(word);
  }
}

void Hasher::spill(uint64_t word) { spilled_.push_back(word); }

Hash128 Hasher::finish_first(size_t words) const {
  if (words <= size_) return hash_bytes(inline_.data(), words * sizeof(uint64_t));
  std::vector<uint64_t> all(inline_.begin(), inline_.begin() + size_);
  all.insert(all.end(), spilled_.begin(), spilled_.begin() + static_cast<int64_t>(words - size_));
  return hash_bytes(all.data(), all.size() * sizeof(uint64_t));
}

}  // namespace tpu
