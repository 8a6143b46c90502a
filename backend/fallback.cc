// SPDX-License-Identifier: Apache-2.0
#include "backend/fallback.h"

#include <ATen/native/CPUFallback.h>

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "backend/boxed.h"
#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/strides.h"
#include "backend/tensors.h"

namespace torch_tpu {
namespace {

std::atomic<FallbackPolicy> policy{FallbackPolicy::kWarn};
std::atomic<Decomposition> decomposition{nullptr};

struct Counts {
  std::mutex mutex;  // guards by_op
  std::map<std::string, int64_t> by_op;
};
Counts& counts() {
  static auto* c = new Counts;
  return *c;
}

// What is known of an op without a rule.
class UnruledOps {
 public:
  static UnruledOps& instance() {
    static auto* ops = new UnruledOps;
    return *ops;
  }
  const Op& op(const c10::OperatorHandle& handle) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Op>& slot = ops_[handle.operator_name()];
    if (!slot) slot = std::make_unique<Op>(handle, nullptr, Op::Form::kMutating, std::nullopt);
    return *slot;
  }
  bool refused(const tpu::Hash128& key) {
    const std::lock_guard lock(mutex_);
    return refused_.contains(key);
  }
  void refuse(const tpu::Hash128& key) {
    const std::lock_guard lock(mutex_);
    refused_.insert(key);
  }

 private:
  std::mutex mutex_;  // guards the members
  std::unordered_map<c10::OperatorName, std::unique_ptr<Op>> ops_;
  std::unordered_set<tpu::Hash128, tpu::Hash128Hasher> refused_;
};

// Counts, and warns or raises as the policy says.
void note_fallback(const std::string& name, const char* how) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      policy != FallbackPolicy::kError, "The operator '", name,
      "' has no tpu kernel and TORCH_TPU_FALLBACK=error forbids running it on the CPU. Set "
      "TORCH_TPU_FALLBACK=warn to allow it, or rewrite the call with other operators.");
  bool first = false;
  {
    const std::lock_guard lock(counts().mutex);
    first = counts().by_op[name]++ == 0;
  }
  if (first && policy == FallbackPolicy::kWarn) {
    TORCH_WARN("The operator '", name, "' has no tpu kernel and runs on the CPU", how,
               ". torch.tpu.fallback_counts() counts such calls.");
  }
}

void run_on_cpu(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  note_fallback(c10::toString(handle.operator_name()), ", with copies both ways");
  const CleanState clean;
  at::native::cpu_fallback(handle, &stack, /*error_on_views=*/false);
}

// The arguments with every device tensor replaced by one of the same geometry whose cell belongs to
// the recording; storages shared before are shared after.
class Placeholders {
 public:
  Placeholders(Recording& recording, const OpCall& call) : recording_(recording), call_(call) {}

  torch::jit::Stack arguments() {
    torch::jit::Stack stack;
    for (const c10::IValue& v : call_.args) stack.push_back(replace(v));
    return stack;
  }

  // The call's out= tensors take the shapes that their placeholders got. Growing makes a new cell,
  // so the value is written anew.
  void write_resized(Plan& plan) const {
    for (const auto& [number, p] : outs_) {
      const at::Tensor& out = *call_.tensors[static_cast<size_t>(number)].tensor;
      if (p.sizes() == out.sizes()) continue;
      plan.resized.push_back(number);
      plan.resized_to.push_back(
          {p.scalar_type(), c10::DimVector(p.sizes()), c10::DimVector(p.strides())});
      const bool grew = p.storage().nbytes() > out.storage().nbytes();
      const tpu::ir::Value value = recording_.read(p);
      resize_out(out, plan.resized_to.back());
      if (!grew) continue;
      recording_.pin({&out, &Cell::of(out)}, number);
      recording_.write(out, value);
    }
  }

 private:
  c10::IValue replace(const c10::IValue& v) {
    if (v.isTensor()) return replace(v.toTensor());
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& e : v.toListRef()) list.push_back(replace(e.toTensor()));
      return list;
    }
    if (v.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& e : v.toListRef()) {
        list.push_back(e.isTensor() ? std::optional(replace(e.toTensor())) : std::nullopt);
      }
      return list;
    }
    return v;
  }

  at::Tensor replace(const at::Tensor& t) {
    if (!t.defined()) return t;
    const int number = next_++;
    const TensorArg& argument = call_.tensors[static_cast<size_t>(number)];
    if (!argument.cell) return t;
    const auto [it, fresh] = storages_.try_emplace(argument.cell);
    if (fresh) {
      const auto bytes = static_cast<int64_t>(t.storage().nbytes());
      it->second = c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                                Cell::make(static_cast<size_t>(bytes), call_.device),
                                c10::GetAllocator(c10::DeviceType::PrivateUse1), true);
      recording_.pin_placeholder(argument, number, Cell::of(*it->second.unsafeGetStorageImpl()));
    }
    at::Tensor p = make_tensor({0}, {}, t.scalar_type(), call_.device);
    p.unsafeGetTensorImpl()->set_storage_keep_dtype(it->second);
    p.unsafeGetTensorImpl()->set_storage_offset(t.storage_offset());
    p.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides());
    p._set_conj(t.is_conj());
    p._set_neg(t.is_neg());
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) {
      p.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    if (argument.out) outs_.emplace_back(number, p);
    return p;
  }

  Recording& recording_;
  const OpCall& call_;
  std::vector<std::pair<int, at::Tensor>> outs_;
  int next_ = 0;
  std::unordered_map<const Cell*, c10::Storage> storages_;
};

