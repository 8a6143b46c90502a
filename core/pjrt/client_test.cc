// SPDX-License-Identifier: Apache-2.0
// What every plugin must do for the executor to be right on it: run against one by
// TORCH_TPU_TEST_PLUGIN=<plugin.so>.
#include "core/pjrt/client.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/pjrt/test_plugin.h"

namespace tpu::pjrt {
namespace {

constexpr int64_t kSize = 1024;

const std::string kAdd = R"(module {
  func.func public @main(%a: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = stablehlo.add %a, %b : tensor<1024xf32>
    return %0 : tensor<1024xf32>
  }
})";

const std::string kAddInto = R"(module {
  func.func public @main(%a: tensor<1024xf32> {tf.aliasing_output = 0 : i32},
                         %b: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = stablehlo.add %a, %b : tensor<1024xf32>
    return %0 : tensor<1024xf32>
  }
})";

std::vector<float> filled(float value) { return std::vector<float>(kSize, value); }

Client::HostData host_data(const float* data) {
  static constexpr int64_t kDims[] = {kSize};
  return {data, PJRT_Buffer_Type_F32, kDims};
}

Buffer upload(const std::vector<float>& data, size_t device = 0) {
  return value_or_throw(
      test_client().copy_from_host(host_data(data.data()), test_client().devices()[device]));
}

std::vector<float> download(const Buffer& buffer) {
  std::vector<float> data(kSize);
  const Event copied = value_or_throw(buffer.to_host(data.data(), data.size() * sizeof(float)));
  throw_if_error(copied.await());
  return data;
}

Executable compile(const std::string& text, const CompileOptions& options = {}) {
  return value_or_throw(test_client().compile(text, options));
}

Result<Buffer> run(const Executable& program, const std::vector<PJRT_Buffer*>& arguments,
                   const std::vector<int64_t>& kept = {}, size_t device = 0) {
  PJRT_Buffer* result = nullptr;
  TPU_RETURN_IF_ERROR(program.execute({.arguments = arguments,
                                       .non_donatable = kept,
                                       .device = test_client().devices()[device],
                                       .results = {&result, 1}}));
  return Buffer(&test_client().api(), result);
}

// Memory as the executor hands it to the plugin.
class Aligned {
 public:
  Aligned() : data_(static_cast<float*>(std::aligned_alloc(64, kSize * sizeof(float)))) {
    std::fill(data_, data_ + kSize, 1.0F);
  }
  ~Aligned() { std::free(data_); }
  float* data() { return data_; }

 private:
  float* data_;
};

const void* address(const Buffer& buffer) { return value_or_throw(buffer.unsafe_pointer()); }

TEST(Client, DescribesItself) {
  EXPECT_FALSE(test_client().platform().empty());
  EXPECT_FALSE(test_client().platform_version().empty());
  ASSERT_FALSE(test_client().devices().empty());
  EXPECT_FALSE(test_client().device_kind(test_client().devices()[0]).empty());
}

TEST(Client, SecondClientWorksBesideTheFirst) {
  const auto second = Client::create(test_plugin());
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_FALSE(second.value()->devices().empty());
}

TEST(Client, TransfersRoundTrip) {
  const std::vector<float> data = filled(3.5F);
  const Buffer buffer = upload(data);
  EXPECT_EQ(download(buffer), data);
  EXPECT_EQ(buffer.element_type().value(), PJRT_Buffer_Type_F32);
  EXPECT_EQ(buffer.dims()->size(), 1U);
  EXPECT_EQ(buffer.device_bytes().value(), kSize * sizeof(float));
}

TEST(Client, EmptyAndScalarArraysTransfer) {
  const int64_t none[] = {0, 3};
  PJRT_Device* device = test_client().devices()[0];
  EXPECT_TRUE(test_client().copy_from_host({nullptr, PJRT_Buffer_Type_F32, none}, device).ok());
  const float value = 2.5F;
  const auto scalar = test_client().copy_from_host({&value, PJRT_Buffer_Type_F32, {}}, device);
  ASSERT_TRUE(scalar.ok());
  float read = 0;
  ASSERT_TRUE(scalar->to_host(&read, sizeof(read))->await().ok());
  EXPECT_EQ(read, value);
}

