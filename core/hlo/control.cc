// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/control.h"

#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/hlo/attributes.h"

namespace tpu::hlo {
namespace {

std::vector<Type> types_of(const Values& values) {
  std::vector<Type> types;
  for (const Value& v : values) types.push_back(v.type());
  return types;
}

std::string layouts_text(const std::vector<Dims>& orders) {
  std::vector<std::string> layouts;
  layouts.reserve(orders.size());
  for (const Dims& order : orders) {
    layouts.push_back(fmt::format("dense<{}> : tensor<{}xindex>",
                                  order.empty() ? "" : list_text(order), order.size()));
  }
  return fmt::format("[{}]", fmt::join(layouts, ", "));
}

}  // namespace

Values while_loop(const Values& initial, const Condition& condition, const LoopBody& body) {
  TPU_CHECK(!initial.empty(), "a loop without state never ends");
  const std::vector<Type> types = types_of(initial);
  const auto test = [&](std::span<const Value> state) { return Values{condition(state)}; };
  const auto step = [&](std::span<const Value> state) {
    Values next = body(state);
    TPU_CHECK(types_of(next) == types, "a loop's state keeps its types");
    return next;
  };
  return initial[0].graph().node({.op = "stablehlo.while",
                                  .inputs = initial,
                                  .results = types,
                                  .attributes = {},
                                  .blocks = {{types, test}, {types, step}}});
}

Values for_loop(int64_t count, const Values& initial,
                const std::function<Values(Value, std::span<const Value>)>& body) {
  TPU_CHECK(!initial.empty(), "a loop without state does nothing");
  Graph& graph = initial[0].graph();
  const auto number = [&graph](int64_t v) { return constant(graph, DType::kS32, v); };
  Values state{number(0)};
  state.insert(state.end(), initial.begin(), initial.end());
  Values last = while_loop(
      state, [&](std::span<const Value> s) { return lt(s[0], number(count)); },
      [&](std::span<const Value> s) {
        Values next{add(s[0], number(1))};
        const Values results = body(s[0], s.subspan(1));
        next.insert(next.end(), results.begin(), results.end());
        return next;
      });
  last.erase(last.begin());
  return last;
}

Values if_else(Value predicate, const std::function<Values()>& on_true,
               const std::function<Values()>& on_false) {
  TPU_CHECK(predicate.type() == (Type{DType::kPred, {}}), "a condition is one bool");
  std::vector<Type> types;
  const auto yes = [&](std::span<const Value>) {
    Values results = on_true();
    types = types_of(results);
    return results;
  };
  const auto no = [&](std::span<const Value>) {
    Values results = on_false();
    TPU_CHECK(types_of(results) == types, "both branches give the same types");
    return results;
  };
  return predicate.graph().node({.op = "stablehlo.if",
                                 .inputs = {predicate},
                                 .results = {},
                                 .attributes = {},
                                 .blocks = {{{}, yes}, {{}, no}},
                                 .results_of_block = true});
}

Values custom_call(Graph& graph, std::string_view target, const Values& operands,
                   const std::vector<Type>& results, std::string_view backend_config_dict) {
  return graph.node({.op = "stablehlo.custom_call",
                     .inputs = operands,
                     .results = results,
                     .attributes = fmt::format("call_target_name = \"{}\", api_version = 4 : i32, "
                                               "backend_config = {}",
                                               target, backend_config_dict)});
}

Values custom_call_in_order(Graph& graph, std::string_view target, const Values& operands,
                            const std::vector<Type>& results, const MemoryOrders& orders,
                            std::string_view backend_config_dict) {
  return graph.node({.op = "stablehlo.custom_call",
                     .inputs = operands,
                     .results = results,
                     .attributes = fmt::format(
                         "call_target_name = \"{}\", api_version = 4 : i32, backend_config = {}, "
                         "operand_layouts = {}, result_layouts = {}",
                         target, backend_config_dict, layouts_text(orders.operands),
                         layouts_text(orders.results))});
}

Value optimization_barrier(Value x) {
  return make("stablehlo.optimization_barrier", {x}, x.type());
}

}  // namespace tpu::hlo
