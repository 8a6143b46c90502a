// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/hlo/control.h"

namespace tpu::hlo {
namespace {

constexpr int kRounds = 10;
constexpr int64_t kBlockBytes = 16;
constexpr std::array<int64_t, 2> kMultipliers{0xD2511F53, 0xCD9E8D57};
constexpr std::array<int64_t, 2> kKeySteps{0x9E3779B9, 0xBB67AE85};

using Words = std::array<Value, 4>;

Value low_word(Value x) { return convert(x, DType::kU32); }
Value high_word(Value x) {
  return convert(shift_right_logical(x, full_like(x, int64_t{32})), DType::kU32);
}

// 64-bit products of 32-bit words.
Value wide_product(Value x, int64_t factor) {
  const Value wide = convert(x, DType::kU64);
  return mul(wide, full_like(wide, factor));
}

// Words stay u32 and leave as four columns: packing them into u64 first ran up to 10 times slower
// on the CPU plugin.
Words round(const Words& c, Value key0, Value key1) {
  const Value p0 = wide_product(c[0], kMultipliers[0]);
  const Value p1 = wide_product(c[2], kMultipliers[1]);
  return {xor_(xor_(high_word(p1), c[1]), key0), low_word(p1),
          xor_(xor_(high_word(p0), c[3]), key1), low_word(p0)};
}

// u32[blocks, 4]
Value blocks_of_bits(Value seed, Value offset, int64_t blocks) {
  Graph& graph = seed.graph();
  const Dims dims{blocks};
  const Value counter = add(iota(graph, {DType::kU64, dims}, 0), broadcast_to(offset, dims));
  const Value zero = full(graph, {DType::kU32, dims}, int64_t{0});
  Words words{low_word(counter), high_word(counter), zero, zero};
  std::array<Value, 2> key{low_word(seed), high_word(seed)};
  for (int i = 0; i < kRounds; ++i) {
    words = round(words, broadcast_to(key[0], dims), broadcast_to(key[1], dims));
    for (size_t k = 0; k < 2; ++k) key[k] = add(key[k], full_like(key[k], kKeySteps[k]));
  }
  Values columns;
  for (const Value& w : words) columns.push_back(reshape(w, {blocks, 1}));
  return concatenate(columns, 1);
}

// Words [blocks, 4] as elements of another size, in order.
Value elements_of(Value words, DType t) {
  const int64_t blocks = words.dim(0);
  const int64_t per_block = kBlockBytes / static_cast<int64_t>(byte_size(t));
  if (t == DType::kU64) words = reshape(words, {blocks, 2, 2});
  return reshape(bitcast_resize(words, t), {blocks * per_block});
}

}  // namespace

int64_t philox_blocks(int64_t count, DType t) {
  const int64_t per_block = kBlockBytes / static_cast<int64_t>(byte_size(t));
  return (count + per_block - 1) / per_block;
}

Value philox_bits(Value seed, Value offset, const Dims& dims, DType t) {
  TPU_CHECK(is_unsigned_integer(t), "random bits come as unsigned integers");
  const int64_t count = ir::element_count(dims);
  const Value words = blocks_of_bits(seed, offset, philox_blocks(count, t));
  return reshape(slice_axis(elements_of(words, t), 0, 0, count), dims);
}

}  // namespace tpu::hlo