TEST(Client, CompilesAndRuns) {
  const Executable add = compile(kAdd);
  EXPECT_EQ(add.output_count().value(), 1U);
  const Buffer a = upload(filled(1));
  const Buffer b = upload(filled(2));
  EXPECT_EQ(download(run(add, {a.get(), b.get()}).value()), filled(3));
}

TEST(Client, BadProgramIsAnError) {
  EXPECT_FALSE(test_client().compile("module { nonsense }", {}).ok());
}

TEST(Client, RefusesUnboundedDimensions) {
  const auto refused = test_client().compile(
      "module { func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> "
      "{ return %a : tensor<?xf32> } }",
      {});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "the program has a dimension of unknown size");
}

TEST(Client, UnknownOptionIsAnErrorNotTheEnd) {
  CompileOptions options;
  options.overrides = {{"xla_no_such_option", true}};
  EXPECT_EQ(test_client().compile(kAdd, options).status().code(), Code::kInvalidArgument);
}

TEST(Client, ShardyModuleCompilesWithItsOption) {
  const std::string module = R"(module {
    sdy.mesh @mesh = <["x"=1]>
    func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
        -> tensor<8xf32> {
      %0 = stablehlo.add %a, %a : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  })";
  const auto compiled = test_client().compile(module, {.shardy = true});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
}

TEST(Client, PortableProgramRunsOnEveryDevice) {
  const Executable add = compile(kAdd);
  for (size_t d = 0; d < test_client().devices().size(); ++d) {
    const Buffer a = upload(filled(static_cast<float>(d)), d);
    const Buffer b = upload(filled(1), d);
    EXPECT_EQ(download(run(add, {a.get(), b.get()}, {}, d).value()),
              filled(static_cast<float>(d + 1)));
  }
}

TEST(Client, CopiesBetweenDevices) {
  if (test_client().devices().size() < 2) GTEST_SKIP() << "one device only";
  const Buffer a = upload(filled(4));
  const auto copy = a.copy_to_device(test_client().devices()[1]);
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_EQ(download(copy.value()), filled(4));
}

TEST(Client, WrongArgumentCountIsAnError) {
  const Executable add = compile(kAdd);
  const Buffer a = upload(filled(1));
  EXPECT_EQ(run(add, {a.get()}).status().code(), Code::kInvalidArgument);
}

TEST(Client, SerializedProgramRuns) {
  const std::string bytes = value_or_throw(compile(kAddInto).serialize());
  const Executable loaded = value_or_throw(test_client().deserialize(bytes));
  EXPECT_EQ(loaded.output_count().value(), 1U);
  Buffer a = upload(filled(1));
  const Buffer b = upload(filled(2));
  EXPECT_EQ(download(run(loaded, {a.get(), b.get()}).value()), filled(3));
  EXPECT_TRUE(a.is_deleted().value()) << "aliasing survives serialization";
}

TEST(Client, TruncatedProgramIsAnError) {
  std::string bytes = value_or_throw(compile(kAdd).serialize());
  bytes.resize(bytes.size() / 2);
  EXPECT_FALSE(test_client().deserialize(bytes).ok());
  EXPECT_FALSE(test_client().deserialize("garbage").ok());
}

TEST(Client, MemoryUseIsKnown) {
  const auto use = compile(kAddInto).memory_use();
  ASSERT_TRUE(use.ok()) << use.status().message();
  EXPECT_EQ(use->argument_bytes, 2 * kSize * sizeof(float));
  EXPECT_EQ(use->output_bytes, kSize * sizeof(float));
  EXPECT_EQ(use->alias_bytes, kSize * sizeof(float));
}

TEST(Donation, ConsumesTheArgument) {
  const Executable add = compile(kAddInto);
  const Buffer a = upload(filled(1));
  const Buffer b = upload(filled(2));
  EXPECT_EQ(download(run(add, {a.get(), b.get()}).value()), filled(3));
  EXPECT_TRUE(a.is_deleted().value());
  EXPECT_FALSE(b.is_deleted().value());
  EXPECT_EQ(run(add, {a.get(), b.get()}).status().code(), Code::kInvalidArgument);
}

