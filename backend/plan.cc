// SPDX-License-Identifier: Apache-2.0
#include "backend/plan.h"

#include <mutex>

#include "backend/convert.h"
#include "backend/device.h"
#include "backend/host_lowering.h"
#include "backend/plan_record.h"

namespace torch_tpu {
namespace {

using tpu::ir::Value;
using tpu::ir::Values;

// Results at least this large are written into our allocator's memory.
constexpr size_t kDestinationBytes = size_t{1} << 20;

tpu::exec::CompileReason reason_of(const OpCall& call) {
  // What is known of the op so far, to tell a user why this call had to be compiled.
  static std::mutex mutex;
  static auto* seen_ops = new std::unordered_map<uint64_t, std::vector<std::string>>;
  std::string dtypes;
  for (const TensorArg& t : call.tensors) dtypes += c10::toString(t.tensor->scalar_type());
  const std::lock_guard lock(mutex);
  auto& seen = (*seen_ops)[call.op.name_hash];
  if (seen.empty()) {
    seen.push_back(dtypes);
    return tpu::exec::CompileReason::kNewOp;
  }
  if (std::find(seen.begin(), seen.end(), dtypes) == seen.end()) {
    seen.push_back(dtypes);
    return tpu::exec::CompileReason::kNewDtype;
  }
  return tpu::exec::CompileReason::kNewShape;
}

std::string describe_arguments(const OpCall& call) {
  std::string text;
  for (const TensorArg& t : call.tensors) {
    const tpu::ir::Type type{dtype_of(t.tensor->scalar_type()), dims_of(t.tensor->sizes())};
    text += (text.empty() ? "" : ", ") + type.str();
  }
  return text;
}

// Below this many elements a program's run time does not show, its compile time does.
constexpr int64_t kSmallElements = 32 * 1024;

tpu::exec::OptionSet options_of(const OpCall& call, const tpu::exec::ProgramLayout& layout) {
  if (!call.op.rule) return tpu::exec::OptionSet::kFused;
  int64_t elements = 0;
  for (const tpu::ir::Type& t : layout.arrays) elements += t.numel();
  const bool fast = !call.op.rule->traits.reduction || elements < kSmallElements;
  return fast ? tpu::exec::OptionSet::kFast : tpu::exec::OptionSet::kReduction;
}

// Compiles the recording's graph with these results, and fills in the plan's launch part.
void compile_into(Plan& plan, Recording& recording, const OpCall& call, const Values& results) {
  tpu::ir::Graph& graph = recording.graph;
  const std::vector<int> kept = graph.prune(results);
  tpu::exec::ProgramLayout layout;
  for (size_t p = 0; p < kept.size(); ++p) {
    const Recording::Pinned& pin = recording.pinned()[static_cast<size_t>(kept[p])];
    plan.parameters.push_back(pin.tensor);
    layout.arrays.push_back(pin.initial.type());
    for (size_t r = 0; r < plan.results.size(); ++r) {
      const int target = plan.results[r].tensor;
      // Not TensorArg::cell: an out= tensor that was resized has a new one.
      if (target < 0 || &Cell::of(*call.tensors[static_cast<size_t>(target)].tensor) != pin.cell) {
        continue;
      }
      if (results[r].type() == pin.initial.type()) {
        layout.aliases.push_back({static_cast<int>(r), static_cast<int>(p)});
      }
    }
  }
  for (size_t r = 0; r < results.size(); ++r) {
    layout.results.push_back(results[r].type());
    const bool aliased =
        std::any_of(layout.aliases.begin(), layout.aliases.end(),
                    [&](const auto& a) { return a.result == static_cast<int>(r); });
    if (graph.target().cpu && !aliased && results[r].type().bytes() >= kDestinationBytes) {
      layout.destinations.push_back(static_cast<int>(r));
    }
  }
  plan.words = graph.scalar_uses();
  layout.words = graph.words();
  layout.checks = graph.checks();
  plan.random_blocks = graph.random_blocks();
  auto module = graph.module(results, layout.aliases, layout.destinations);
  plan.program =
      tpu::value_or_throw(runtime().compiler().start({.op = call.op.name,
                                                      .module = std::move(module),
                                                      .layout = layout,
                                                      .options = options_of(call, layout),
                                                      .reason = reason_of(call),
                                                      .detail = describe_arguments(call)}));
}

// Run-time starts for moving views, as values per tensor; numbers their slots.
std::vector<Values> position_operands(Moving& moving, Recording& recording, const OpCall& call) {
  std::vector<Values> starts(call.tensors.size());
  int slot = static_cast<int>(call.numbers.size());
  for (Plan::Position& p : moving) {
    p.first_slot = slot;
    for (size_t axis = 0; axis < p.form.starts.size(); ++axis) {
      starts[static_cast<size_t>(p.tensor)].push_back(
          recording.graph.scalar(slot++, tpu::ir::DType::kS32));
    }
  }
  return starts;
}

void pin_arguments(Recording& recording, const OpCall& call) {
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (call.tensors[i].cell && !call.tensors[i].out) {
      recording.pin(call.tensors[i], static_cast<int>(i));
    }
  }
}

// The call's results reach its tensors. `starts` as made by position_operands().
std::unique_ptr<Plan> plan_of_lowered(Recording& recording, const OpCall& call,
                                      const tpu::Hash128& key, Lowered lowered,
                                      const std::vector<Values>& starts,
                                      std::unique_ptr<Plan> plan) {
  // out= tensors take their shape now, so that their cells are seen as they will be written.
  for (size_t i = 0; i < lowered.resized.size(); ++i) {
    const int n = lowered.written[i];
    const TensorArg& to = call.tensors[static_cast<size_t>(n)];
    plan->resized.push_back(n);
    plan->resized_to.push_back(lowered.resized[i]);
    resize_out(*to.tensor, lowered.resized[i]);
    recording.pin({to.tensor, &Cell::of(*to.tensor)}, n);
  }
  Values values;
  for (size_t i = 0; i < lowered.fresh.size(); ++i) {
    const ResultSpec& s = lowered.fresh[i];
    const bool defined = s.dtype != c10::ScalarType::Undefined;
    values.push_back(defined ? in_memory_order(lowered.results[i], s) : lowered.results[i]);
  }
  for (size_t i = 0; i < lowered.written.size(); ++i) {
    const auto n = static_cast<size_t>(lowered.written[i]);
    recording.write(*call.tensors[n].tensor, lowered.results[lowered.fresh.size() + i], starts[n]);
  }
  return plan_of_recording(recording, call, key, std::move(lowered.fresh), std::move(values),
                           std::move(plan));
}

}  // namespace

