// SPDX-License-Identifier: Apache-2.0
#include "core/ir/dtype.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/ir/type.h"

namespace tpu::ir {
namespace {

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

TEST(DTypeTest, ExactlyOneClass) {
  for (const DType t : all_dtypes()) {
    const int classes = is_bool(t) + is_integer(t) + is_float(t) + is_complex(t);
    EXPECT_EQ(classes, 1) << short_name(t);
    EXPECT_EQ(is_integer(t), is_signed_integer(t) != is_unsigned_integer(t)) << short_name(t);
  }
}

TEST(DTypeTest, NamesAreDistinct) {
  std::set<std::string_view> mlir;
  std::set<std::string_view> names;
  for (const DType t : all_dtypes()) {
    mlir.insert(mlir_name(t));
    names.insert(short_name(t));
  }
  EXPECT_EQ(mlir.size(), static_cast<size_t>(kDTypeCount));
  EXPECT_EQ(names.size(), static_cast<size_t>(kDTypeCount));
}

TEST(DTypeTest, ValuesAreWrittenToDisk) {
  EXPECT_EQ(static_cast<int>(DType::kPred), 0);
  EXPECT_EQ(static_cast<int>(DType::kU64), 8);
  EXPECT_EQ(static_cast<int>(DType::kF8E8M0FNU), 13);
  EXPECT_EQ(static_cast<int>(DType::kC128), kDTypeCount - 1);
}

TEST(DTypeTest, Relatives) {
  EXPECT_EQ(real_of(DType::kC64), DType::kF32);
  EXPECT_EQ(real_of(DType::kC128), DType::kF64);
  EXPECT_EQ(real_of(DType::kS8), DType::kS8);
  EXPECT_EQ(complex_of(DType::kF16), DType::kC64);
  EXPECT_EQ(complex_of(DType::kF64), DType::kC128);
  EXPECT_EQ(complex_of(DType::kC128), DType::kC128);
  EXPECT_EQ(compute_type(DType::kBF16), DType::kF32);
  EXPECT_EQ(compute_type(DType::kF8E5M2), DType::kF32);
  EXPECT_EQ(compute_type(DType::kF64), DType::kF64);
  EXPECT_EQ(compute_type(DType::kS8), DType::kS8);
}

TEST(DTypeTest, AStrangeValueIsRefused) {
  EXPECT_THROW(byte_size(static_cast<DType>(kDTypeCount)), Error);
}

TEST(TypeTest, Texts) {
  const Type t{DType::kBF16, {2, 3}};
  EXPECT_EQ(t.mlir(), "tensor<2x3xbf16>");
  EXPECT_EQ(t.str(), "bf16[2,3]");
  EXPECT_EQ((Type{DType::kC64, {}}).mlir(), "tensor<complex<f32>>");
  EXPECT_EQ((Type{DType::kU8, {}}).str(), "u8[]");
}

TEST(TypeTest, Sizes) {
  EXPECT_EQ((Type{DType::kF64, {4, 0, 2}}).numel(), 0);
  EXPECT_EQ((Type{DType::kF64, {}}).numel(), 1);
  EXPECT_EQ((Type{DType::kC128, {3, 2}}).bytes(), 96u);
  EXPECT_EQ((Type{DType::kPred, {5}}).rank(), 1);
}

}  // namespace
}  // namespace tpu::ir
