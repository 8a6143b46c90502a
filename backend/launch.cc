// SPDX-License-Identifier: Apache-2.0
// The hot path: binds a call's arrays and numbers to its program's parameters and enqueues it.
#include <ATen/native/Resize.h>

#include <atomic>

#include "backend/convert.h"
#include "backend/device.h"
#include "backend/fallback.h"
#include "backend/finite_check.h"
#include "backend/generator.h"
#include "backend/mode.h"
#include "backend/plan.h"
#include "backend/tensors.h"

namespace torch_tpu {
namespace {

using tpu::exec::Array;
using tpu::exec::ArrayRef;
using tpu::ir::DType;

template <class T>
T real_as(const tpu::lower::Number& n) {
  return std::visit(
      [](auto v) -> T {
        if constexpr (std::is_same_v<decltype(v), std::complex<double>>) {
          return static_cast<T>(v.real());
        } else {
          return static_cast<T>(v);
        }
      },
      n);
}

template <class T>
void put(int32_t* words, T value) {
  std::memcpy(words, &value, sizeof(value));
}

void put_number(int32_t* words, DType carrier, const tpu::lower::Number& n) {
  const auto* c = std::get_if<std::complex<double>>(&n);
  switch (carrier) {
    case DType::kF32:
      return put(words, real_as<float>(n));
    case DType::kF64:
      return put(words, real_as<double>(n));
    case DType::kS64:
    case DType::kU64:
      return put(words, real_as<int64_t>(n));
    case DType::kC64:
      return put(words, std::complex<float>(c ? std::complex<float>(*c) : real_as<float>(n)));
    case DType::kC128:
      return put(words, c ? *c : std::complex<double>(real_as<double>(n)));
    default:
      return put(words, static_cast<int32_t>(real_as<int64_t>(n)));
  }
}

using Words = c10::SmallVector<int32_t, 32>;

class WordEncoder {
 public:
  WordEncoder(const Plan& plan, const OpCall& call) : plan_(plan), call_(call) {
    for (const Plan::Position& p : plan.positions) {
      const int64_t offset = call.tensors[static_cast<size_t>(p.tensor)].tensor->storage_offset();
      const auto starts = tpu::lower::starts_for_offset(p.form, offset);
      TORCH_INTERNAL_ASSERT(starts, "a dynamic plan is used only for offsets that decode");
      starts_.insert(starts_.end(), starts->begin(), starts->end());
    }
  }

  Words encode() const {
    Words words(static_cast<size_t>(plan_.program->layout.words));
    std::optional<RandomTicket> ticket;
    if (plan_.random_blocks > 0) ticket = draw(generator(), call_.device, plan_.random_blocks);
    const auto count = static_cast<int>(call_.numbers.size());
    for (const tpu::ir::ScalarUse& use : plan_.words) {
      int32_t* at = words.data() + use.first_word;
      if (use.slot == tpu::ir::kSeedSlot) {
        put(at, ticket->seed);
      } else if (use.slot == tpu::ir::kOffsetSlot) {
        put(at, ticket->offset);
      } else if (use.slot < count) {
        put_number(at, use.carrier, call_.numbers[static_cast<size_t>(use.slot)]);
      } else {
        put(at, static_cast<int32_t>(starts_[static_cast<size_t>(use.slot - count)]));
      }
    }
    return words;
  }

 private:
  std::optional<at::Generator> generator() const {
    if (call_.op.generator < 0) return std::nullopt;
    const c10::IValue& v = call_.args[static_cast<size_t>(call_.op.generator)];
    return v.isNone() ? std::nullopt : std::optional(v.toGenerator());
  }
  const Plan& plan_;
  const OpCall& call_;
  c10::SmallVector<int64_t, 8> starts_;
};

// The arrays of a launch, bound under the queue lock.
class Bindings {
 public:
  Bindings(const Plan& plan, const OpCall& call, const Tensors& fresh)
      : plan_(plan), call_(call), fresh_(fresh) {}

  // Caller holds the queue lock.
  void bind(tpu::exec::Device& device) {
    const auto& layout = plan_.program->layout;
    for (size_t p = 0; p < plan_.parameters.size(); ++p) {
      Cell& cell = cell_of(plan_.parameters[p]);
      if (!cell.array) give_zeros(device, cell, layout.arrays[p]);
      arguments_.push_back(cell.array.get());
    }
    for (const auto& alias : layout.aliases) {
      // Held by its cell alone: nobody else can see the array change hands.
      if (arguments_[static_cast<size_t>(alias.parameter)]->unique()) {
        donated_.push_back(alias.parameter);
      }
    }
  }

