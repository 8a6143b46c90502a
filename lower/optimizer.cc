// SPDX-License-Identifier: Apache-2.0
// Fused optimizer steps and gradient scaling: one program for all parameters. Learning rates,
// decays and betas are run-time numbers, so a schedule compiles nothing.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

// A coefficient of the step, exact until a parameter's type is known: 1 - 0.999 is formed in f64.
class Rate {
 public:
  explicit Rate(Value x) : x_(x) {}
  static Rate of(Scalar s) { return Rate(s.as(DType::kF64)); }
  Value as(DType t) const { return hlo::convert(x_, t); }
  Value like(Value x) const { return hlo::broadcast_to(as(x.dtype()), x.dims()); }
  Rate complement() const { return Rate(1.0 - x_); }
  Rate operator*(const Rate& other) const {
    if (x_.dtype() == other.x_.dtype()) return Rate(x_ * other.x_);
    return Rate(as(DType::kF32) * other.as(DType::kF32));
  }

 private:
  Value x_;
};

Rate tensor_rate(Value x) { return Rate(hlo::reshape(x, {})); }

// What a gradient scaler hands to a fused step.
struct Scaling {
  std::optional<Value> scale;
  std::optional<Value> found_inf;

  Value unscale(Value grad) const {
    if (!scale) return grad;
    return grad /
           hlo::broadcast_to(hlo::convert(hlo::reshape(*scale, {}), grad.dtype()), grad.dims());
  }
  // The new value, or the old one where the step is skipped.
  Value choose(Value updated, Value old) const {
    if (!found_inf) return hlo::convert(updated, old.dtype());
    const Value skip = hlo::broadcast_to(equals(hlo::reshape(*found_inf, {}), 1.0), old.dims());
    return hlo::select(skip, old, hlo::convert(updated, old.dtype()));
  }
};

