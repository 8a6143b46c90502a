// SPDX-License-Identifier: Apache-2.0
#include "lower/rule.h"

#include "core/hlo/shape.h"

#include <unordered_map>

#include "lower/families.h"

namespace tpu::lower {
namespace {

Scalar::Kind kind_of_literal(const Number& n) {
  return static_cast<Scalar::Kind>(n.index());  // the alternatives are in Kind's order
}

}  // namespace

double to_double(const Number& n) {
  return std::visit(
      [](auto v) -> double {
        if constexpr (std::is_same_v<decltype(v), std::complex<double>>) {
          return v.real();
        } else {
          return static_cast<double>(v);
        }
      },
      n);
}

int64_t to_int(const Number& n) {
  if (const auto* i = std::get_if<int64_t>(&n)) return *i;
  return static_cast<int64_t>(to_double(n));
}

Scalar::Scalar(Graph& graph, Number literal)
    : graph_(&graph), kind_(kind_of_literal(literal)), literal_(literal) {}

DType Scalar::natural_type() const {
  switch (kind_) {
    case Kind::kBool:
      return DType::kPred;
    case Kind::kInt:
      return DType::kS64;
    case Kind::kFloat:
      return DType::kF32;
    case Kind::kComplex:
      return DType::kC64;
  }
  return DType::kF32;
}

Value Scalar::as(DType t) const {
  if (literal_) return hlo::constant(*graph_, t, *literal_);
  return hlo::convert(graph_->scalar(slot_, t), t);
}

Value Scalar::like(Value x) const { return hlo::broadcast_to(as(x.dtype()), x.dims()); }

Value Coefficient::times(Value x) const { return is_one() ? x : hlo::mul(x, scalar_.like(x)); }

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = collect_families();
  return rules;
}

const Rule* find_rule(std::string_view name) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, const Rule*>;
    for (const Rule& r : all_rules()) {
      const bool first = map->emplace(r.name, &r).second;
      TPU_CHECK(first, (r.name + " has one rule").c_str());
    }
    return map;
  }();
  const auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace tpu::lower
