// SPDX-License-Identifier: Apache-2.0
// Views checked against plain index arithmetic over bytes, for tests only.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "lower/test_graph_runner.h"
#include "lower/view_map.h"

namespace tpu::lower::testing {

inline int64_t size_of(DType t) { return static_cast<int64_t>(byte_size(t)); }

// The storage's element of each element of the view, in row-major order.
inline std::vector<int64_t> addresses(const ViewMap& map) {
  std::vector<int64_t> result;
  Dims index(map.sizes.size(), 0);
  for (int64_t n = ir::element_count(map.sizes); n > 0; --n) {
    int64_t address = map.offset;
    for (size_t i = 0; i < index.size(); ++i) address += index[i] * map.strides[i];
    result.push_back(address);
    for (size_t i = index.size(); i-- > 0 && ++index[i] == map.sizes[i];) index[i] = 0;
  }
  return result;
}

inline void normalize(DType t, Bytes& bytes) {
  if (!is_bool(t)) return;
  for (uint8_t& b : bytes) b = b != 0;
}

inline Bytes reference_read(const Bytes& storage, const ViewMap& map) {
  const int64_t size = size_of(map.dtype);
  Bytes result;
  for (const int64_t a : addresses(map)) {
    result.insert(result.end(), storage.begin() + a * size, storage.begin() + (a + 1) * size);
  }
  normalize(map.dtype, result);
  return result;
}

inline Bytes reference_write(const Type& array, Bytes storage, const ViewMap& map,
                             const Bytes& value) {
  const int64_t size = size_of(map.dtype);
  const std::vector<int64_t> to = addresses(map);
  for (size_t i = 0; i < to.size(); ++i) {
    std::memcpy(storage.data() + to[i] * size, value.data() + static_cast<int64_t>(i) * size,
                static_cast<size_t>(size));
  }
  normalize(array.dtype, storage);
  return storage;
}

inline Bytes number_bytes(int64_t n) {
  const auto v = static_cast<int32_t>(n);
  Bytes bytes(sizeof(v));
  std::memcpy(bytes.data(), &v, sizeof(v));
  return bytes;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // In [low, high].
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(number(0, static_cast<int64_t>(from.size()) - 1))];
  }
  Bytes bytes(size_t count, int64_t largest) {
    Bytes result(count);
    for (uint8_t& b : result) b = static_cast<uint8_t>(number(0, largest));
    return result;
  }

 private:
  std::mt19937 engine_;
};

// All bytes, but for bf16, which the compiler reads through f32, where NaNs become quiet: below
// 0x70 numbers are finite.
inline int64_t largest_byte(DType array, DType view) {
  if (is_bool(array)) return 1;
  return array == DType::kBF16 || view == DType::kBF16 ? 0x6F : 0xFF;
}

inline bool in_storage(const Type& array, const ViewMap& map) {
  int64_t last = map.offset;
  for (size_t i = 0; i < map.sizes.size(); ++i) last += (map.sizes[i] - 1) * map.strides[i];
  return map.offset >= 0 && last < static_cast<int64_t>(array.bytes()) / size_of(map.dtype);
}

// Elements that two axes share get equal values, so that every order of writes gives the same.
inline Bytes value_for(const ViewMap& map, const Bytes& fresh_storage) {
  return reference_read(fresh_storage, map);
}

// Several views in one program, because compiling is what costs time.
class Batch {
 public:
  explicit Batch(uint32_t seed) : random_(seed) {}

  void add(const Type& array, const ViewMap& map, const std::vector<int64_t>& other_offsets = {}) {
    SCOPED_TRACE(text(array, map));
    const ViewForm form = decode_view(array, map);
    EXPECT_EQ(starts_for_offset(form, map.offset), std::optional<Dims>(form.starts));
    add_accesses(array, form, map, std::nullopt);
    for (const int64_t offset : other_offsets) {
      ViewMap moved = map;
      moved.offset = offset;
      const std::optional<Dims> starts = starts_for_offset(form, offset);
      if (ir::element_count(map.sizes) == 0) continue;
      if (!in_storage(array, moved)) {
        EXPECT_EQ(starts, std::nullopt) << offset;
        continue;
      }
      if (same_structure(form, decode_view(array, moved))) {
        EXPECT_EQ(starts, std::optional<Dims>(decode_view(array, moved).starts));
      }
      if (!starts || form.starts.empty()) continue;
      add_accesses(array, form, moved, starts);
      ++moved_;
    }
  }

  void run() {
    const std::vector<Bytes> results = testing::run(graph_, results_, parameters_);
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], expected_[i]) << names_[i];
  }
  int moved() const { return moved_; }

 private:
  static std::string text(const Type& array, const ViewMap& map) {
    return fmt::format("{} as {} strides {} offset {}", array.str(),
                       Type{map.dtype, map.sizes}.str(), ir::dims_text(map.strides), map.offset);
  }

  static bool same_structure(const ViewForm& a, const ViewForm& b) {
    return a.gather == b.gather && a.merged == b.merged && a.splits == b.splits &&
           a.reshaped == b.reshaped && a.lengths == b.lengths && a.steps == b.steps;
  }

  Value parameter(const Type& type, const Bytes& bytes) {
    parameters_.push_back(bytes);
    return graph_.parameter(type);
  }

  void expect(Value result, const Type& type, Bytes bytes, std::string name) {
    EXPECT_EQ(result.type(), type) << name;
    results_.push_back(result);
    expected_.push_back(std::move(bytes));
    names_.push_back(std::move(name));
  }

  void add_accesses(const Type& array, const ViewForm& form, const ViewMap& map,
                    const std::optional<Dims>& starts) {
    const int64_t largest = largest_byte(array.dtype, map.dtype);
    const Bytes storage = random_.bytes(array.bytes(), largest);
    const Value x = parameter(array, storage);
    const Bytes v = value_for(map, random_.bytes(array.bytes(), largest));
    const Value value = parameter({map.dtype, map.sizes}, v);
    Values start_values;
    if (starts) {
      for (const int64_t s : *starts) {
        start_values.push_back(parameter({DType::kS32, {}}, number_bytes(s)));
      }
    }
    const std::string name = text(array, map) + (starts ? " at run time" : "");
    expect(read_view(x, form, start_values), value.type(), reference_read(storage, map),
           "read " + name);
    expect(write_view(x, form, value, start_values), array, reference_write(array, storage, map, v),
           "write " + name);
  }

  Random random_;
  ir::Graph graph_;
  Values results_;
  std::vector<Bytes> parameters_;
  std::vector<Bytes> expected_;
  std::vector<std::string> names_;
  int moved_ = 0;
};

}  // namespace tpu::lower::testing
