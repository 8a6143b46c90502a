// SPDX-License-Identifier: Apache-2.0
#include "lower/rule.h"

#include "core/hlo/shape.h"

#include <cmath>
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

std::optional<double> special_exponent(const Number& n) {
  const auto* z = std::get_if<std::complex<double>>(&n);
  if (z && z->imag() != 0) return std::nullopt;
  const double e = to_double(n);
  const bool whole = e == std::floor(e) && e >= -2 && e <= 8;
  return whole || std::abs(e) == 0.5 ? std::optional(e) : std::nullopt;
}

uint8_t exponent_class(const Number& n) {
  constexpr uint8_t kNegative = 1;
  constexpr uint8_t kFirstSpecial = 8;
  if (const auto e = special_exponent(n)) return static_cast<uint8_t>(*e * 2 + kFirstSpecial);
  return to_double(n) < 0 ? kNegative : 0;
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
  // The words of an integer would drop the fraction that makes it true.
  if (ir::is_bool(t) && kind_ >= Kind::kFloat) {
    const Value x = graph_->scalar(slot_, kind_ == Kind::kFloat ? DType::kF64 : DType::kC128);
    return hlo::ne(x, hlo::full_like(x, int64_t{0}));
  }
  return hlo::convert(graph_->scalar(slot_, t), t);
}

Value Scalar::like(Value x) const { return hlo::broadcast_to(as(x.dtype()), x.dims()); }

Exponent::Exponent(Scalar scalar, const Number& n)
    : scalar_(scalar), special_(special_exponent(n)), negative_(to_double(n) < 0) {}

void Scalar::require_fits(DType t) const {
  if (literal_) return lower::require_fits(*literal_, t);
  graph_->require_range(slot_, t);
}

Value Scalar::exact(DType t) const {
  require_fits(t);
  return as(t);
}

Value Scalar::exact_like(Value x) const {
  require_fits(x.dtype());
  return like(x);
}

void Coefficient::require_fits(DType t) const {
  if (class_ == Class::kOther) scalar_.require_fits(t);
}

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
