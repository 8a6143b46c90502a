// SPDX-License-Identifier: Apache-2.0
#include "lower/test_view_batch.h"

namespace tpu::lower {
namespace {

using testing::Batch;
using testing::Random;
using testing::size_of;

ViewMap whole(const Type& array) { return {array.dtype, array.dims, dense_strides(array.dims), 0}; }

void erase_axis(ViewMap& map, size_t axis) {
  map.sizes.erase(map.sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  map.strides.erase(map.strides.begin() + static_cast<std::ptrdiff_t>(axis));
}

void insert_axis(ViewMap& map, size_t axis, int64_t size, int64_t stride) {
  map.sizes.insert(map.sizes.begin() + static_cast<std::ptrdiff_t>(axis), size);
  map.strides.insert(map.strides.begin() + static_cast<std::ptrdiff_t>(axis), stride);
}

// The operations that make views, applied at random to a map over an array.
class ViewMaker {
 public:
  ViewMaker(Random& random, const Type& array) : random_(random), array_(array) {}

  ViewMap make() {
    ViewMap map = whole(array_);
    if (random_.chance(60)) rebase(map);
    for (int64_t n = random_.number(0, 7); n > 0; --n) change(map);
    return map;
  }

 private:
  int64_t elements(DType t) const { return static_cast<int64_t>(array_.bytes()) / size_of(t); }
  size_t axis(const ViewMap& map) {
    return static_cast<size_t>(random_.number(0, static_cast<int64_t>(map.sizes.size()) - 1));
  }

  void change(ViewMap& map) {
    if (map.sizes.empty() || random_.chance(10)) return unsqueeze(map);
    switch (random_.number(0, 12)) {
      case 0:
      case 1:
        return transpose(map);
      case 2:
      case 3:
      case 10:
      case 11:
      case 12:
        return slice(map);
      case 4:
        return random_.chance(40) ? select(map) : unflatten(map);
      case 5:
        return unflatten(map);
      case 6:
        return diagonal(map);
      case 7:
        return unfold(map);
      case 8:
        return random_.chance(30) ? as_strided(map) : merge(map);
      default:
        return random_.chance(75) ? view_dtype(map) : expand(map);
    }
  }

  // A contiguous tensor of another shape somewhere in the storage.
  void rebase(ViewMap& map) {
    int64_t room = ir::element_count(map.sizes);
    if (room == 0) return;
    map.offset = random_.number(0, std::min<int64_t>(room - 1, 5));
    room -= map.offset;
    map.sizes.clear();
    for (int64_t n = random_.number(1, 3); n > 0; --n) {
      map.sizes.push_back(random_.number(1, std::min<int64_t>(room, 8)));
      room /= map.sizes.back();
    }
    map.strides = dense_strides(map.sizes);
  }

  void unsqueeze(ViewMap& map) {
    const auto at = static_cast<size_t>(random_.number(0, static_cast<int64_t>(map.sizes.size())));
    insert_axis(map, at, 1, random_.number(0, 50));
  }

  void transpose(ViewMap& map) {
    const size_t a = axis(map);
    const size_t b = axis(map);
    std::swap(map.sizes[a], map.sizes[b]);
    std::swap(map.strides[a], map.strides[b]);
  }

  void slice(ViewMap& map) {
    const size_t a = axis(map);
    const int64_t start = random_.number(0, map.sizes[a] / 2);
    const int64_t step = random_.number(1, 3);
    const int64_t end = std::min(start + random_.number(0, map.sizes[a]), map.sizes[a]);
    if (start == end && random_.chance(90)) return;
    map.sizes[a] = (end - start + step - 1) / step;
    map.offset += start * map.strides[a];
    map.strides[a] *= step;
  }

  void select(ViewMap& map) {
    const size_t a = axis(map);
    if (map.sizes[a] == 0) return;
    map.offset += random_.number(0, map.sizes[a] - 1) * map.strides[a];
    erase_axis(map, a);
  }

  void unflatten(ViewMap& map) {
    const size_t a = axis(map);
    for (const int64_t inner : {2, 3, 5}) {
      if (map.sizes[a] == 0 || map.sizes[a] % inner != 0) continue;
      map.sizes[a] /= inner;
      insert_axis(map, a + 1, inner, map.strides[a]);
      map.strides[a] *= inner;
      return;
    }
  }

  void merge(ViewMap& map) {
    const size_t a = axis(map);
    if (a + 1 >= map.sizes.size()) return;
    if (map.strides[a] != map.sizes[a + 1] * map.strides[a + 1]) return;
    map.sizes[a + 1] *= map.sizes[a];
    erase_axis(map, a);
  }

  void diagonal(ViewMap& map) {
    if (map.sizes.size() < 2) return;
    const size_t a = axis(map);
    const size_t b = axis(map);
    if (a == b) return;
    const int64_t shift = random_.number(0, 1);
    const int64_t length = std::min(map.sizes[a], map.sizes[b] - shift);
    if (length <= 0) return;
    map.offset += shift * map.strides[b];
    const int64_t stride = map.strides[a] + map.strides[b];
    erase_axis(map, std::max(a, b));
    erase_axis(map, std::min(a, b));
    insert_axis(map, map.sizes.size(), length, stride);
  }

  void unfold(ViewMap& map) {
    const size_t a = axis(map);
    if (map.sizes[a] == 0) return;
    const int64_t size = random_.number(1, map.sizes[a]);
    const int64_t step = random_.number(1, 3);
    insert_axis(map, map.sizes.size(), size, map.strides[a]);
    map.sizes[a] = (map.sizes[a] - size) / step + 1;
    map.strides[a] *= step;
  }

  void expand(ViewMap& map) {
    const size_t a = axis(map);
    if (map.sizes[a] != 1) return insert_axis(map, a, random_.number(0, 3), 0);
    map.sizes[a] = random_.number(1, 3);
    map.strides[a] = 0;
  }

  void as_strided(ViewMap& map) {
    const int64_t total = elements(map.dtype);
    if (total == 0) return;
    map = {map.dtype, {}, {}, random_.number(0, total - 1)};
    int64_t room = total - 1 - map.offset;
    for (int64_t n = random_.number(0, 3); n > 0; --n) {
      const int64_t stride = random_.number(0, 9);
      const int64_t size =
          random_.number(1, stride == 0 ? 3 : std::min<int64_t>(room / stride, 4) + 1);
      room -= (size - 1) * stride;
      insert_axis(map, axis_or_end(map), size, stride);
    }
  }
  size_t axis_or_end(const ViewMap& map) { return map.sizes.empty() ? 0 : axis(map); }

  void view_dtype(ViewMap& map) {
    const DType t =
        random_.pick<DType>({DType::kPred, DType::kU8, DType::kS8, DType::kBF16, DType::kS32,
                             DType::kF32, DType::kS64, DType::kF64, DType::kC64, DType::kC128});
    const int64_t from = size_of(map.dtype);
    const int64_t to = size_of(t);
    if (from >= to && (map.strides.back() == 1 || from == to)) {
      rescale(map, from / to, 1);
      map.sizes.back() *= from / to;
    } else if (from < to && map.strides.back() == 1 && map.sizes.back() % (to / from) == 0) {
      const int64_t n = to / from;
      for (size_t i = 0; i + 1 < map.strides.size(); ++i) {
        if (map.strides[i] % n != 0) return;
      }
      if (map.offset % n != 0) return;
      rescale(map, 1, n);
      map.sizes.back() /= n;
    } else {
      return;
    }
    map.dtype = t;
  }
  // Offset and strides in other units; the last stride stays.
  static void rescale(ViewMap& map, int64_t times, int64_t over) {
    map.offset = map.offset * times / over;
    for (size_t i = 0; i + 1 < map.strides.size(); ++i) {
      map.strides[i] = map.strides[i] * times / over;
    }
  }

  Random& random_;
  Type array_;
};

Type random_array(Random& random) {
  Type type{
      random.pick<DType>({DType::kF32, DType::kF32, DType::kS32, DType::kU8, DType::kBF16,
                          DType::kPred, DType::kS64, DType::kC64, DType::kF64, DType::kF8E4M3FN}),
      {}};
  const bool empty = random.chance(3);
  if (random.chance(40)) type.dims.push_back(random.number(20, 150));
  if (!type.dims.empty() && random.chance(80)) return type;
  for (int64_t n = random.number(0, 4); n > 0; --n) {
    type.dims.push_back(random.number(empty ? 0 : 1, 6));
  }
  return type;
}

TEST(ViewMapProperty, RandomChainsAgreeWithIndexArithmetic) {
  constexpr int kBatches = 40;
  constexpr int kCases = 25;
  int moved = 0;
  for (uint32_t seed = 0; seed < kBatches; ++seed) {
    Random random(seed);
    Batch batch(seed + 1000);
    for (int i = 0; i < kCases; ++i) {
      const Type array = random_array(random);
      const ViewMap map = ViewMaker(random, array).make();
      batch.add(array, map, {map.offset + random.number(0, 6), map.offset - random.number(0, 9)});
    }
    batch.run();
    moved += batch.moved();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(moved, kBatches * kCases / 4);
}

}  // namespace
}  // namespace tpu::lower
