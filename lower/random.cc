// SPDX-License-Identifier: Apache-2.0
// Filling with random numbers: uniform, normal and the other distributions with a closed form,
// integers, permutations and dropout. Sampling by rejection is in sampling.cc.
//
// The functional forms of in-place samplers take self for its type and dims only.
#include <cmath>
#include <limits>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/draw.h"
#include "lower/families.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

DType drawn_type(DType t) { return ir::compute_type(ir::real_of(t)); }

// draw() once, or for both parts of a complex number.
template <class F>
Value real_or_complex(Value self, F draw) {
  if (!ir::is_complex(self.dtype())) return draw();
  const Value re = draw();
  return hlo::complex(re, draw());
}

// Mantissa digits of the types that are narrower than the f32 they are drawn in.
int narrow_digits(DType t) { return t == DType::kBF16 ? 8 : t == DType::kF16 ? 11 : 0; }

// A multiple of 2^-digits in [0, 1): rounding to self's type never reaches 1.
Value uniform_for(Draw& draw, const Dims& dims, DType self) {
  const Value u = draw.uniform(dims, drawn_type(self));
  const int digits = narrow_digits(self);
  if (digits == 0) return u;
  const double steps = std::ldexp(1.0, digits);
  return hlo::floor(u * steps) / steps;
}

Value uniform(Value self, Scalar from, Scalar to) {
  Draw draw(self.graph());
  const Value result = real_or_complex(self, [&] {
    const Value u = uniform_for(draw, self.dims(), self.dtype());
    const Value low = from.like(u);
    const Value high = to.like(u);
    const Value x = u * (high - low) + low;
    const Value reached =
        hlo::convert(hlo::convert(x, ir::real_of(self.dtype())), x.dtype()) >= high;
    return where(reached & (low < high), low, x);
  });
  return hlo::convert(result, self.dtype());
}

void check_uniform(std::span<const Number> n, DType self) {
  const DType t = ir::real_of(self);
  require_dtype(ir::is_float(t), "check_uniform_bounds", self);
  if (n.size() < 2) return;
  const double from = to_double(n[0]);
  const double to = to_double(n[1]);
  require(std::abs(from) <= greatest_finite(t), "from is out of bounds for {}", cpp_name(t));
  require(std::abs(to) <= greatest_finite(t), "to is out of bounds for {}", cpp_name(t));
  require(from <= to, "uniform_ expects to return a [from, to) range, but found from={} > to={}",
          from, to);
}

// A complex normal has the deviation shared between its parts.
Value standard_normal(Draw& draw, Value self) {
  const DType t = drawn_type(self.dtype());
  if (!ir::is_complex(self.dtype())) return draw.normal(self.dims(), t);
  const Value re = draw.normal(self.dims(), t) * std::sqrt(0.5);
  return hlo::complex(re, draw.normal(self.dims(), t) * std::sqrt(0.5));
}

Value normal(Value self, Scalar mean, Scalar std) {
  if (!ir::is_complex(self.dtype())) require_float("normal_kernel_cpu", self.dtype());
  Draw draw(self.graph());
  const Value z = standard_normal(draw, self);
  return hlo::convert(z * std.like(z) + mean.like(z), self.dtype());
}

void check_deviation(std::span<const Number> n, DType) {
  require(n.empty() || to_double(n.back()) >= 0.0, "normal expects std >= 0.0, but found std {}",
          n.empty() ? 0.0 : to_double(n.back()));
}

Value normal_tensors(Value mean, Value std, DType t) {
  Draw draw(mean.graph());
  const Dims dims = broadcast_dims(Values{mean, std});
  const Value like = hlo::full(mean.graph(), {t, dims}, 0.0);
  const Value z = standard_normal(draw, like);
  const Value m = hlo::broadcast_to(hlo::convert(mean, z.dtype()), dims);
  const Value s = hlo::broadcast_to(hlo::convert(std, z.dtype()), dims);
  return hlo::convert(z * s + m, t);
}