TEST(Donation, NonDonatableArgumentSurvives) {
  const Executable add = compile(kAddInto);
  const Buffer a = upload(filled(1));
  const Buffer b = upload(filled(2));
  EXPECT_EQ(download(run(add, {a.get(), b.get()}, {0}).value()), filled(3));
  EXPECT_FALSE(a.is_deleted().value());
  EXPECT_EQ(download(a), filled(1));
}

TEST(Donation, SameBufferTwiceIsRefusedAndConsumesNothing) {
  const Executable add = compile(kAddInto);
  const Buffer a = upload(filled(1));
  EXPECT_FALSE(run(add, {a.get(), a.get()}).ok());
  EXPECT_FALSE(a.is_deleted().value());
  EXPECT_EQ(download(run(add, {a.get(), a.get()}, {0}).value()), filled(2));
}

TEST(Donation, FailedValidationConsumesNothing) {
  const Executable add = compile(kAddInto);
  const Buffer a = upload(filled(1));
  EXPECT_FALSE(run(add, {a.get()}).ok());
  EXPECT_FALSE(a.is_deleted().value());
}

class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (test_client().platform() != "cpu") GTEST_SKIP() << "device memory is not host memory";
  }
};

TEST_F(HostMemory, WrappedInPlaceAndWrittenInPlace) {
  Aligned memory;
  auto wrapped =
      test_client().wrap_host_memory(host_data(memory.data()), test_client().devices()[0]);
  ASSERT_TRUE(wrapped.ok());
  EXPECT_EQ(address(wrapped->buffer), memory.data());
  const Buffer b = upload(filled(2));
  auto result = run(compile(kAddInto), {wrapped->buffer.get(), b.get()});
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->await().ok());
  EXPECT_EQ(address(result.value()), memory.data());
  EXPECT_EQ(memory.data()[0], 3.0F);

  wrapped->buffer.reset();
  EXPECT_FALSE(wrapped->done.is_ready()) << "the output still lives in the memory";
  std::atomic<int> calls{0};
  ASSERT_TRUE(wrapped->done.on_ready([&](const Status& s) { calls += s.ok() ? 1 : 100; }).ok());
  EXPECT_EQ(calls, 0);
  result.value().reset();
  EXPECT_TRUE(wrapped->done.await().ok());
  for (int i = 0; i < 1000 && calls == 0; ++i) std::this_thread::yield();
  EXPECT_EQ(calls, 1);
}

TEST_F(HostMemory, DoneAfterLastUse) {
  Aligned memory;
  auto wrapped =
      test_client().wrap_host_memory(host_data(memory.data()), test_client().devices()[0]);
  ASSERT_TRUE(wrapped.ok());
  EXPECT_FALSE(wrapped->done.is_ready());
  wrapped->buffer.reset();
  EXPECT_TRUE(wrapped->done.await().ok());
}

TEST(Event, EmptyHasHappened) {
  const Event none;
  EXPECT_TRUE(none.is_ready());
  EXPECT_TRUE(none.await().ok());
  int calls = 0;
  EXPECT_TRUE(none.on_ready([&](const Status&) { ++calls; }).ok());
  EXPECT_EQ(calls, 1);
}

TEST(Event, CallbackRunsOnceThoughTheEventIsGone) {
  std::atomic<int> calls{0};
  {
    const Buffer a = upload(filled(1));
    const Buffer b = run(compile(kAdd), {a.get(), a.get()}).value();
    const Event ready = b.ready_event().value();
    ASSERT_TRUE(ready.on_ready([&](const Status& s) { calls += s.ok() ? 1 : 100; }).ok());
  }
  for (int i = 0; i < 100000 && calls == 0; ++i) std::this_thread::yield();
  EXPECT_EQ(calls, 1);
}

TEST(Threads, ManyLaunchOneProgram) {
  const Executable add = compile(kAdd);
  const Buffer a = upload(filled(1));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) failures += !run(add, {a.get(), a.get()}).ok();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(download(a), filled(1));
}

}  // namespace
}  // namespace tpu::pjrt
