// SPDX-License-Identifier: Apache-2.0
// Device buffers of recently launched scalars, by content: a repeated `x + 1.0` uploads nothing.
// Owns the buffers; no program may donate them. Not thread-safe: used under the device's queue
// lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/pjrt/client.h"

namespace tpu::exec {

class WordCache {
 public:
  WordCache(const pjrt::Client& client, PJRT_Device* device) : client_(client), device_(device) {}

  // An s32[words.size()] of these words. The cache keeps it until it needs the place, so it is
  // valid until the next call; vectors too long to be kept are put into `own`.
  Result<PJRT_Buffer*> get(std::span<const int32_t> words, pjrt::Buffer& own);
  void clear();

 private:
  static constexpr size_t kPlaces = 256;
  static constexpr size_t kLongest = 16;
  struct Place {
    size_t size = 0;
    std::array<int32_t, kLongest> words;
    pjrt::Buffer buffer;
  };
  Result<pjrt::Buffer> upload(std::span<const int32_t> words) const;

  const pjrt::Client& client_;
  PJRT_Device* device_;
  std::array<Place, kPlaces> places_;
};

}  // namespace tpu::exec