void check_deviations(Value std) {
  require(!ir::is_complex(std.dtype()), "normal expects standard deviation to be non-complex");
  const Value low =
      hlo::reduce_or(hlo::lt(std, hlo::full_like(std, int64_t{0})), all_axes(std.rank()));
  std.graph().check(low, hlo::convert(low, DType::kS32),
                    "normal expects all elements of std >= 0.0", ir::CheckKind::kRuntime);
}

Value normal_tensor_float(Value mean, Scalar std) {
  return normal_tensors(mean, std.as(drawn_type(mean.dtype())), mean.dtype());
}
Value normal_float_tensor(Scalar mean, Value std) {
  check_deviations(std);
  return normal_tensors(mean.as(drawn_type(std.dtype())), std, std.dtype());
}
Value normal_tensor_tensor(Value mean, Value std) {
  check_deviations(std);
  return normal_tensors(mean, std, mean.dtype());
}

// log(uniform) and what is made of it.
template <class F>
Value by_inverse(Value self, F inverse) {
  Draw draw(self.graph());
  const DType t = ir::is_float(self.dtype()) ? drawn_type(self.dtype()) : DType::kF32;
  return hlo::convert(inverse(draw.open_uniform(self.dims(), t)), self.dtype());
}

Value exponential(Value self, Scalar lambda) {
  require(ir::is_float(self.dtype()),
          "Exponential distribution is a continuous probability distribution. dtype must be a "
          "floating point but you specified {}",
          scalar_type_name(self.dtype()));
  return by_inverse(self, [&](Value u) { return -hlo::log(u) / lambda.like(u); });
}
void check_exponential(std::span<const Number> n, DType) {
  require(n.empty() || to_double(n[0]) > 0.0,
          "exponential_ expects lambda > 0.0, but found lambda={}", to_double(n[0]));
}

Value geometric(Value self, Scalar p) {
  require_number("geometric", self.dtype());
  return by_inverse(self, [&](Value u) { return hlo::ceil(hlo::log(u) / hlo::log1p(-p.like(u))); });
}
void check_geometric(std::span<const Number> n, DType) {
  const double p = n.empty() ? 0.5 : to_double(n[0]);
  require(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p={}", p);
}

Value cauchy(Value self, Scalar median, Scalar sigma) {
  require(ir::is_float(self.dtype()),
          "Cauchy distribution is a continuous probability distribution. dtype must be a floating "
          "point but you specified {}",
          cpp_name(self.dtype()));
  return by_inverse(
      self, [&](Value u) { return median.like(u) + sigma.like(u) * hlo::tan((u - 0.5) * M_PI); });
}
void check_cauchy(std::span<const Number> n, DType) {
  require(n.size() < 2 || to_double(n[1]) > 0.0, "cauchy_ expects sigma > 0.0, but found sigma={}",
          to_double(n.back()));
}

Value log_normal(Value self, Scalar mean, Scalar std) {
  require_float("log_normal_cpu", self.dtype());
  Draw draw(self.graph());
  const Value z = draw.normal(self.dims(), drawn_type(self.dtype()));
  return hlo::convert(hlo::exp(z * std.like(z) + mean.like(z)), self.dtype());
}
void check_log_normal(std::span<const Number> n, DType) {
  require(n.size() < 2 || to_double(n[1]) > 0.0, "log_normal_ expects std > 0.0, but found std={}",
          to_double(n.back()));
}

Value bernoulli_as(Value p, const Type& type) {
  Draw draw(p.graph());
  const DType t = p.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  return hlo::convert(draw.bernoulli(hlo::broadcast_to(hlo::convert(p, t), type.dims)), type.dtype);
}

void check_probabilities(Value p) {
  const Value outside = ~((p >= 0.0) & (p <= 1.0));
  const Value any = hlo::reduce_or(outside, all_axes(p.rank()));
  p.graph().check(any, hlo::convert(any, DType::kS32),
                  "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                  "message be improved?  If so, please report an enhancement request to PyTorch.)",
                  ir::CheckKind::kRuntime);
}

