// SPDX-License-Identifier: Apache-2.0
#include "backend/boxed.h"

#include <shared_mutex>

#include "backend/convert.h"
#include "backend/host_lowering.h"
#include "backend/positions.h"

namespace torch_tpu {
namespace {

// Plans by key. Plans are never freed while the process runs: clear_plans() sets them aside, since
// another thread may be launching one.
class PlanTable {
 public:
  static PlanTable& instance() {
    static auto* table = new PlanTable;
    return *table;
  }
  const Plan* find(const tpu::Hash128& key) const {
    const std::shared_lock lock(mutex_);
    const auto it = plans_.find(key);
    return it == plans_.end() ? nullptr : it->second.get();
  }
  const Plan& insert(const tpu::Hash128& key, std::unique_ptr<Plan> plan) {
    const std::lock_guard lock(mutex_);
    return *plans_.try_emplace(key, std::move(plan)).first->second;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    for (auto& [key, plan] : plans_) retired_.push_back(std::move(plan));
    plans_.clear();
  }

 private:
  mutable std::shared_mutex mutex_;  // guards the members
  std::unordered_map<tpu::Hash128, std::unique_ptr<Plan>, tpu::Hash128Hasher> plans_;
  std::vector<std::unique_ptr<Plan>> retired_;
};

const Plan& remember(const tpu::Hash128& key, const PlanMaker& make) {
  std::unique_ptr<Plan> plan = load_plan(key);
  if (!plan) plan = make();
  return PlanTable::instance().insert(key, std::move(plan));
}

const Plan& plan_by_rule(const OpCall& call) {
  if (const Plan* known = PlanTable::instance().find(call.key())) [[likely]]
    return *known;
  Moving moving = PositionHistory::instance().moving_views(call);
  if (moving.empty()) {
    return remember(call.key(), [&] { return build_plan(call, call.key(), {}); });
  }
  const tpu::Hash128 key = PositionHistory::key(call, moving);
  if (const Plan* known = PlanTable::instance().find(key)) return *known;
  return remember(key, [&] { return build_plan(call, key, std::move(moving)); });
}

// What the group's own metadata function sends here: its outputs are in place already.
void return_out_arguments(const Op& op, torch::jit::Stack& stack) {
  const size_t n = op.args.size();
  std::vector<c10::IValue> outs;
  for (size_t i = 0; i < n; ++i) {
    if (op.args[i].out) outs.push_back(torch::jit::peek(stack, i, n));
  }
  torch::jit::drop(stack, n);
  for (auto& v : outs) stack.push_back(std::move(v));
}

}  // namespace

void record_op(const Op& op, torch::jit::Stack& stack, Recording& recording) {
  OpCall call(op, stack);
  call.check_numbers();
  const Lowered lowered = op.rule ? lower_call(recording, call, {.literal_numbers = true})
                                  : lower_on_host(recording, call);
  for (size_t i = 0; i < lowered.resized.size(); ++i) {
    resize_out(*call.tensors[static_cast<size_t>(lowered.written[i])].tensor, lowered.resized[i]);
  }
  Tensors fresh;
  for (size_t i = 0; i < lowered.fresh.size(); ++i) {
    fresh.push_back(make_result(lowered.fresh[i], call.device));
    if (fresh.back().defined()) recording.write(fresh.back(), lowered.results[i]);
  }
  for (size_t i = 0; i < lowered.written.size(); ++i) {
    recording.write(*call.tensors[static_cast<size_t>(lowered.written[i])].tensor,
                    lowered.results[lowered.fresh.size() + i]);
  }
  return_results(call, std::move(fresh));
}

void return_results(OpCall& call, Tensors fresh) {
  const auto& returns = call.op.handle.schema().returns();
  size_t lists = 0;
  size_t singles = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    if (call.op.returns[i] >= 0) continue;
    lists += returns[i].type()->kind() == c10::TypeKind::ListType;
    singles += returns[i].type()->kind() == c10::TypeKind::TensorType;
  }
  const size_t per_list = lists ? (fresh.size() - std::min(fresh.size(), singles)) / lists : 0;
  c10::SmallVector<c10::IValue, 4> values;
  size_t next = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    const auto kind = returns[i].type()->kind();
    if (call.op.returns[i] >= 0) {
      values.push_back(call.args[static_cast<size_t>(call.op.returns[i])]);
    } else if (kind == c10::TypeKind::ListType) {
      c10::List<at::Tensor> list;
      for (size_t k = 0; k < per_list; ++k) list.push_back(std::move(fresh[next++]));
      values.emplace_back(std::move(list));
    } else if (kind == c10::TypeKind::TensorType) {
      values.emplace_back(next < fresh.size() ? std::move(fresh[next++]) : at::Tensor());
    } else {
      values.emplace_back(int64_t{0});  // counts that only other kernels' backward reads
    }
  }
  call.finish(values);
}

const Plan& plan_for(const OpCall& call, const PlanMaker& make) {
  if (const Plan* known = PlanTable::instance().find(call.key())) return *known;
  return remember(call.key(), make);
}

void run_op(const Op& op, torch::jit::Stack& stack) {
  translating_errors([&] {
    if (swallowed_by_metadata(op)) return return_out_arguments(op, stack);
    prepare_indices(op, stack);
    if (Recording* recording = Recording::current()) return record_op(op, stack, *recording);
    OpCall call(op, stack);
    call.check_numbers();
    Tensors fresh = launch(plan_by_rule(call), call);
    return_results(call, std::move(fresh));
  });
}

void clear_plans() { PlanTable::instance().clear(); }

InPlaceOp::InPlaceOp(const std::string& base, const std::string& overload)
    : op_(c10::Dispatcher::singleton().findSchemaOrThrow((base + "_").c_str(), overload.c_str()),
          tpu::lower::find_rule(overload.empty() ? base : base + "." + overload),
          Op::Form::kInplace,
          c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str())) {}

}  // namespace torch_tpu
