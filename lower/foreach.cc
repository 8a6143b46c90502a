// SPDX-License-Identifier: Apache-2.0
// _foreach_*: the rule of an operator of single tensors applied to every element of lists, as one
// program.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

using Kinds = std::vector<ParamKind>;
constexpr ParamKind kList = ParamKind::kTensor;

// The i-th call's share of an argument: an element of a list, or the argument itself.
Arg element_of(const Arg& a, size_t i) {
  if (const auto* list = std::get_if<Values>(&a)) return list->at(i);
  if (const auto* list = std::get_if<std::vector<Scalar>>(&a)) return list->at(i);
  return a;
}

void check_list(const Arg& a, size_t count) {
  if (const auto* list = std::get_if<Values>(&a)) {
    require(list->size() == count,
            "Tensor lists must have the same number of tensors, got {} and {}", count,
            list->size());
  }
  if (const auto* list = std::get_if<std::vector<Scalar>>(&a)) {
    require(list->size() == count, "Tensor list must have same number of elements as scalar list.");
  }
  if (const auto* tensor = std::get_if<Value>(&a)) {
    require(tensor->rank() == 0 && tensor->numel() == 1,
            "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
            tensor->rank(), tensor->numel());
  }
}

size_t list_length(std::span<const Arg> args) {
  for (const Arg& a : args) {
    if (const auto* list = std::get_if<Values>(&a)) {
      require(!list->empty(), "Tensor list must have at least one tensor.");
      return list->size();
    }
  }
  return 0;
}

// An argument in the form the single-tensor rule's parameter takes it.
Arg fitted(const Arg& a, ParamKind kind, Graph& graph) {
  const auto* scalar = std::get_if<Scalar>(&a);
  if (kind == ParamKind::kTensor && scalar) return number(*scalar);
  if (kind == ParamKind::kCoefficient && !std::holds_alternative<Coefficient>(a)) {
    return Coefficient(Scalar(graph, int64_t{1}), Coefficient::Class::kOne);
  }
  return a;
}

Values apply_to_each(const std::string& op, const Call& call) {
  const Rule* rule = find_rule(op);
  TPU_CHECK(rule, "the single-tensor operator has a rule");
  const size_t count = list_length(call.args);
  for (const Arg& a : call.args) check_list(a, count);
  Values results;
  for (size_t i = 0; i < count; ++i) {
    std::vector<Arg> args;
    for (size_t p = 0; p < rule->params.size(); ++p) {
      const Arg mine = p < call.args.size() ? element_of(call.args[p], i) : Arg();
      args.push_back(fitted(mine, rule->params[p], call.graph));
    }
    const Outputs none;
    results.push_back(rule->lower({call.graph, args, none})[0]);
  }
  return results;
}

Rule each(const std::string& name, const std::string& op, Kinds kinds) {
  Rule rule("aten::_foreach_" + name, +[](Values v) { return v; },
            {.strides = Strides::kPointwise});
  rule.lower = [op = "aten::" + op](const Call& call) { return apply_to_each(op, call); };
  rule.params = std::move(kinds);
  return rule;
}

// List, Scalar, ScalarList and, where PyTorch has it, Tensor.
void add_binary(Rules& rules, const std::string& name, const std::string& by_tensor,
                const std::string& by_number, bool alpha) {
  Kinds lists{kList, kList};
  if (alpha) lists.push_back(ParamKind::kCoefficient);
  rules.push_back(each(name + ".List", by_tensor, lists));
  rules.push_back(each(name + ".Scalar", by_number, {kList, ParamKind::kScalar}));
  rules.push_back(each(name + ".ScalarList", by_number, {kList, ParamKind::kScalar}));
}

void add_arithmetic(Rules& rules) {
  add_binary(rules, "add", "add.Tensor", "add.Tensor", true);
  add_binary(rules, "sub", "sub.Tensor", "sub.Tensor", true);
  add_binary(rules, "mul", "mul.Tensor", "mul.Tensor", false);
  add_binary(rules, "div", "div.Tensor", "div.Tensor", false);
  add_binary(rules, "clamp_max", "clamp_max.Tensor", "clamp_max", false);
  add_binary(rules, "clamp_min", "clamp_min.Tensor", "clamp_min", false);
  add_binary(rules, "maximum", "maximum", "clamp_min", false);
  add_binary(rules, "minimum", "minimum", "clamp_max", false);
  rules.push_back(
      each("add.Tensor", "add.Tensor", {kList, ParamKind::kTensor, ParamKind::kCoefficient}));
  rules.push_back(each("mul.Tensor", "mul.Tensor", {kList, ParamKind::kTensor}));
  rules.push_back(each("div.Tensor", "div.Tensor", {kList, ParamKind::kTensor}));
  rules.push_back(each("pow.List", "pow.Tensor_Tensor", {kList, kList}));
  rules.push_back(each("pow.Scalar", "pow.Tensor_Scalar", {kList, ParamKind::kExponent}));
  rules.push_back(each("pow.ScalarList", "pow.Tensor_Tensor", {kList, ParamKind::kScalar}));
  rules.push_back(each("pow.ScalarAndTensor", "pow.Scalar", {ParamKind::kScalar, kList}));
  rules.push_back(each("lerp.List", "lerp.Tensor", {kList, kList, kList}));
  for (const char* overload : {"Scalar", "ScalarList"}) {
    const std::string suffix = std::string(".") + overload;
    rules.push_back(each("lerp" + suffix, "lerp.Scalar", {kList, kList, ParamKind::kScalar}));
    for (const char* op : {"addcmul", "addcdiv"}) {
      rules.push_back(each(op + suffix, op, {kList, kList, kList, ParamKind::kScalar}));
    }
  }
  rules.push_back(each("mm", "mm", {kList, kList}));
  rules.back().traits.strides = Strides::kContiguous;
}

