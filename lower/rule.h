// SPDX-License-Identifier: Apache-2.0
// A rule turns one ATen overload into graph values. No torch here.
//
// The C++ parameter list of the rule's function is the decoder: it says how each argument of the
// overload's schema reaches the rule, in schema order.
//   Value, std::optional<Value>, Values, std::vector<std::optional<Value>>   tensors
//   Scalar, std::optional<Scalar>, std::vector<Scalar>   numbers read at run time: changing them
//                                                        compiles nothing (Scalar and float args)
//   Coefficient        a run-time number whose being 0 or 1 is known (alpha, beta)
//   Exponent           a run-time number, unless it is one that powers have a shorter form for
//   bool, int64_t, double, Number, Dims, std::string, DType, optionals and lists of them
//                                                        known while lowering, part of the key
// Arguments of type Generator, Device, Layout, MemoryFormat and pin_memory are not passed. Trailing
// arguments a rule does not need may be left out. Parameters that stand for no argument:
//   Graph&             the graph under construction, for rules without tensor arguments
//   const Outputs&     types of the outputs, where PyTorch's own metadata is known beforehand
//   Extent             the size that Traits::extent found in run-time numbers
//
// Only the functional overload is declared; in-place and out= are derived from the schema. A rule
// may also be declared for an overload that mutates arguments: it returns first the schema's fresh
// results, then the new value of each mutated argument in order (a list counts once per element).
// A result is converted to the dtype PyTorch's metadata asks for; its dims must be right. A tensor
// that the call does not ask for (output_mask) is undefined(); numbers that a schema returns beside
// tensors are not among the results.
#pragma once

#include <complex>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/hlo/elementwise.h"

namespace tpu::lower {

using ir::Dims;
using ir::DType;
using ir::Graph;
using ir::Type;
using ir::Value;
using ir::Values;

// A number known while lowering.
using Number = hlo::Literal;
double to_double(const Number& n);
int64_t to_int(const Number& n);
// Throws PyTorch's "value cannot be converted to type ... without overflow" if n has no value in t.
void require_fits(const Number& n, DType t);
double greatest_finite(DType t);  // of real types; for integers the greatest number

// A number of the call. Usually known only at run time; as(t) reads it in type t, rounded once.
class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kFloat, kComplex };
  Scalar(Graph& graph, int slot, Kind kind) : graph_(&graph), slot_(slot), kind_(kind) {}
  Scalar(Graph& graph, Number literal);  // for rules that call other rules

  Kind kind() const { return kind_; }
  Graph& graph() const { return *graph_; }
  // Default dtype of the kind: bool, s64, f32, c64. What a tensor of other category promotes with.
  DType natural_type() const;
  Value as(DType t) const;    // rank 0
  Value like(Value x) const;  // x's type
  // Calls fail with PyTorch's text if the number overflows t, as its CPU kernels do that convert a
  // Scalar to t.
  void require_fits(DType t) const;
  Value exact(DType t) const;  // require_fits() and as()
  Value exact_like(Value x) const;
  std::optional<Number> literal() const { return literal_; }

 private:
  Graph* graph_;
  int slot_ = 0;
  Kind kind_;
  std::optional<Number> literal_;
};

// alpha or beta: 0 and 1 are part of the key, so a rule may drop the product.
class Coefficient {
 public:
  enum class Class : uint8_t { kZero, kOne, kOther };
  Coefficient(Scalar scalar, Class c) : scalar_(scalar), class_(c) {}
  bool is_zero() const { return class_ == Class::kZero; }
  bool is_one() const { return class_ == Class::kOne; }
  const Scalar& scalar() const { return scalar_; }
  Value times(Value x) const;  // x itself for 1
  void require_fits(DType t) const;

 private:
  Scalar scalar_;
  Class class_;
};

// The exponent of a power.
class Exponent {
 public:
  Exponent(Scalar scalar, const Number& n);
  const Scalar& scalar() const { return scalar_; }
  std::optional<double> special() const { return special_; }
  bool negative() const { return negative_; }