  c10::ArrayRef<Array*> arguments() const { return arguments_; }
  c10::ArrayRef<int> donated() const { return donated_; }

  void assign(c10::SmallVectorImpl<ArrayRef>& results) {
    for (size_t r = 0; r < plan_.results.size(); ++r) {
      const Plan::Result& to = plan_.results[r];
      Cell& cell =
          to.fresh >= 0 ? Cell::of(fresh_[static_cast<size_t>(to.fresh)]) : cell_of(to.tensor);
      cell.replace(std::move(results[r]));
    }
  }

 private:
  // Not TensorArg::cell: an out= tensor that was resized has a new one.
  Cell& cell_of(int tensor) const {
    return Cell::of(*call_.tensors[static_cast<size_t>(tensor)].tensor);
  }
  // Reading memory never written gives unspecified values; zeros are as good as any.
  static void give_zeros(tpu::exec::Device& device, Cell& cell, const tpu::ir::Type& type) {
    const std::unique_ptr<void, decltype(&std::free)> zeros(std::calloc(type.bytes() + 1, 1),
                                                            &std::free);
    cell.array = tpu::value_or_throw(device.upload(zeros.get(), type));
  }
  const Plan& plan_;
  const OpCall& call_;
  const Tensors& fresh_;
  c10::SmallVector<Array*, 8> arguments_;
  c10::SmallVector<int, 4> donated_;
};

std::atomic<uint64_t> launches{0};

// A failed check should raise at its line, also when the program is new.
void wait_for_turn(const Plan& plan, tpu::exec::Device& on) {
  const WithoutGil released;
  on.settle();
  (void)plan.program->wait();
}

std::string origin_of(const Plan& plan) {
  const bool awaited = !plan.fallbacks.empty();
  if (awaited || plan.program->layout.checks.empty() || !gil_hooks().python_line) return {};
  return gil_hooks().python_line();
}

// What runs on the CPU for want of a rule raises its errors at once, as it does there.
void raise_failures(const Plan& plan, tpu::exec::Device& on) {
  if (plan.fallbacks.empty()) return on.raise_known_failures();
  const WithoutGil released;
  on.raise_failed_checks();
}

}  // namespace

uint64_t launch_count() { return launches.load(std::memory_order_relaxed); }

at::Tensor make_result(const ResultSpec& s, c10::DeviceIndex device) {
  if (s.dtype == c10::ScalarType::Undefined) return {};
  return make_tensor(s.sizes, s.strides, s.dtype, device);
}

void resize_out(const at::Tensor& out, const ResultSpec& spec) {
  if (at::native::resize_output(out, spec.sizes)) {
    out.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides);
  }
}

Tensors launch(const Plan& plan, const OpCall& call) {
  check_ranges(plan, call);
  for (size_t i = 0; i < plan.resized.size(); ++i) {
    resize_out(*call.tensors[static_cast<size_t>(plan.resized[i])].tensor, plan.resized_to[i]);
  }
  Tensors fresh;
  for (const ResultSpec& s : plan.fresh) fresh.push_back(make_result(s, call.device));
  if (!plan.program) return fresh;
  if (!plan.fallbacks.empty()) [[unlikely]]
    note_fallbacks(plan.fallbacks);

  tpu::exec::Device& on = device(call.device);
  const Words words = WordEncoder(plan, call).encode();
  c10::SmallVector<ArrayRef, 4> results(plan.results.size());
  Bindings bindings(plan, call, fresh);
  const FiniteCheck finite(call);
  const std::string origin = origin_of(plan);
  if (!plan.program->layout.checks.empty() && !plan.program->ready()) wait_for_turn(plan, on);
  {
    const std::lock_guard lock(on.queue_lock());
    bindings.bind(on);
    tpu::throw_if_error(on.launch({.program = plan.program,
                                   .arguments = bindings.arguments(),
                                   .words = words,
                                   .donated = bindings.donated(),
                                   .op = call.op.name,
                                   .origin = origin},
                                  results));
    bindings.assign(results);
  }
  launches.fetch_add(1, std::memory_order_relaxed);
  // A small program has often finished by now: then the error appears at the failing line.
  if (!plan.program->layout.checks.empty()) raise_failures(plan, on);
  if (eager_mode() == EagerMode::kDebug) [[unlikely]] {
    synchronize(call.device);
    finite.look_at(fresh);
  }
  return fresh;
}

}  // namespace torch_tpu