void append_tensors(const c10::IValue& v, Tensors& out) {
  if (v.isTensor()) {
    out.push_back(v.toTensor());
  } else if (v.isTensorList()) {
    for (const c10::IValue& e : v.toListRef()) out.push_back(e.toTensor());
  } else if (!v.isNone()) {
    throw RecordingAbandoned("a recorded call returns a host value");
  }
}

std::unique_ptr<Plan> record_decomposition(const OpCall& call) {
  Recording recording(call.op.name, call.device);
  Placeholders placeholders(recording, call);
  torch::jit::Stack stack = placeholders.arguments();
  const CleanState clean;
  const Recording::Scope scope(recording);
  const Decomposition decompose = decomposition.load();
  if (!decompose || !decompose(call.op.handle, stack)) throw RecordingAbandoned("no decomposition");

  std::vector<ResultSpec> fresh;
  tpu::ir::Values values;
  const auto& returns = call.op.returns;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (returns[i] >= 0) continue;  // an argument: what was written to it is in its cell
    Tensors tensors;
    append_tensors(stack[i], tensors);
    for (const at::Tensor& t : tensors) {
      if (!t.defined()) {
        fresh.push_back({.dtype = c10::ScalarType::Undefined});
        values.push_back(tpu::lower::undefined(recording.graph));
        continue;
      }
      if (t.is_cpu()) throw RecordingAbandoned("a recorded call returns a host tensor");
      fresh.push_back({t.scalar_type(), c10::DimVector(t.sizes()), dense_strides_of(t)});
      values.push_back(in_memory_order(recording.read(t), fresh.back()));
    }
  }
  auto plan = std::make_unique<Plan>();
  placeholders.write_resized(*plan);
  return plan_of_recording(recording, call, call.key(), std::move(fresh), std::move(values),
                           std::move(plan));
}

std::unique_ptr<Plan> build_unruled(const OpCall& call) {
  try {
    return record_decomposition(call);
  } catch (const std::exception&) {
    return build_host_plan(call);
  }
}

// Whether the op ran as a program: by its decomposition, or as a host call. That it could not is
// remembered per key.
bool run_as_program(const Op& op, torch::jit::Stack& stack) {
  std::optional<OpCall> call;
  try {
    call.emplace(op, stack);
  } catch (const c10::Error&) {
    return false;  // arguments a program cannot have: the CPU kernel names the mistake
  }
  if (UnruledOps::instance().refused(call->key())) return false;
  const Plan* plan = nullptr;
  try {
    plan = &plan_for(*call, [&] { return build_unruled(*call); });
  } catch (const std::exception&) {
    UnruledOps::instance().refuse(call->key());
    return false;  // the CPU kernel computes it, or raises PyTorch's own error
  }
  Tensors fresh = launch(*plan, *call);
  return_results(*call, std::move(fresh));
  return true;
}

void run_unruled(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  translating_errors([&] {
    const Op& op = UnruledOps::instance().op(handle);
    if (Recording* recording = Recording::current()) {
      if (decomposition.load() && decomposition.load()(handle, *stack)) return;
      return record_op(op, *stack, *recording);
    }
    if (!run_as_program(op, *stack)) run_on_cpu(handle, *stack);
  });
}

}  // namespace

void set_fallback_policy(FallbackPolicy p) { policy = p; }
void note_fallbacks(const std::vector<std::string>& ops) {
  for (const std::string& name : ops) note_fallback(name, "");
}

void set_decomposition(Decomposition d) { decomposition = d; }

std::map<std::string, int64_t> fallback_counts() {
  const std::lock_guard lock(counts().mutex);
  return counts().by_op;
}

void reset_fallback_counts() {
  const std::lock_guard lock(counts().mutex);
  for (auto& [op, n] : counts().by_op) n = 0;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_unruled>());
}

}  // namespace torch_tpu