// New values of the mutated lists, in schema order.
class Lists {
 public:
  explicit Lists(size_t count) : lists_(count) {}
  Values& operator[](size_t i) { return lists_[i]; }
  Values flat() const {
    Values all;
    for (const Values& list : lists_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  std::vector<Values> lists_;
};

struct Gradient {
  Value stored;  // what the grads argument becomes
  Value used;    // in compute type, unscaled, of the sign that descends
};
Gradient gradient_of(Value grad, DType t, const Scaling& scaling, bool maximize) {
  const Value wide = scaling.unscale(hlo::convert(grad, t));
  return {scaling.scale ? hlo::convert(wide, grad.dtype()) : grad, maximize ? -wide : wide};
}

struct Adam {
  Rate lr, beta1, beta2, decay, eps;
  bool amsgrad, maximize, decoupled;
  Scaling scaling;
};

struct AdamState {
  Value param, average, square;
  std::optional<Value> greatest;
};

// 1 - beta^step without cancellation for beta near 1.
Value bias_correction(const Rate& beta, Value step, DType t) {
  const Value n = hlo::convert(hlo::reshape(step, {}), t);
  return -hlo::expm1(n * hlo::log1p(-beta.complement().as(t)));
}

AdamState adam_step(const Adam& a, const AdamState& s, Value grad, Value step) {
  const DType t = grad.dtype();
  const auto wide = [&](Value x) { return hlo::convert(x, t); };
  const auto all = [&](Value x) { return hlo::broadcast_to(x, grad.dims()); };
  Value param = wide(s.param);
  if (a.decoupled) {
    param = param - (a.lr * a.decay).like(param) * param;
  } else {
    grad = grad + a.decay.like(param) * param;
  }
  const Value old = wide(s.average);
  const Value average = old + a.beta1.complement().like(old) * (grad - old);
  const Value square =
      a.beta2.like(grad) * wide(s.square) + a.beta2.complement().like(grad) * grad * grad;
  const Value greatest = a.amsgrad ? hlo::max(wide(*s.greatest), square) : square;
  const Value root = hlo::sqrt(bias_correction(a.beta2, step, t));
  const Value rate = a.lr.as(t) / bias_correction(a.beta1, step, t);
  const Value denominator = hlo::sqrt(greatest) / all(root) + a.eps.like(grad);
  return {param - all(rate) * average / denominator, average, square, greatest};
}

Values adam_lists(const Adam& a, const Values& params, const Values& grads, const Values& averages,
                  const Values& squares, const Values& greatest, const Values& steps) {
  Lists out(5);
  for (size_t i = 0; i < params.size(); ++i) {
    const DType t = ir::compute_type(params[i].dtype());
    const Gradient g = gradient_of(grads[i], t, a.scaling, a.maximize);
    AdamState old{params[i], averages[i], squares[i], std::nullopt};
    if (a.amsgrad) old.greatest = greatest[i];
    const AdamState next = adam_step(a, old, g.used, steps[i]);
    out[0].push_back(a.scaling.choose(next.param, params[i]));
    out[1].push_back(a.scaling.choose(g.stored, grads[i]));
    out[2].push_back(a.scaling.choose(next.average, averages[i]));
    out[3].push_back(a.scaling.choose(next.square, squares[i]));
    if (a.amsgrad) out[4].push_back(a.scaling.choose(*next.greatest, greatest[i]));
  }
  if (!a.amsgrad) out[4] = greatest;
  return out.flat();
}

template <bool decoupled>
Values fused_adam(Values params, Values grads, Values averages, Values squares, Values greatest,
                  Values steps, Scalar lr, Scalar beta1, Scalar beta2, Scalar decay, Scalar eps,
                  bool amsgrad, bool maximize, std::optional<Value> scale,
                  std::optional<Value> found_inf) {
  const Adam a{Rate::of(lr), Rate::of(beta1), Rate::of(beta2), Rate::of(decay),   Rate::of(eps),
               amsgrad,      maximize,        decoupled,       {scale, found_inf}};
  return adam_lists(a, params, grads, averages, squares, greatest, steps);
}

template <bool decoupled>
Values fused_adam_tensor_lr(Values params, Values grads, Values averages, Values squares,
                            Values greatest, Values steps, Value lr, Scalar beta1, Scalar beta2,
                            Scalar decay, Scalar eps, bool amsgrad, bool maximize,
                            std::optional<Value> scale, std::optional<Value> found_inf) {
  const Adam a{tensor_rate(lr), Rate::of(beta1), Rate::of(beta2), Rate::of(decay),   Rate::of(eps),
               amsgrad,         maximize,        decoupled,       {scale, found_inf}};
  return adam_lists(a, params, grads, averages, squares, greatest, steps);
}

struct Sgd {
  Rate decay, momentum, lr, dampening;
  bool nesterov, maximize, first;
  Scaling scaling;
};

Values sgd_lists(const Sgd& o, const Values& params, const Values& grads, const Values& buffers) {
  Lists out(3);
  for (size_t i = 0; i < params.size(); ++i) {
    const DType t = ir::compute_type(params[i].dtype());
    const Gradient g = gradient_of(grads[i], t, o.scaling, o.maximize);
    const Value param = hlo::convert(params[i], t);
    Value step = g.used + o.decay.like(param) * param;
    if (!buffers.empty()) {
      const Value decayed = o.momentum.like(param) * hlo::convert(buffers[i], t);
      const Value buffer = o.first ? step : decayed + o.dampening.complement().like(step) * step;
      out[2].push_back(o.scaling.choose(buffer, buffers[i]));
      step = o.nesterov ? step + o.momentum.like(buffer) * buffer : buffer;
    }
    out[0].push_back(o.scaling.choose(param - o.lr.like(param) * step, params[i]));
    out[1].push_back(o.scaling.choose(g.stored, grads[i]));
  }
  return out.flat();
}

Values fused_sgd(Values params, Values grads, Values buffers, Scalar decay, Scalar momentum,
                 Scalar lr, Scalar dampening, bool nesterov, bool maximize, bool first,
                 std::optional<Value> scale, std::optional<Value> found_inf) {
  return sgd_lists({Rate::of(decay),
                    Rate::of(momentum),
                    Rate::of(lr),
                    Rate::of(dampening),
                    nesterov,
                    maximize,
                    first,
                    {scale, found_inf}},
                   params, grads, buffers);
}

Values fused_sgd_tensor_lr(Values params, Values grads, Values buffers, Scalar decay,
                           Scalar momentum, Value lr, Scalar dampening, bool nesterov,
                           bool maximize, bool first, std::optional<Value> scale,
                           std::optional<Value> found_inf) {
  return sgd_lists({Rate::of(decay),
                    Rate::of(momentum),
                    tensor_rate(lr),
                    Rate::of(dampening),
                    nesterov,
                    maximize,
                    first,
                    {scale, found_inf}},
                   params, grads, buffers);
}

struct Adagrad {
  Rate lr, lr_decay, decay, eps;
  bool maximize;
  Scaling scaling;
};

// Steps are read after their increment; the lists are params, grads and sums.
Lists adagrad_lists(const Adagrad& o, const Values& params, const Values& grads, const Values& sums,
                    const Values& steps) {
  Lists out(4);
  for (size_t i = 0; i < params.size(); ++i) {
    const DType t = ir::compute_type(params[i].dtype());
    const Gradient g = gradient_of(grads[i], t, o.scaling, o.maximize);
    const Value param = hlo::convert(params[i], t);
    const Value grad = g.used + o.decay.like(param) * param;
    const Value sum = hlo::convert(sums[i], t) + grad * grad;
    const Value n = hlo::convert(hlo::reshape(steps[i], {}), t) - 1.0;
    const Value rate = o.lr.as(t) / (n * o.lr_decay.as(t) + 1.0);
    const Value denominator = hlo::sqrt(sum) + o.eps.like(sum);
    const Value next = param - hlo::broadcast_to(rate, param.dims()) * grad / denominator;
    out[0].push_back(o.scaling.choose(next, params[i]));
    out[1].push_back(o.scaling.choose(g.stored, grads[i]));
    out[2].push_back(o.scaling.choose(sum, sums[i]));
  }
  return out;
}

Values fused_adagrad(Values params, Values grads, Values sums, Values steps, Scalar lr,
                     Scalar lr_decay, Scalar decay, Scalar eps, bool maximize,
                     std::optional<Value> scale, std::optional<Value> found_inf) {
  Lists out = adagrad_lists({Rate::of(lr),
                             Rate::of(lr_decay),
                             Rate::of(decay),
                             Rate::of(eps),
                             maximize,
                             {scale, found_inf}},
                            params, grads, sums, steps);
  out[3] = steps;  // written by schema only
  return out.flat();
}

Values fused_adagrad_tensor_lr(Values params, Values grads, Values sums, Values steps, Value lr,
                               Scalar lr_decay, Scalar decay, Scalar eps, bool maximize,
                               std::optional<Value> scale, std::optional<Value> found_inf) {
  return adagrad_lists({tensor_rate(lr),
                        Rate::of(lr_decay),
                        Rate::of(decay),
                        Rate::of(eps),
                        maximize,
                        {scale, found_inf}},
                       params, grads, sums, steps)
      .flat();
}

// Multiplies every gradient by inv_scale and raises found_inf if one held an infinity or NaN.
Values unscale_and_check(Values grads, Value found_inf, Value inv_scale) {
  Values out;
  Value found = hlo::reshape(found_inf, {});
  for (const Value& g : grads) {
    const DType t = ir::compute_type(g.dtype());
    const Value x = hlo::convert(g, t);
    const Value bad = hlo::reduce_or(~hlo::is_finite(x), all_axes(x.rank()));
    found = where(bad, 1.0, found);
    const Value scale = hlo::convert(hlo::reshape(inv_scale, {}), t);
    out.push_back(hlo::convert(x * hlo::broadcast_to(scale, x.dims()), g.dtype()));
  }
  out.push_back(hlo::reshape(found, found_inf.dims()));
  return out;
}

// Backs off after an overflow; grows after `interval` steps without one.
std::pair<Value, Value> update_scale(Value scale, Value tracker, Value found_inf, Scalar growth,
                                     Scalar backoff, int64_t interval) {
  const Value overflow = hlo::broadcast_to(differs(hlo::reshape(found_inf, {}), 0.0), scale.dims());
  const Value count = hlo::reshape(tracker, scale.dims()) + 1.0;
  const Value full = equals(count, static_cast<double>(interval));
  const Value grown = scale * growth.like(scale);
  const Value kept = where(full & hlo::is_finite(grown), grown, scale);
  const Value next_count = where(overflow | full, 0.0, count);
  return {where(overflow, scale * backoff.like(scale), kept),
          hlo::reshape(next_count, tracker.dims())};
}

}  // namespace

Rules optimizer_rules() {
  return {
      {"aten::_fused_adam_", fused_adam<false>},
      {"aten::_fused_adam_.tensor_lr", fused_adam_tensor_lr<false>},
      {"aten::_fused_adamw_", fused_adam<true>},
      {"aten::_fused_adamw_.tensor_lr", fused_adam_tensor_lr<true>},
      {"aten::_fused_sgd_", fused_sgd},
      {"aten::_fused_sgd_.tensor_lr", fused_sgd_tensor_lr},
      {"aten::_fused_adagrad_", fused_adagrad},
      {"aten::_fused_adagrad_.tensor_lr", fused_adagrad_tensor_lr},
      {"aten::_amp_foreach_non_finite_check_and_unscale_", unscale_and_check, {.reduction = true}},
      {"aten::_amp_update_scale_", update_scale},
  };
}

}  // namespace tpu::lower