constexpr const char* kUnary[] = {
    "abs",        "acos", "asin",  "atan",  "ceil",  "clone",   "cos",  "cosh",  "erf",
    "erfc",       "exp",  "expm1", "floor", "frac",  "lgamma",  "log",  "log10", "log1p",
    "log2",       "max",  "neg",   "round", "rsqrt", "sigmoid", "sign", "sin",   "sinh",
    "reciprocal", "sqrt", "tan",   "tanh",  "trunc", "zero"};

// self + s[i] * term(a, b), the factors s being the elements of one tensor.
template <Value (*term)(Value, Value)>
Values add_scaled(Values self, Values a, Values b, Value factors) {
  require(factors.rank() == 1,
          "Expected packed scalar Tensor to be of dimension 1. Got {} instead.", factors.rank());
  require(factors.numel() == static_cast<int64_t>(self.size()),
          "Expected length of scalars to match input of length {} but got {} instead.", self.size(),
          factors.numel());
  require(a.size() == self.size() && b.size() == self.size(),
          "Tensor lists must have the same number of tensors, got {} and {}", self.size(),
          a.size() == self.size() ? b.size() : a.size());
  for (size_t i = 0; i < self.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Value factor = hlo::reshape(hlo::slice_axis(factors, 0, at, at + 1), {});
    self[i] = computed(self[i], a[i], b[i], [&](Value x, Value y, Value z) {
      return x + hlo::broadcast_to(hlo::convert(factor, x.dtype()), x.dims()) * term(y, z);
    });
  }
  return self;
}

Value power_sum(Value x, double ord) {
  const Dims axes = all_axes(x.rank());
  if (ord == 0) return sum_over(hlo::convert(differs(x, 0.0), x.dtype()), axes);
  if (ord == 1) return sum_over(x, axes);
  if (ord == 2) return sum_over(x * x, axes);
  return sum_over(hlo::pow(x, hlo::full_like(x, ord)), axes);
}

Value norm_of(Value x, double ord) {
  const Dims axes = all_axes(x.rank());
  if (std::isinf(ord)) return ord > 0 ? max_over(x, axes) : min_over(x, axes);
  const Value sum = power_sum(x, ord);
  if (ord == 0 || ord == 1) return sum;
  return ord == 2 ? hlo::sqrt(sum) : hlo::pow(sum, hlo::full_like(sum, 1.0 / ord));
}

template <Value (*measure)(Value, double)>
Values measured(Values self, Number ord, std::optional<DType> dtype) {
  require(!self.empty(), "Tensor list must have at least one tensor.");
  for (Value& x : self) {
    require(ir::is_float(x.dtype()) || ir::is_complex(x.dtype()),
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            scalar_type_name(x.dtype()));
    require(x.numel() > 0 || !std::isinf(to_double(ord)),
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the "
            "operation does not have an identity");
    const DType result = ir::real_of(dtype.value_or(x.dtype()));
    x = measure(hlo::abs(hlo::convert(x, ir::compute_type(dtype.value_or(x.dtype())))),
                to_double(ord));
    x = hlo::convert(x, result);
  }
  return self;
}

}  // namespace

Rules foreach_rules() {
  const Traits reduces{.reduction = true};
  const Traits pointwise{.strides = Strides::kPointwise};
  Rules rules{
      {"aten::_foreach_addcmul.Tensor", add_scaled<hlo::mul>, pointwise},
      {"aten::_foreach_addcdiv.Tensor", add_scaled<hlo::div>, pointwise},
      {"aten::_foreach_norm.Scalar", measured<norm_of>, reduces},
      {"aten::_foreach_powsum.Scalar", measured<power_sum>, reduces},
  };
  add_arithmetic(rules);
  for (const char* name : kUnary) rules.push_back(each(name, name, {kList}));
  return rules;
}

}  // namespace tpu::lower
