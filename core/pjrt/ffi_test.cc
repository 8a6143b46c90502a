// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/ffi.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/pjrt/test_plugin.h"

namespace tpu::pjrt {
namespace {

// result = operand * 2, or a failure with the text of `fail`.
Status twice(const HostCallFrame& frame) {
  if (const auto text = frame.text("fail")) return {Code::kInvalidArgument, std::string(*text)};
  const auto in = frame.operand(0);
  const auto out = frame.result(0);
  if (!in.ok() || !out.ok() || in->dtype != ir::DType::kF32 || in->dims.size() != 2) {
    return {Code::kInternal, "the frame is not as the program says"};
  }
  const auto* from = static_cast<const float*>(in->data);
  auto* to = static_cast<float*>(out->data);
  for (int64_t i = 0; i < in->dims[0] * in->dims[1]; ++i) to[i] = 2 * from[i];
  return {};
}

class HostFunctions : public testing::Test {
 protected:
  void SetUp() override {
    if (test_plugin().api().extension(PJRT_Extension_Type_FFI) == nullptr ||
        test_client().platform() != "cpu") {
      GTEST_SKIP() << "this plugin calls no host functions";
    }
    ASSERT_TRUE(register_host_function<twice>(test_plugin(), "test.twice").ok());
  }

  // Doubles 0..5, reshaped to [2, 3], twice.
  static Result<std::vector<float>> run(const std::string& config, bool serialized = false) {
    const std::string call = fmt::format(
        "stablehlo.custom_call @test.twice(%0) {{api_version = 4 : i32, backend_config = {}}} : "
        "(tensor<2x3xf32>) -> tensor<2x3xf32>",
        config);
    const std::string module =
        R"(module { func.func public @main(%a: tensor<6xf32>)
        -> tensor<2x3xf32> { %0 = stablehlo.reshape %a : (tensor<6xf32>) -> tensor<2x3xf32>
        %1 = )" +
        call + " %2 = stablehlo.add %1, %1 : tensor<2x3xf32> return %2 : tensor<2x3xf32> } }";
    auto program = test_client().compile(module, {});
    if (!program.ok()) return program.status();
    if (serialized) program = test_client().deserialize(value_or_throw(program->serialize()));
    if (!program.ok()) return program.status();
    const std::vector<float> data{0, 1, 2, 3, 4, 5};
    const int64_t dims[] = {6};
    PJRT_Device* device = test_client().devices()[0];
    const Buffer argument = value_or_throw(
        test_client().copy_from_host({data.data(), PJRT_Buffer_Type_F32, dims}, device));
    PJRT_Buffer* raw = argument.get();
    std::array<PJRT_Buffer*, 1> results{};
    TPU_RETURN_IF_ERROR(program->execute(
        {.arguments = {&raw, 1}, .non_donatable = {}, .device = device, .results = results}));
    const Buffer result(&test_client().api(), results[0]);
    std::vector<float> out(6);
    const auto copied = result.to_host(out.data(), out.size() * sizeof(float));
    if (!copied.ok()) return copied.status();
    TPU_RETURN_IF_ERROR(copied->await());
    return out;
  }
};

const std::vector<float> kFourfold{0, 4, 8, 12, 16, 20};

TEST_F(HostFunctions, AreCalledWithTheProgramsMemory) {
  const auto out = run("{}");
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out.value(), kFourfold);
}

TEST_F(HostFunctions, AreFoundByProgramsFromDisk) {
  const auto out = run("{}", /*serialized=*/true);
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out.value(), kFourfold);
}

TEST_F(HostFunctions, FailureIsTheResultsError) {
  const auto out = run(R"({fail = "no such number", other = 3 : i64})");
  EXPECT_EQ(out.status().code(), Code::kInvalidArgument);
  EXPECT_NE(out.status().message().find("no such number"), std::string::npos);
}

TEST_F(HostFunctions, ProbePasses) {
  const Status status = probe_host_functions(test_client());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(HostFunction, PluginWithoutTheExtensionRefuses) {
  if (test_plugin().api().extension(PJRT_Extension_Type_FFI) != nullptr) GTEST_SKIP();
  EXPECT_EQ(register_host_function<twice>(test_plugin(), "test.twice").code(),
            Code::kUnimplemented);
}

}  // namespace
}  // namespace tpu::pjrt