void check_ranges(const Plan& plan, const OpCall& call) {
  for (const tpu::ir::NumberRange& r : plan.ranges) {
    tpu::lower::require_fits(call.numbers[static_cast<size_t>(r.slot)], r.dtype);
  }
}

Value in_memory_order(Value value, const ResultSpec& s) {
  const tpu::lower::ViewMap map{dtype_of(s.dtype), dims_of(s.sizes), dims_of(s.strides), 0};
  const size_t elements = at::detail::computeStorageNbytes(s.sizes, s.strides, 1);
  return tpu::lower::to_memory(value, map, static_cast<int64_t>(elements));
}

std::unique_ptr<Plan> plan_of_recording(Recording& recording, const OpCall& call,
                                        const tpu::Hash128& key, std::vector<ResultSpec> fresh,
                                        Values values, std::unique_ptr<Plan> plan) {
  plan->fresh = std::move(fresh);
  plan->fallbacks = recording.fallbacks;
  Values results;
  for (size_t i = 0; i < plan->fresh.size(); ++i) {
    if (plan->fresh[i].dtype == c10::ScalarType::Undefined) continue;
    plan->results.push_back({.fresh = static_cast<int>(i)});
    results.push_back(values[i]);
  }
  for (const Recording::Pinned& p : recording.pinned()) {
    if (p.current == p.initial) continue;
    plan->results.push_back({.tensor = p.tensor});
    results.push_back(p.current);
  }
  plan->ranges = recording.graph.number_ranges();
  check_ranges(*plan, call);
  if (!results.empty() || !recording.graph.checks().empty()) {
    compile_into(*plan, recording, call, results);
  }
  store_plan(*plan, key);
  return plan;
}

std::unique_ptr<Plan> build_plan(const OpCall& call, const tpu::Hash128& key, Moving moving) {
  auto plan = std::make_unique<Plan>();
  Recording recording(call.op.name, call.device);
  pin_arguments(recording, call);
  const std::vector<Values> starts = position_operands(moving, recording, call);
  plan->positions = std::move(moving);
  Lowered lowered = lower_call(recording, call, {.starts = &starts});
  return plan_of_lowered(recording, call, key, std::move(lowered), starts, std::move(plan));
}

std::unique_ptr<Plan> build_host_plan(const OpCall& call) {
  Recording recording(call.op.name, call.device);
  pin_arguments(recording, call);
  return plan_of_lowered(recording, call, call.key(), lower_on_host(recording, call),
                         std::vector<Values>(call.tensors.size()), std::make_unique<Plan>());
}

}  // namespace torch_tpu
