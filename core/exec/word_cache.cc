// SPDX-License-Identifier: Apache-2.0
#include "core/exec/word_cache.h"

#include <algorithm>
#include <bit>

namespace tpu::exec {
namespace {

// Any odd constant with well-spread bits serves; this is 2^64 over the golden ratio.
constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;

uint8_t place_of(std::span<const int32_t> words) {
  uint64_t h = words.size();
  for (const int32_t w : words) h = std::rotl((h ^ static_cast<uint32_t>(w)) * kSpread, 29);
  return static_cast<uint8_t>(h * kSpread >> 56);
}

}  // namespace

Result<PJRT_Buffer*> WordCache::get(std::span<const int32_t> words, pjrt::Buffer& own) {
  if (words.size() > kLongest) {
    auto uploaded = upload(words);
    if (!uploaded.ok()) return uploaded.status();
    own = std::move(uploaded).value();
    return own.get();
  }
  Place& place = places_[place_of(words)];
  if (place.buffer && place.size == words.size() &&
      std::equal(words.begin(), words.end(), place.words.begin())) [[likely]] {
    return place.buffer.get();
  }
  auto uploaded = upload(words);
  if (!uploaded.ok()) return uploaded.status();
  place.buffer = std::move(uploaded).value();
  place.size = words.size();
  std::copy(words.begin(), words.end(), place.words.begin());
  return place.buffer.get();
}

void WordCache::clear() {
  for (Place& p : places_) p.buffer.reset();
}

Result<pjrt::Buffer> WordCache::upload(std::span<const int32_t> words) const {
  const int64_t dim = static_cast<int64_t>(words.size());
  return client_.copy_from_host({words.data(), PJRT_Buffer_Type_S32, {&dim, 1}}, device_);
}

}  // namespace tpu::exec
