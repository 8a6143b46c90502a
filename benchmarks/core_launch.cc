// SPDX-License-Identifier: Apache-2.0
// What Device::launch costs above the plugin's own Execute:
//   core_launch <plugin.so>
// Every line is the fastest of many batches, in nanoseconds per launch, results destroyed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <vector>

#include "core/exec/runtime.h"

namespace {

using tpu::value_or_throw;
using namespace tpu::exec;
namespace ir = tpu::ir;

// Takes turns, so that a slower minute of the machine meets all alike; the fastest batch of each.
std::vector<double> nanoseconds(const std::vector<std::function<void()>>& bodies) {
  constexpr int kBatches = 2000;
  constexpr int kPerBatch = 100;
  std::vector<double> best(bodies.size(), 1e30);
  for (int batch = 0; batch < kBatches; ++batch) {
    for (size_t k = 0; k < bodies.size(); ++k) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kPerBatch; ++i) bodies[k]();
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - start;
      best[k] = std::min(best[k], spent.count() / kPerBatch);
    }
  }
  return best;
}

const ir::Type kVector{ir::DType::kF32, {8}};

ProgramRef add_program(Compiler& compiler, int words) {
  ir::Graph::Module module;
  module.parameters = {kVector, kVector};
  module.results = {kVector};
  if (words > 0) module.parameters.push_back({ir::DType::kS32, {words}});
  module.text = fmt::format(
      "module {{ func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>{}) -> tensor<8xf32> "
      "{{\n"
      "  %0 = stablehlo.add %a, %b : tensor<8xf32>\n  return %0 : tensor<8xf32> }} }}",
      words > 0 ? fmt::format(", %words: tensor<{}xi32>", words) : "");
  ProgramLayout layout{.arrays = {kVector, kVector}, .words = words, .results = {kVector}};
  return value_or_throw(compiler.compile({.op = "add", .module = module, .layout = layout}));
}

void execute(const Program& program, std::span<PJRT_Buffer* const> handles,
             tpu::pjrt::Client& client) {
  PJRT_Buffer* result = nullptr;
  tpu::throw_if_error(program.executable.execute({.arguments = handles,
                                                  .non_donatable = {},
                                                  .device = client.devices()[0],
                                                  .results = {&result, 1}}));
  const tpu::pjrt::Buffer owned(&client.api(), result);
}

void launch(Device& device, const ProgramRef& program, std::span<Array* const> arguments,
            std::span<const int32_t> words) {
  ArrayRef result;
  const std::lock_guard guard(device.queue_lock());
  tpu::throw_if_error(device.launch({.program = program,
                                     .arguments = arguments,
                                     .words = words,
                                     .donated = {},
                                     .op = "add",
                                     .origin = {}},
                                    {&result, 1}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: core_launch <plugin.so>\n");
    return 2;
  }
  Runtime::configure({.plugin_path = argv[1]});
  Runtime& runtime = Runtime::instance();
  Device& device = runtime.device(0);
  const std::vector<float> host(8, 1.0F);
  const ArrayRef a = value_or_throw(device.upload(host.data(), kVector));
  const ArrayRef b = value_or_throw(device.upload(host.data(), kVector));
  const std::vector<Array*> arguments = {a.get(), b.get()};
  const ProgramRef plain = add_program(runtime.compiler(), 0);
  const ProgramRef with_words = add_program(runtime.compiler(), 2);

  const std::vector<PJRT_Buffer*> handles = {a->buffer().get(), b->buffer().get()};
  const int64_t two = 2;
  const std::vector<int32_t> repeated = {7, 9};
  const tpu::pjrt::Buffer word_buffer = value_or_throw(runtime.client().copy_from_host(
      {repeated.data(), PJRT_Buffer_Type_S32, {&two, 1}}, runtime.client().devices()[0]));
  const std::vector<PJRT_Buffer*> three = {handles[0], handles[1], word_buffer.get()};
  int32_t changing = 0;
  const std::vector<double> ns = nanoseconds({
      [&] { execute(*plain, handles, runtime.client()); },
      [&] { launch(device, plain, arguments, {}); },
      [&] { execute(*with_words, three, runtime.client()); },
      [&] { launch(device, with_words, arguments, repeated); },
      [&] { launch(device, with_words, arguments, std::vector<int32_t>{++changing, 9}); },
  });
  std::printf("2 arguments, 1 result: PJRT execute %5.0f ns, launch %5.0f ns (+%.0f)\n", ns[0],
              ns[1], ns[1] - ns[0]);
  std::printf("  and 2 words:         PJRT execute %5.0f ns, launch %5.0f ns (+%.0f)\n", ns[2],
              ns[3], ns[3] - ns[2]);
  std::printf("  that change:                               launch %5.0f ns (+%.0f)\n", ns[4],
              ns[4] - ns[2]);
  return 0;
}
