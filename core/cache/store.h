// SPDX-License-Identifier: Apache-2.0
// Bytes under a 128-bit key in a directory, one file per entry, shared by processes without locks:
// a file appears complete, by rename. Every entry carries its key and a checksum; what is damaged,
// truncated or foreign is a miss and is removed. Loading an entry is running native code, so the
// directory must be the user's own and closed to others' writing; if it is not, or cannot be
// written, the store works without it and says so once on stderr. Bounded by last use. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/hash.h"

namespace tpu::cache {

struct StoreStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t writes = 0;
  uint64_t damaged = 0;  // entries met that were not what was written
  uint64_t evicted = 0;
  uint64_t failed_writes = 0;
  uint64_t bytes = 0;  // of files in the directory, as far as known
};

class Store {
 public:
  // Empty directory: nothing is kept.
  explicit Store(std::string directory, size_t max_bytes = size_t{4} << 30);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool enabled() const;  // whether there is a directory to use
  std::optional<std::string> get(const Hash128& key);
  // Best effort: a failure is counted and warned about once.
  void put(const Hash128& key, std::string_view bytes);
  void remove(const Hash128& key);
  void clear();
  StoreStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpu::cache
