// SPDX-License-Identifier: Apache-2.0
#include "lower/view_map.h"

#include <gtest/gtest.h>

#include "lower/test_view_batch.h"

namespace tpu::lower {
namespace {

using ir::Graph;
using testing::Batch;
using testing::Bytes;

const Type kArray{DType::kF32, {4, 6, 8}};
constexpr DType kF32 = DType::kF32;

struct Emitted {
  std::string read;
  std::string write;
};

// The operations of a read and of a write, "slice reshape", without constants.
std::string operations(Graph& graph, Value result) {
  const std::string text = graph.module({result}).text;
  std::string names;
  const std::string dialect = "\"stablehlo.";
  for (size_t at = text.find(dialect); at != text.npos; at = text.find(dialect, at + 1)) {
    const size_t begin = at + dialect.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    if (name != "constant" && name != "return") names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

Emitted emitted(const Type& array, const ViewMap& map, bool at_run_time = false) {
  const ViewForm form = decode_view(array, map);
  const auto emit = [&](auto access) {
    Graph graph;
    const Value x = graph.parameter(array);
    const Value value = graph.parameter({map.dtype, map.sizes});
    Values starts;
    for (size_t i = 0; at_run_time && i < form.starts.size(); ++i) {
      starts.push_back(graph.parameter({DType::kS32, {}}));
    }
    return operations(graph, access(x, value, starts));
  };
  return {emit([&](Value x, Value, const Values& s) { return read_view(x, form, s); }),
          emit([&](Value x, Value v, const Values& s) { return write_view(x, form, v, s); })};
}

void expect_right(const Type& array, const ViewMap& map, std::vector<int64_t> offsets = {}) {
  Batch batch(7);
  batch.add(array, map, offsets);
  batch.run();
}

TEST(ViewMap, WholeArrayIsReadAndWrittenWithoutAnOperation) {
  const ViewMap map{kF32, {4, 6, 8}, {48, 8, 1}, 0};
  EXPECT_EQ(emitted(kArray, map).read, "");
  EXPECT_EQ(emitted(kArray, map).write, "");
}

TEST(ViewMap, OtherShapesOfTheWholeArrayReshape) {
  const ViewMap flat{kF32, {192}, {1}, 0};
  EXPECT_EQ(emitted(kArray, flat).read, "reshape");
  EXPECT_EQ(emitted(kArray, flat).write, "reshape");
  const ViewMap split{kF32, {1, 4, 2, 3, 8}, {5, 48, 24, 8, 1}, 0};
  EXPECT_EQ(emitted(kArray, split).read, "reshape");
}

TEST(ViewMap, PermutedViewsTranspose) {
  EXPECT_EQ(emitted(kArray, {kF32, {8, 6, 4}, {1, 8, 48}, 0}).read, "transpose");
  EXPECT_EQ(emitted(kArray, {kF32, {8, 6, 4}, {1, 8, 48}, 0}).write, "transpose");
  const Type channels_last{kF32, {2, 5, 6, 3}};
  EXPECT_EQ(emitted(channels_last, {kF32, {2, 3, 5, 6}, {90, 1, 18, 3}, 0}).read, "transpose");
}

TEST(ViewMap, SlicesKeepTheArraysShape) {
  const ViewMap map{kF32, {2, 3, 3}, {48, 16, 2}, 48 + 8 + 2};
  const ViewForm form = decode_view(kArray, map);
  EXPECT_EQ(form.reshaped, kArray.dims);
  EXPECT_EQ(form.starts, (Dims{1, 1, 2}));
  EXPECT_EQ(form.lengths, (Dims{2, 3, 3}));
  EXPECT_EQ(form.steps, (Dims{1, 2, 2}));
  EXPECT_EQ(emitted(kArray, map).read, "slice");
  expect_right(kArray, map, {0, 48 + 9, 2 * 48});
}

TEST(ViewMap, SelectAndChunkSliceAndReshape) {
  const ViewMap row{kF32, {4, 8}, {48, 1}, 3 * 8};
  EXPECT_EQ(emitted(kArray, row).read, "slice reshape");
  EXPECT_EQ(emitted(kArray, row).write, "reshape dynamic_update_slice");
  const ViewMap heads_of_query{kF32, {4, 2, 6, 2}, {48, 2, 8, 1}, 4};  // [:, :, 4:8] as 2 heads
  EXPECT_EQ(emitted(kArray, heads_of_query).read, "slice reshape transpose");
  EXPECT_EQ(emitted(kArray, heads_of_query).write, "transpose reshape dynamic_update_slice");
}

TEST(ViewMap, ExpandedViewsBroadcast) {
  const Type row{kF32, {8}};
  EXPECT_EQ(emitted(row, {kF32, {3, 8}, {0, 1}, 0}).read, "broadcast_in_dim");
  EXPECT_EQ(emitted(row, {kF32, {8, 3}, {1, 0}, 0}).read, "broadcast_in_dim");
  EXPECT_EQ(emitted({kF32, {}}, {kF32, {2, 2}, {0, 0}, 0}).read, "broadcast_in_dim");
}

TEST(ViewMap, RunTimeStartsSliceDynamically) {
  const ViewMap position{kF32, {4, 1, 8}, {48, 8, 1}, 16};
  EXPECT_EQ(emitted(kArray, position, true).read, "dynamic_slice");
  EXPECT_EQ(emitted(kArray, position, true).write, "dynamic_update_slice");
  const ViewMap stepped{kF32, {4, 2, 8}, {48, 16, 1}, 8};
  EXPECT_EQ(emitted(kArray, stepped, true).read, "dynamic_slice slice");
}

TEST(ViewMap, DiagonalsAreStridedSlices) {
  const Type square{kF32, {3, 5, 5}};
  const ViewMap diagonal{kF32, {3, 4}, {25, 6}, 1};
  EXPECT_EQ(emitted(square, diagonal).read, "reshape slice");
  EXPECT_EQ(emitted(square, diagonal).write.find("scatter"), std::string::npos);
  expect_right(square, diagonal);
}

TEST(ViewMap, OnlyOverlappingWindowsGather) {
  EXPECT_FALSE(decode_view({kF32, {12}}, {kF32, {4, 2}, {3, 1}, 1}).gather);
  EXPECT_TRUE(decode_view({kF32, {12}}, {kF32, {4, 3}, {2, 1}, 1}).gather);
  expect_right({kF32, {12}}, {kF32, {4, 3}, {2, 1}, 1}, {0, 3, 4});
}

// A tensor in the middle of a larger storage, none of whose sizes divides the storage's.
TEST(ViewMap, OddPlacesInAFlatStorage) {
  const Type storage{kF32, {101}};
  const ViewMap inner{kF32, {5, 2, 2}, {12, 4, 1}, 17};
  EXPECT_FALSE(decode_view(storage, inner).gather);
  expect_right(storage, inner, {18, 23, 40});
  const ViewMap at_the_end{kF32, {2, 2}, {7, 1}, 92};
  EXPECT_FALSE(decode_view(storage, at_the_end).gather);
  expect_right(storage, at_the_end);
  const ViewMap beyond{kF32, {2, 2}, {70, 1}, 10};  // two whole rows of 70 do not fit
  EXPECT_FALSE(decode_view(storage, beyond).gather);
  expect_right(storage, beyond, {0, 29});
}

TEST(ViewMap, StartsOfAnotherOffset) {
  const ViewForm form = decode_view(kArray, {kF32, {4, 2, 8}, {48, 8, 1}, 8});
  EXPECT_EQ(starts_for_offset(form, 0), (Dims{0, 0, 0}));
  EXPECT_EQ(starts_for_offset(form, 4 * 8), (Dims{0, 4, 0}));
  EXPECT_EQ(starts_for_offset(form, 5 * 8), std::nullopt);  // would leave the row of the batch
  EXPECT_EQ(starts_for_offset(form, 1), std::nullopt);
  EXPECT_EQ(starts_for_offset(form, -8), std::nullopt);
  EXPECT_EQ(starts_for_offset(form, 192), std::nullopt);
}

TEST(ViewMap, EmptyViewsReadNothingAndWriteNothing) {
  const ViewMap empty{kF32, {0, 8}, {8, 1}, 500};
  EXPECT_EQ(starts_for_offset(decode_view(kArray, empty), 3), Dims{});
  EXPECT_EQ(emitted(kArray, empty).write, "");
  expect_right(kArray, empty);
  expect_right({kF32, {0, 3}}, {kF32, {3, 0}, {1, 3}, 0});
}

TEST(ViewMap, MemoryOrder) {
  const auto order = [](Dims sizes, Dims strides) {
    return memory_order({kF32, std::move(sizes), std::move(strides), 0});
  };
  EXPECT_EQ(order({2, 3}, {3, 1}), (Dims{0, 1}));
  EXPECT_EQ(order({2, 3}, {1, 2}), (Dims{1, 0}));
  EXPECT_EQ(order({2, 3, 4, 5}, {60, 1, 15, 3}), (Dims{0, 2, 3, 1}));
  EXPECT_EQ(order({2, 1, 4, 5}, {20, 1, 5, 1}), (Dims{0, 1, 2, 3}));
  EXPECT_EQ(order({2, 3, 4, 1}, {12, 1, 3, 3}), (Dims{0, 2, 3, 1}));
  EXPECT_EQ(order({1, 1}, {7, 0}), (Dims{0, 1}));
  EXPECT_EQ(order({}, {}), Dims{});
  EXPECT_EQ(order({0, 3}, {1, 9}), (Dims{0, 1}));
  EXPECT_EQ(order({2, 3}, {4, 1}), std::nullopt);
  EXPECT_EQ(order({2, 3}, {0, 1}), std::nullopt);
  EXPECT_EQ(order({2, 2}, {1, 1}), std::nullopt);
}

TEST(ViewMap, Covers) {
  EXPECT_TRUE(covers(kArray, {kF32, {8, 24}, {1, 8}, 0}));
  EXPECT_TRUE(covers(kArray, {DType::kBF16, {4, 96}, {96, 1}, 0}));
  EXPECT_FALSE(covers(kArray, {DType::kBF16, {4, 48}, {48, 1}, 0}));
  EXPECT_FALSE(covers(kArray, {kF32, {191}, {1}, 1}));
  EXPECT_FALSE(covers({kF32, {6}}, {kF32, {2, 3}, {0, 1}, 0}));
  EXPECT_TRUE(covers({kF32, {0}}, {kF32, {0, 3}, {3, 1}, 0}));
  EXPECT_FALSE(covers({kF32, {1}}, {kF32, {0, 3}, {3, 1}, 0}));
}

TEST(ViewMap, ToMemory) {
  Graph graph;
  const Value x = graph.parameter({DType::kU8, {2, 3}});
  const Value permuted = to_memory(x, {DType::kU8, {2, 3}, {1, 2}, 0}, 6);
  EXPECT_EQ(permuted.dims(), (Dims{3, 2}));
  const Value gaps = to_memory(x, {DType::kU8, {2, 3}, {4, 1}, 1}, 9);
  EXPECT_EQ(gaps.dims(), Dims{9});
  const std::vector<Bytes> results = testing::run(graph, {permuted, gaps}, {{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(results[0], (Bytes{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(results[1], (Bytes{0, 1, 2, 3, 0, 4, 5, 6, 0}));
}

TEST(ViewMap, EveryPairOfDtypes) {
  Batch batch(3);
  for (int a = 0; a < ir::kDTypeCount; ++a) {
    for (int b = 0; b < ir::kDTypeCount; ++b) {
      const Type array{static_cast<DType>(a), {2, 32}};
      const auto t = static_cast<DType>(b);
      const auto row = static_cast<int64_t>(array.bytes() / byte_size(t) / 2);
      batch.add(array, {t, {row / 2}, {2}, row + 1});
    }
  }
  batch.run();
}

TEST(ViewMap, PartsOfComplexNumbersAreSlices) {
  const Type array{DType::kC64, {3, 4}};
  const ViewMap real{kF32, {3, 4}, {8, 2}, 0};
  EXPECT_EQ(decode_view(array, real).reshaped, (Dims{3, 4, 2}));
  EXPECT_FALSE(decode_view(array, real).gather);
  expect_right(array, real, {1});
}

TEST(ViewMap, BytesThatFillNoElementStay) {
  const Type bytes{DType::kU8, {7}};
  expect_right(bytes, {kF32, {1}, {1}, 0});
  expect_right({DType::kBF16, {3, 3}}, {DType::kC64, {1}, {1}, 1});
}

TEST(ViewMap, BoolsAmongBytesLeaveTheOthersAlone) {
  Graph graph;
  const Value array = graph.parameter({DType::kU8, {4}});
  const Value value = graph.parameter({DType::kPred, {2}});
  const ViewForm form = decode_view(array.type(), {DType::kPred, {2}, {1}, 1});
  const std::vector<Bytes> results = testing::run(
      graph, {read_view(array, form), write_view(array, form, value)}, {{7, 0, 9, 5}, {1, 0}});
  EXPECT_EQ(results[0], (Bytes{0, 1}));
  EXPECT_EQ(results[1], (Bytes{7, 1, 0, 5}));
}

TEST(ViewMap, UnwrittenSignallingNansKeepTheirBits) {
  for (const DType t : {DType::kBF16, DType::kF16, DType::kF32}) {
    Graph graph;
    const Value array = graph.parameter({t, {2, 2}});
    const Value value = graph.parameter({t, {1, 2}});
    const ViewForm form = decode_view(array.type(), {t, {1, 2}, {2, 1}, 2});
    Bytes nans(array.type().bytes(), 0x7F);  // little endian: 0x81 in the low bytes is signalling
    for (size_t i = 0; i < nans.size(); ++i) {
      if ((i + 1) % byte_size(t) != 0) nans[i] = 0x81;
    }
    const Bytes written(nans.size() / 2, 0x11);
    Bytes expected = nans;
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(nans.size() / 2), expected.end(),
              0x11);
    EXPECT_EQ(testing::run(graph, {write_view(array, form, value)}, {nans, written})[0], expected);
  }
}

}  // namespace
}  // namespace tpu::lower