 private:
  Scalar scalar_;
  std::optional<double> special_;
  bool negative_;
};
// The exponent itself if it is one that powers have a shorter form for: -2, -1, and 0 to 8 by ones,
// and by halves up to 1 in size.
std::optional<double> special_exponent(const Number& n);
// What of an exponent is part of the key: the special ones, and the sign of the others.
uint8_t exponent_class(const Number& n);

// Output types by PyTorch's native metadata; empty where the rule itself decides.
struct Outputs {
  std::vector<Type> types;
  bool known() const { return !types.empty(); }
  const Type& operator[](size_t i) const { return types[i]; }
};

using OptionalValues = std::vector<std::optional<Value>>;
using Arg = std::variant<std::monostate, Value, Values, OptionalValues, Scalar, std::vector<Scalar>,
                         Coefficient, Exponent, Number, Dims, std::vector<double>,
                         std::vector<bool>, std::string, DType>;

// A size that depends on run-time numbers; part of the key in their stead.
struct Extent {
  int64_t size;
};

struct Call {
  Graph& graph;
  std::span<const Arg> args;
  const Outputs& outputs;
  int64_t extent = 0;
};

// How a schema argument must reach the rule, as far as the caller has a choice.
enum class ParamKind : uint8_t {
  kTensor,       // Value and lists of it
  kScalar,       // run-time number(s)
  kCoefficient,  // run-time number, class in the key
  kExponent,     // run-time number, class in the key
  kStatic,       // in the key
  kContext,      // stands for no argument
};

template <class T>
struct Decode;  // ParamKind kind; T from(const Arg&)

template <class T, ParamKind K>
struct DecodeAlternative {
  static constexpr ParamKind kind = K;
  static T from(const Arg& a) {
    const T* v = std::get_if<T>(&a);
    TPU_CHECK(v, "a rule's parameter matches the schema's argument");
    return *v;
  }
};
template <>
struct Decode<Value> : DecodeAlternative<Value, ParamKind::kTensor> {};
template <>
struct Decode<Values> : DecodeAlternative<Values, ParamKind::kTensor> {};
template <>
struct Decode<OptionalValues> : DecodeAlternative<OptionalValues, ParamKind::kTensor> {};
template <>
struct Decode<Scalar> : DecodeAlternative<Scalar, ParamKind::kScalar> {};
template <>
struct Decode<std::vector<Scalar>> : DecodeAlternative<std::vector<Scalar>, ParamKind::kScalar> {};
template <>
struct Decode<Coefficient> : DecodeAlternative<Coefficient, ParamKind::kCoefficient> {};
template <>
struct Decode<Exponent> : DecodeAlternative<Exponent, ParamKind::kExponent> {};
template <>
struct Decode<Number> : DecodeAlternative<Number, ParamKind::kStatic> {};
template <>
struct Decode<Dims> : DecodeAlternative<Dims, ParamKind::kStatic> {};
template <>
struct Decode<std::vector<double>> : DecodeAlternative<std::vector<double>, ParamKind::kStatic> {};
template <>
struct Decode<std::vector<bool>> : DecodeAlternative<std::vector<bool>, ParamKind::kStatic> {};
template <>
struct Decode<std::string> : DecodeAlternative<std::string, ParamKind::kStatic> {};
template <>
struct Decode<DType> : DecodeAlternative<DType, ParamKind::kStatic> {};
template <>
struct Decode<bool> {
  static constexpr ParamKind kind = ParamKind::kStatic;
  static bool from(const Arg& a) { return to_int(Decode<Number>::from(a)) != 0; }
};
template <>
struct Decode<int64_t> {
  static constexpr ParamKind kind = ParamKind::kStatic;
  static int64_t from(const Arg& a) { return to_int(Decode<Number>::from(a)); }
};
template <>
struct Decode<double> {
  static constexpr ParamKind kind = ParamKind::kStatic;
  static double from(const Arg& a) { return to_double(Decode<Number>::from(a)); }
};
template <class T>
struct Decode<std::optional<T>> {
  static constexpr ParamKind kind = Decode<T>::kind;
  static std::optional<T> from(const Arg& a) {
    if (std::holds_alternative<std::monostate>(a)) return std::nullopt;
    return Decode<T>::from(a);
  }
};