Value bernoulli(Value self) {
  require_float("bernoulli_tensor_cpu_p_", self.dtype());
  check_probabilities(self);
  return bernoulli_as(self, self.type());
}
Value bernoulli_tensor(Value self, Value p) {
  check_probabilities(p);
  return bernoulli_as(p, self.type());
}
Value bernoulli_p(Value self, Scalar p) {
  require(!ir::is_complex(self.dtype()), "\"bernoulli_scalar_cpu_\" not implemented for '{}'",
          scalar_type_name(self.dtype()));
  return bernoulli_as(p.as(DType::kF32), self.type());
}
void check_bernoulli(std::span<const Number> n, DType) {
  const double p = n.empty() ? 0.5 : to_double(n[0]);
  require(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p={}", p);
}

// The integers a type holds exactly: [-2^digits, 2^digits] for floats.
struct IntegerRange {
  int64_t low;
  int64_t high;
};
IntegerRange exact_integers(DType t) {
  if (ir::is_bool(t)) return {0, 1};
  if (ir::is_float(t)) {
    const int digits = t == DType::kF64 ? 53 : t == DType::kF32 ? 24 : narrow_digits(t);
    return {-(int64_t{1} << digits), int64_t{1} << digits};
  }
  const int bits = static_cast<int>(ir::byte_size(t)) * 8;
  const int64_t top = std::numeric_limits<int64_t>::max();
  if (ir::is_unsigned_integer(t)) return {0, bits == 64 ? top : (int64_t{1} << bits) - 1};
  return {-(top >> (64 - bits)) - 1, top >> (64 - bits)};
}

// The bounds of values that random_ accepts: what the type reaches, exact or not.
IntegerRange representable(DType t) {
  if (t == DType::kF16) return {-65504, 65504};
  if (ir::is_float(t)) {
    return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
  return exact_integers(t);
}

Value random_in(Value self, Value low, Value range) {
  require(!ir::is_complex(self.dtype()), "\"random_kernel_cpu\" not implemented for '{}'",
          scalar_type_name(self.dtype()));
  Draw draw(self.graph());
  return hlo::convert(draw.integers(self.dims(), low, range), self.dtype());
}

Value random_from(Value self, Scalar from, std::optional<Scalar> to) {
  const Value low = from.as(DType::kS64);
  const int64_t greatest = exact_integers(self.dtype()).high;
  const Value last =
      to ? to->as(DType::kS64) - hlo::full_like(low, int64_t{1}) : hlo::full_like(low, greatest);
  const Value range = hlo::bitcast(last, DType::kU64) - hlo::bitcast(low, DType::kU64);
  return random_in(self, low, range + hlo::full_like(range, int64_t{1}));
}

Value random_to(Value self, Scalar to) {
  return random_from(self, Scalar(self.graph(), int64_t{0}), to);
}

Value random_full(Value self) {
  Graph& graph = self.graph();
  const int64_t count = exact_integers(self.dtype()).high;
  const Value top = hlo::constant(graph, DType::kU64, count);
  return random_in(self, hlo::constant(graph, DType::kS64, int64_t{0}),
                   top + hlo::full_like(top, int64_t{1}));
}

void check_bounds(int64_t from, int64_t last, DType t) {
  const IntegerRange r = representable(t);
  require(from >= r.low && from <= r.high, "from is out of bounds for {}", cpp_name(t));
  require(last >= r.low && last <= r.high, "to - 1 is out of bounds for {}", cpp_name(t));
}

void check_random_from(std::span<const Number> n, DType self) {
  if (n.size() < 2) return;
  require(to_int(n[0]) < to_int(n[1]),
          "random_ expects 'from' to be less than 'to', but got from={} >= to={}", to_int(n[0]),
          to_int(n[1]));
  check_bounds(to_int(n[0]), to_int(n[1]) - 1, self);
}
void check_random_to(std::span<const Number> n, DType self) {
  if (n.empty()) return;
  require(to_int(n[0]) > 0, "random_ expects 'from' to be less than 'to', but got from=0 >= to={}",
          to_int(n[0]));
  check_bounds(0, to_int(n[0]) - 1, self);
}

Value randperm(Graph& graph, int64_t n) {
  require(n >= 0 && n < (int64_t{1} << 32), "n must be non-negative, got {}", n);
  const Value numbers = hlo::iota(graph, {DType::kU64, {n}}, 0);
  if (n < 2) return hlo::convert(numbers, DType::kS64);
  // One operand sorts several times faster than a key with a payload: the number is in the key.
  Draw draw(graph);
  const Value random = hlo::convert(draw.bits({n}, DType::kU32), DType::kU64);
  const Value keys = hlo::shift_left(random, hlo::full_like(random, int64_t{32})) | numbers;
  const Value sorted =
      hlo::sort({keys}, 0, false, [](std::span<const Value> v) { return hlo::lt(v[0], v[1]); })[0];
  return hlo::convert(sorted & hlo::full_like(sorted, int64_t{0xFFFFFFFF}), DType::kS64);
}

// Zeroes with probability p and scales the rest, so that the mean stays.
std::pair<Value, Value> native_dropout(Value x, Scalar p, std::optional<bool> train) {
  if (train && !*train) {
    return {x, hlo::full(x.graph(), {DType::kPred, x.dims()}, true)};
  }
  require(ir::is_float(x.dtype()), "result type Float can't be cast to the desired output type {}",
          scalar_type_name(x.dtype()));
  const DType t = ir::compute_type(x.dtype());
  const Value keep = 1.0 - p.as(DType::kF32);
  Draw draw(x.graph());
  const Value mask = draw.bernoulli(hlo::broadcast_to(keep, x.dims()));
  const Value scale = hlo::convert(where(equals(keep, 0.0), 0.0, 1.0 / keep), t);
  const Value kept = hlo::convert(x, t) * hlo::broadcast_to(scale, x.dims());
  // The product with the mask, as PyTorch forms it: NaN survives being dropped.
  const Value result = kept * hlo::convert(mask, t);
  return {hlo::convert(result, x.dtype()), mask};
}

Value native_dropout_backward(Value grad, Value mask, Scalar scale) {
  return computed(grad, [&](Value g) { return g * hlo::convert(mask, g.dtype()) * scale.like(g); });
}

void check_dropout(std::span<const Number> n, DType) {
  const double p = n.empty() ? 0.5 : to_double(n[0]);
  require(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p={}", 1 - p);
}

}  // namespace

Rules random_rules() {
  const Traits preserve{.strides = Strides::kPreserve};
  const auto checked = [](NumberCheck check) {
    return Traits{.strides = Strides::kPreserve, .check = check};
  };
  return {
      {"aten::uniform", uniform, checked(check_uniform)},
      {"aten::normal_", normal, checked(check_deviation)},
      {"aten::normal.Tensor_float",
       normal_tensor_float,
       {.strides = Strides::kContiguous, .check = check_deviation}},
      {"aten::normal.float_Tensor", normal_float_tensor},
      {"aten::normal.Tensor_Tensor", normal_tensor_tensor},
      {"aten::exponential", exponential, checked(check_exponential)},
      {"aten::geometric", geometric, checked(check_geometric)},
      {"aten::cauchy", cauchy, checked(check_cauchy)},
      {"aten::log_normal", log_normal, checked(check_log_normal)},
      {"aten::bernoulli", bernoulli, preserve},
      {"aten::bernoulli.Tensor", bernoulli_tensor, preserve},
      {"aten::bernoulli_.float", bernoulli_p, checked(check_bernoulli)},
      {"aten::random.from", random_from, checked(check_random_from)},
      {"aten::random.to", random_to, checked(check_random_to)},
      {"aten::random", random_full, preserve},
      {"aten::randperm.generator", randperm},
      {"aten::native_dropout", native_dropout, checked(check_dropout)},
      {"aten::native_dropout_backward", native_dropout_backward, {.strides = Strides::kPointwise}},
  };
}

}  // namespace tpu::lower
