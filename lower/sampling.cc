// SPDX-License-Identifier: Apache-2.0
// Sampling that picks or rejects: multinomial, gamma, Dirichlet, Poisson and binomial numbers.
// Rejection runs as one loop over all elements until each has accepted a draw.
#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/draw.h"
#include "lower/families.h"
#include "lower/sorting.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Rejection accepts more than nine tenths of its draws, and sums of fewer than 10 expected terms
// end sooner: what is left after this many rounds has no measurable probability.
constexpr int64_t kRounds = 96;

using Step = std::function<Values(Value round, const Values& state)>;

// Repeats step(round, state) until state[0], a pred of all elements, is true everywhere.
Values until_done(const Values& initial, const Step& step) {
  Graph& graph = initial[0].graph();
  Values state{hlo::constant(graph, DType::kS32, int64_t{0})};
  state.insert(state.end(), initial.begin(), initial.end());
  const auto unfinished = [](std::span<const Value> s) {
    const Value all = hlo::reduce_and(s[1], all_axes(s[1].rank()));
    return ~all & hlo::lt(s[0], hlo::full_like(s[0], kRounds));
  };
  const auto body = [&](std::span<const Value> s) {
    Values next{s[0] + 1.0};
    for (const Value& v : step(s[0], Values(s.begin() + 1, s.end()))) next.push_back(v);
    return next;
  };
  Values last = hlo::while_loop(state, unfinished, body);
  last.erase(last.begin());
  return last;
}

void check_data(Value bad, const char* text) {
  const Value any = hlo::reduce_or(bad, all_axes(bad.rank()));
  bad.graph().check(any, hlo::convert(any, DType::kS32), text, ir::CheckKind::kRuntime);
}