template <class T>
inline constexpr bool is_context =
    std::is_same_v<T, Graph> || std::is_same_v<T, Outputs> || std::is_same_v<T, Extent>;

// Stands for a result that becomes an undefined tensor (None).
inline Value undefined(Graph& graph) { return {&graph, -1}; }
inline bool is_undefined(Value v) { return v.id() < 0; }

using Lowering = std::function<Values(const Call&)>;

// Strides of fresh results where PyTorch has no native structured metadata.
enum class Strides : uint8_t {
  kContiguous,
  kPointwise,  // TensorIterator: the common order of the inputs
  kPreserve,   // the first tensor's if dense, else its order; memory_format decides if given
  kSuggest,    // the first tensor's suggested memory format (channels_last stays channels_last)
};

// Host check of run-time numbers, on every call; throws tpu::Error with PyTorch's text. `self` is
// the dtype of the call's first tensor.
using NumberCheck = void (*)(std::span<const Number>, DType self);

struct Traits {
  Strides strides = Strides::kContiguous;
  std::vector<std::string> mutates = {};  // arguments written although the schema does not say so
  NumberCheck check = nullptr;
  // A result's size by the run-time numbers and the out= tensor's dtype; may throw likewise.
  int64_t (*extent)(std::span<const Number>, DType out) = nullptr;
  bool reduction = false;  // needs the compiler's fusion emitters to run fast
  bool indexes = false;    // calls Graph::check: the Python line is kept for the message
  // Numbers a random op draws, in 128-bit blocks, are counted by Graph::random_state.
};

struct Rule {
  std::string name;  // "aten::add.Tensor"
  Lowering lower;
  std::vector<ParamKind> params;
  Traits traits;

  template <class F>
  Rule(std::string name, F f, Traits traits = {});
};

namespace internal {
inline Values as_values(Value v) { return {v}; }
inline Values as_values(Values v) { return v; }
template <class... T>
Values as_values(const std::tuple<T...>& t) {
  return std::apply([](const auto&... v) { return Values{v...}; }, t);
}
template <class A, class B>
Values as_values(const std::pair<A, B>& p) {
  return {p.first, p.second};
}

template <class T>
decltype(auto) decode_next(const Call& call, size_t& next) {
  using D = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<D, Graph>) {
    return static_cast<Graph&>(call.graph);
  } else if constexpr (std::is_same_v<D, Outputs>) {
    return static_cast<const Outputs&>(call.outputs);
  } else if constexpr (std::is_same_v<D, Extent>) {
    return Extent{call.extent};
  } else {
    static const Arg none;
    const size_t i = next++;
    return Decode<D>::from(i < call.args.size() ? call.args[i] : none);
  }
}

template <class T>
constexpr ParamKind kind_of() {
  using D = std::remove_cvref_t<T>;
  if constexpr (is_context<D>) {
    return ParamKind::kContext;
  } else {
    return Decode<D>::kind;
  }
}

template <class R, class... P>
Lowering bind(R (*f)(P...)) {
  return [f](const Call& call) -> Values {
    size_t next = 0;
    // Braced initialization evaluates left to right, which the decoder depends on.
    std::tuple<decltype(decode_next<P>(call, next))...> args{decode_next<P>(call, next)...};
    return as_values(std::apply(f, std::move(args)));
  };
}
template <class R, class... P>
std::vector<ParamKind> kinds(R (*)(P...)) {
  return {kind_of<P>()...};
}
}  // namespace internal

template <class F>
Rule::Rule(std::string n, F f, Traits t)
    : name(std::move(n)),
      lower(internal::bind(+f)),
      params(internal::kinds(+f)),
      traits(std::move(t)) {}

// Every rule, from the explicit list of families in families.cc; names are unique.
const std::vector<Rule>& all_rules();
const Rule* find_rule(std::string_view name);

}  // namespace tpu::lower
