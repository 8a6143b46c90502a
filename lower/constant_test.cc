// SPDX-License-Identifier: Apache-2.0
// Programs whose operands are all known: what the compiler folds must be what it would compute.
#include <gtest/gtest.h>

#include "core/hlo/elementwise.h"
#include "lower/test_graph_runner.h"

namespace tpu::lower {
namespace {

constexpr int64_t kNumbers[] = {-5, 0, 3};

bool folded(ir::DType t, int64_t a, int64_t b, ir::Value (*compare)(ir::Value, ir::Value)) {
  ir::Graph graph;
  const ir::Value result = compare(hlo::constant(graph, t, a), hlo::constant(graph, t, b));
  return testing::run(graph, {result}, {})[0][0] != 0;
}

void expect_comparisons(ir::DType t, int64_t a, int64_t b) {
  SCOPED_TRACE(fmt::format("{} {} {}", ir::short_name(t), a, b));
  EXPECT_EQ(folded(t, a, b, hlo::lt), a < b);
  EXPECT_EQ(folded(t, a, b, hlo::le), a <= b);
  EXPECT_EQ(folded(t, a, b, hlo::gt), a > b);
  EXPECT_EQ(folded(t, a, b, hlo::ge), a >= b);
  EXPECT_EQ(folded(t, a, b, hlo::eq), a == b);
  EXPECT_EQ(folded(t, a, b, hlo::ne), a != b);
}

TEST(Constants, ComparisonsKnowTheSign) {
  for (const ir::DType t : {ir::DType::kS8, ir::DType::kS64, ir::DType::kF32}) {
    for (const int64_t a : kNumbers) {
      for (const int64_t b : kNumbers) expect_comparisons(t, a, b);
    }
  }
  expect_comparisons(ir::DType::kU8, 200, 3);
  expect_comparisons(ir::DType::kU8, 3, 200);
}

}  // namespace
}  // namespace tpu::lower
