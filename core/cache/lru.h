// SPDX-License-Identifier: Apache-2.0
// A map that holds at most so many bytes and forgets what was used longest ago. The newest entry
// stays even if it alone is too large. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

namespace tpu::cache {

template <class Key, class Value, class Hash = std::hash<Key>>
class Lru {
 public:
  explicit Lru(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The value, now the most recently used; null if absent. Valid until the next put or clear.
  Value* find(const Key& key) {
    const auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->value;
  }

  // Replaces an entry of the same key.
  void put(const Key& key, Value value, size_t bytes) {
    if (const auto it = index_.find(key); it != index_.end()) erase(it->second);
    entries_.push_front({key, std::move(value), bytes});
    index_[key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > max_bytes_ && entries_.size() > 1) erase(std::prev(entries_.end()));
  }

  void clear() {
    index_.clear();
    entries_.clear();
    bytes_ = 0;
  }
  size_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    size_t bytes;
  };
  void erase(typename std::list<Entry>::iterator it) {
    bytes_ -= it->bytes;
    index_.erase(it->key);
    entries_.erase(it);
  }

  size_t max_bytes_;
  size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace tpu::cache