void check_multinomial(Value p, int64_t count, bool replacement) {
  require(p.rank() == 1 || p.rank() == 2, "prob_dist must be 1 or 2 dim");
  require(ir::is_float(p.dtype()),
          "multinomial only supports floating-point dtypes for input, got: {}",
          scalar_type_name(p.dtype()));
  require(count > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = p.dim(p.rank() - 1);
  require(replacement || count <= categories,
          "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  require(categories <= (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  require(categories > 0 || p.numel() != 0 || (p.rank() == 2 && p.dim(0) == 0),
          "invalid multinomial distribution (sum of probabilities <= 0)");
}

// Position of u * total in the running sums, never in a category of probability 0 at the end.
Value by_running_sums(Draw& draw, Value p, int64_t count) {
  const Value zero = hlo::constant(p.graph(), p.dtype(), 0.0);
  const Value sums = running(p, 1, zero, hlo::add);
  const int64_t n = p.dim(1);
  const Value total = hlo::slice_axis(sums, 1, n - 1, n);
  const Dims dims{p.dim(0), count};
  const Value wanted = draw.uniform(dims, p.dtype()) * hlo::broadcast_in_dim(total, dims, {0, 1});
  const Value last = insertion_points(sums, total, false);
  return hlo::min(insertion_points(sums, wanted, true), hlo::broadcast_in_dim(last, dims, {0, 1}));
}

Value multinomial(Value self, int64_t count, bool replacement) {
  check_multinomial(self, count, replacement);
  const bool single = self.rank() == 1;
  Value p = hlo::convert(self, ir::compute_type(self.dtype()));
  if (single) p = hlo::reshape(p, {1, p.dim(0)});
  Dims dims{p.dim(0), count};
  if (p.numel() == 0) return hlo::full(p.graph(), {DType::kS64, dims}, int64_t{0});
  check_data(~(hlo::is_finite(p) & (p >= 0.0)),
             "probability tensor contains either `inf`, `nan` or element < 0");
  check_data(hlo::reduce_sum(p, {1}) <= 0.0,
             "invalid multinomial distribution (sum of probabilities <= 0)");
  Draw draw(p.graph());
  Value picked = p;
  if (replacement && count > 1) {
    picked = by_running_sums(draw, p, count);
  } else {
    // The greatest p / exponential: each category wins with its probability.
    const Value raced = p / draw.exponential(p.dims(), p.dtype());
    picked = count == 1 ? hlo::reshape(first_max(raced, 1).index, dims)
                        : hlo::slice_axis(sort_along(raced, 1, true).indices, 1, 0, count);
  }
  if (single) dims = {count};
  return hlo::reshape(hlo::convert(picked, DType::kS64), dims);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
Value gamma_numbers(Draw& draw, Value alpha) {
  const DType t = alpha.dtype();
  const Dims& dims = alpha.dims();
  const Value small = alpha < 1.0;
  const Value boost = hlo::pow(draw.open_uniform(dims, t), 1.0 / alpha);
  const Value d = where(small, alpha + 1.0, alpha) - 1.0 / 3;
  const Value c = 1.0 / hlo::sqrt(d * 9.0);
  const auto normals = draw.rounds(kRounds, dims, t);
  const auto uniforms = draw.rounds(kRounds, dims, t);
  const Value open = hlo::full(alpha.graph(), {DType::kPred, dims}, false);
  const Values last = until_done({open, d}, [&](Value round, const Values& state) {
    const Value x = normals.normal(round, dims, t);
    const Value y = x * c + 1.0;
    const Value v = y * y * y;
    const Value log_u = hlo::log(uniforms.uniform(round, dims, t));
    const Value fits = log_u < x * x * 0.5 + d * (1.0 - v + hlo::log(v));
    const Value accepted = (y > 0.0) & fits;
    return Values{state[0] | accepted, where(~state[0] & accepted, d * v, state[1])};
  });
  const double tiny = t == DType::kF64 ? 0x1p-1022 : 0x1p-126;
  return max(where(small, last[1] * boost, last[1]), tiny);
}

Value standard_gamma(Value self) {
  require_dtype(self.dtype() == DType::kF32 || self.dtype() == DType::kF64, "gamma_cpu",
                self.dtype());
  Draw draw(self.graph());
  return gamma_numbers(draw, self);
}

Value sample_dirichlet(Value self) {
  require_dtype(self.dtype() == DType::kF32 || self.dtype() == DType::kF64, "dirichlet",
                self.dtype());
  Draw draw(self.graph());
  const Value g = gamma_numbers(draw, self);
  if (g.rank() == 0) return hlo::full_like(g, 1.0);
  const Dims axis{g.rank() - 1};
  return g / spread(hlo::reduce_sum(g, axis), g.dims(), axis);
}

// Hoermann's transformed rejection: the shape of a hat over counts with this mean and deviation,
// and the test of a draw that the quick tests leave open.
struct Hat {
  Value a, b, center, quick, scale;
};
struct Candidate {
  Value k;
  Value accepted;
};
Candidate candidate(const Hat& h, Value u, Value v, const std::function<Value(Value k)>& log_ratio,
                    Value lowest, std::optional<Value> highest) {
  const Value shifted = u - 0.5;
  const Value us = 0.5 - hlo::abs(shifted);
  const Value k = hlo::floor((h.a * 2.0 / us + h.b) * shifted + h.center);
  Value inside = k >= lowest;
  if (highest) inside = inside & (k <= *highest);
  const Value quick = (us >= 0.07) & (v <= h.quick);
  const Value hopeless = (us < 0.013) & (v > us);
  const Value exact =
      hlo::log(v * h.scale / (h.a / (us * us) + h.b)) <= log_ratio(where(inside, k, h.center));
  return {k, inside & (quick | (~hopeless & exact))};
}

struct Counts {
  Value many;  // pred: by rejection; the others by counting terms
  std::function<Candidate(Value u, Value v)> draw;
  // One more term of the count: (spent, u) -> spent; the count ends once spent exceeds the limit.
  std::function<Value(Value spent, Value u)> spend;
  Value start, limit;
};

Value counted(Draw& draw, const Counts& c) {
  const Dims& dims = c.many.dims();
  const DType t = DType::kF64;
  const auto first = draw.rounds(kRounds, dims, t);
  const auto second = draw.rounds(kRounds, dims, t);
  const Value open = hlo::full(c.many.graph(), {DType::kPred, dims}, false);
  const Value none = hlo::full(c.many.graph(), {t, dims}, 0.0);
  const Values last = until_done({open, none, c.start}, [&](Value round, const Values& s) {
    const Value u = first.uniform(round, dims, t);
    const Candidate candidate = c.draw(u, second.uniform(round, dims, t));
    const Value spent = c.spend(s[2], u);
    const Value over = spent > c.limit;
    const Value done = where(c.many, candidate.accepted, over);
    const Value next = where(c.many, candidate.k, where(over, s[1], s[1] + 1.0));
    return Values{s[0] | done, where(s[0], s[1], next), where(s[0], s[2], spent)};
  });
  return last[1];
}

// "The transformed rejection method for generating Poisson random variables" (1993), PTRS; small
// rates count how many uniforms it takes for their product to fall below exp(-rate).
Value poisson(Value self) {
  require_float("poisson_cpu", self.dtype());
  const Value rate = hlo::convert(self, DType::kF64);
  check_data(~(rate >= 0.0), "invalid Poisson rate, expected rate to be non-negative");
  const Value large = max(rate, 10.0);
  const Value b = hlo::sqrt(large) * 2.53 + 0.931;
  const Hat hat{b * 0.02483 - 0.059, b, large + 0.43, 0.9277 - 3.6224 / (b - 2.0),
                1.1239 + 1.1328 / (b - 3.4)};
  const Value log_rate = hlo::log(large);
  const auto log_mass = [&](Value k) { return k * log_rate - large - hlo::lgamma(k + 1.0); };
  const Value zero = hlo::full_like(rate, 0.0);
  Draw draw(self.graph());
  const Counts counts{
      rate >= 10.0,
      [&](Value u, Value v) { return candidate(hat, u, v, log_mass, zero, std::nullopt); },
      [](Value spent, Value u) { return spent - hlo::log(u); }, zero, rate};
  return hlo::convert(counted(draw, counts), self.dtype());
}

// "The generation of binomial random variates" (1993), BTRS; few expected successes are counted by
// the geometric gaps between them.
Value binomial(Value count, Value prob) {
  if (!ir::is_float(count.dtype())) {
    fail(ErrorKind::kValue, "binomial only supports floating-point dtypes for count, got: {}",
         scalar_type_name(count.dtype()));
  }
  const DType result = count.dtype();
  require_dtype(result == DType::kF32 || result == DType::kF64, "binomial_cpu", result);
  const Dims dims = broadcast_dims(Values{count, prob});
  const auto wide = [&](Value v) { return hlo::broadcast_to(hlo::convert(v, DType::kF64), dims); };
  const Value n = max(wide(count), 0.0);
  const Value given = max(min(wide(prob), 1.0), 0.0);
  const Value p = hlo::min(given, 1.0 - given);
  const Value many = n * p >= 10.0;
  const Value q = where(many, p, 0.5);
  const Value m = where(many, n, 40.0);
  const Value deviation = hlo::sqrt(m * q * (1.0 - q));
  const Value b = deviation * 2.53 + 1.15;
  const Hat hat{b * 0.0248 - 0.0873 + q * 0.01, b, m * q + 0.5, 0.92 - 4.2 / b,
                (5.1 / b + 2.83) * deviation};
  const Value mode = hlo::floor((m + 1.0) * q);
  const auto ways = [&](Value k) { return hlo::lgamma(k + 1.0) + hlo::lgamma(m - k + 1.0); };
  const Value at_mode = ways(mode);
  const Value log_odds = hlo::log(q / (1.0 - q));
  const auto log_ratio = [&](Value k) { return at_mode - ways(k) + (k - mode) * log_odds; };
  const Value zero = hlo::full_like(n, 0.0);
  const Value log_failure = hlo::log1p(-p);
  Draw draw(count.graph());
  const Counts counts{
      many, [&](Value u, Value v) { return candidate(hat, u, v, log_ratio, zero, m); },
      [&](Value spent, Value u) { return spent + hlo::ceil(hlo::log(u) / log_failure); }, zero, n};
  const Value successes = counted(draw, counts);
  return hlo::convert(where(given > 0.5, n - successes, successes), result);
}

}  // namespace

Rules sampling_rules() {
  return {
      {"aten::multinomial", multinomial, {.reduction = true}},
      {"aten::_standard_gamma", standard_gamma},
      {"aten::_sample_dirichlet", sample_dirichlet},
      {"aten::poisson", poisson},
      {"aten::binomial", binomial},
  };
}

}  // namespace tpu::lower
