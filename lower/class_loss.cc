// SPDX-License-Identifier: Apache-2.0
// Losses whose targets are class numbers: negative log likelihood and the margin losses.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/loss.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

constexpr int64_t kClassAxis = 1;

// Logarithms [batch, classes, place...] with a class number [batch, place...] each; a single
// sample is a batch of one.
struct Likelihood {
  Value logs;
  Value target;   // 0 where ignored
  Value ignored;  // pred
  Value weight;   // of each target; 0 where ignored

  int64_t classes() const { return logs.dim(kClassAxis); }
};

Dims with_class_axis(const Dims& dims, int64_t size) {
  Dims with = dims;
  with.insert(with.begin() + kClassAxis, size);
  return with;
}

Likelihood likelihood_of(Value self, Value target, const std::optional<Value>& weight,
                         int64_t ignore_index) {
  const DType t = ir::compute_type(self.dtype());
  if (self.rank() == 1) self = hlo::reshape(self, {1, self.dim(0)});
  target = at_least_1d(target);
  const int64_t classes = self.dim(kClassAxis);
  const Value wide = hlo::convert(target, DType::kS64);
  const Value ignored = hlo::eq(wide, hlo::full_like(wide, ignore_index));
  const Value kept = where(ignored, 0.0, wide);
  if (classes > 0) check_range(kept, {0, classes}, "Target {} is out of bounds.");
  const Value position = as_position(kept, classes);
  Value w = hlo::full(self.graph(), {t, position.dims()}, 1.0);
  if (weight) w = hlo::take(hlo::convert(*weight, t), position, 0);
  return {hlo::convert(self, t), position, ignored, where(ignored, 0.0, w)};
}

std::pair<Value, Value> nll(const Likelihood& l, int64_t reduction) {
  Graph& graph = l.logs.graph();
  const DType t = l.logs.dtype();
  const Value place = hlo::reshape(l.target, with_class_axis(l.target.dims(), 1));
  const Value chosen = hlo::reshape(hlo::take_along(l.logs, place, kClassAxis), l.target.dims());
  // Not 0 * log: an ignored logarithm may be infinite.
  const Value loss = where(l.ignored, 0.0, -l.weight * chosen);
  if (reduction == kNone) return {loss, hlo::constant(graph, t, 0.0)};
  const Dims all = all_axes(loss.rank());
  const Value sum = hlo::reduce_sum(loss, all);
  const Value total = hlo::reduce_sum(l.weight, all);
  return {reduction == kMean ? sum / total : sum, total};
}

std::pair<Value, Value> nll_loss_forward(Value self, Value target, std::optional<Value> weight,
                                         int64_t reduction, int64_t ignore_index) {
  const bool single = self.rank() == 1;
  const Likelihood l = likelihood_of(self, target, weight, ignore_index);
  auto [loss, total] = nll(l, reduction);
  if (single && reduction == kNone) {
    total = hlo::reshape(l.weight, {});
    loss = hlo::reshape(loss, target.dims());
  }
  return {hlo::convert(loss, self.dtype()), hlo::convert(total, self.dtype())};
}

Value nll_backward(Value grad, const Likelihood& l, int64_t reduction, Value total_weight) {
  const DType t = l.logs.dtype();
  Value g = hlo::convert(grad, t);
  if (reduction == kMean) g = g / hlo::convert(total_weight, t);
  g = hlo::broadcast_to(g.rank() == 0 ? g : hlo::reshape(g, l.target.dims()), l.target.dims());
  const Value each = where(l.ignored, 0.0, -l.weight * g);
  const Dims& dims = l.logs.dims();
  Dims axes;
  for (int64_t i = 0; i < l.logs.rank(); ++i) {
    if (i != kClassAxis) axes.push_back(i);
  }
  const Value number = hlo::iota(grad.graph(), {l.target.dtype(), dims}, kClassAxis);
  const Value chosen = hlo::eq(number, hlo::broadcast_in_dim(l.target, dims, axes));
  return where(chosen, hlo::broadcast_in_dim(each, dims, axes), 0.0);
}

Value nll_loss_backward(Value grad, Value self, Value target, std::optional<Value> weight,
                        int64_t reduction, int64_t ignore_index, Value total_weight) {
  const Likelihood l = likelihood_of(self, target, weight, ignore_index);
  const Value result = nll_backward(grad, l, reduction, total_weight);
  return hlo::convert(hlo::reshape(result, self.dims()), self.dtype());
}

void check_spatial(Value self, Value target, const std::optional<Value>& weight) {
  require(target.rank() == 3,
          "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
          target.rank());
  require(self.rank() == 4,
          "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
          self.rank());
  require(!weight || weight->numel() == self.dim(kClassAxis),
          "weight tensor should be defined either for all or no classes");
  require(with_class_axis(target.dims(), self.dim(kClassAxis)) == self.dims(),
          "size mismatch (got input: [{}] , target: [{}]", fmt::join(self.dims(), ", "),
          fmt::join(target.dims(), ", "));
  require(target.dtype() == DType::kS64 || target.dtype() == DType::kU8,
          "expected target dtype to be Long or Byte, but got {}", scalar_type_name(target.dtype()));
}

std::pair<Value, Value> nll_loss2d_forward(Value self, Value target, std::optional<Value> weight,
                                           int64_t reduction, int64_t ignore_index) {
  check_spatial(self, target, weight);
  return nll_loss_forward(self, target, weight, reduction, ignore_index);
}

Value nll_loss2d_backward(Value grad, Value self, Value target, std::optional<Value> weight,
                          int64_t reduction, int64_t ignore_index, Value total_weight) {
  check_spatial(self, target, weight);
  require(reduction != kNone || grad.rank() == 3,
          "grad_output must have same dimension as target (3) but got dimension: [{}]",
          fmt::join(grad.dims(), ", "));
  return nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight);
}

void check_scores(Value self) {
  const bool fits = (self.rank() == 2 && self.dim(1) != 0) ||
                    (self.rank() == 1 && self.dim(0) != 0) || self.rank() == 0;
  require(fits, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [{}]",
          fmt::join(self.dims(), ", "));
}

Value as_batch(Value x) { return x.rank() == 2 ? x : hlo::reshape(x, {1, x.numel()}); }

// [batch, classes]: x spread over classes.
Value over_classes(Value x, int64_t classes) {
  return hlo::broadcast_in_dim(x, {x.dim(0), classes}, {0});
}

struct Margins {
  Value excess;  // margin - x[target] + x, where positive and not the target; else 0
  Value target_mask;
  Value weight;  // of each sample's target
  int64_t power;
};

Margins margins_of(Value self, Value target, const Number& p, Scalar margin,
                   const std::optional<Value>& weight) {
  check_scores(self);
  const double power = to_double(p);
  require(power == 1 || power == 2, "only p == 1 and p == 2 supported");
  const DType t = ir::compute_type(self.dtype());
  const Value x = hlo::convert(as_batch(self), t);
  const int64_t classes = x.dim(1);
  require(target.rank() <= 1 && target.numel() == x.dim(0),
          "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
          "samples (batch size). Expected target size [{}], but got [{}]. Input has shape [{}].",
          x.dim(0), fmt::join(target.dims(), ", "), fmt::join(self.dims(), ", "));
  require(!weight || weight->numel() == classes,
          "inconsistent weight size, expected {} but got [{}]", classes,
          weight ? fmt::format("{}", fmt::join(weight->dims(), ", ")) : "");
  check_range(target, {0, classes}, "target out of range", CheckKind::kRuntime);
  const Value position = as_position(hlo::reshape(target, {x.dim(0)}), classes);
  const Value chosen = hlo::take_along(x, hlo::reshape(position, {x.dim(0), 1}), 1);
  const Value own = hlo::broadcast_to(chosen, x.dims());
  const Value is_target =
      hlo::eq(hlo::iota_like(x, 1, position.dtype()), over_classes(position, classes));
  const Value z = margin.like(x) - own + x;
  Value w = hlo::full(x.graph(), {t, position.dims()}, 1.0);
  if (weight) w = hlo::take(hlo::convert(hlo::reshape(*weight, {classes}), t), position, 0);
  return {where(is_target | (z <= 0.0), 0.0, z), is_target, w, static_cast<int64_t>(power)};
}

Value multi_margin_loss(Value self, Value target, Number p, Scalar margin,
                        std::optional<Value> weight, int64_t reduction) {
  require_float("multi_margin_loss_cpu", self.dtype());
  const Margins m = margins_of(self, target, p, margin, weight);
  const int64_t classes = m.excess.dim(1);
  const Value h = m.power == 2 ? m.excess * m.excess : m.excess;
  const Value sums = hlo::reduce_sum(h, {1}) * m.weight / static_cast<double>(classes);
  Value loss = reduced_loss(sums, sums.numel() == 0 ? int64_t{kSum} : reduction);
  if (reduction == kNone) loss = hlo::reshape(sums, self.rank() == 2 ? sums.dims() : target.dims());
  return hlo::convert(loss, self.dtype());
}

Value multi_margin_loss_backward(Value grad, Value self, Value target, Number p, Scalar margin,
                                 std::optional<Value> weight, int64_t reduction) {
  const Margins m = margins_of(self, target, p, margin, weight);
  const Dims& dims = m.excess.dims();
  const DType t = m.excess.dtype();
  const Value slope =
      m.power == 2 ? m.excess * 2.0 : where(m.excess > 0.0, hlo::full_like(m.excess, 1.0), 0.0);
  const Value others = slope / static_cast<double>(dims[1]);
  const Value own = over_classes(-hlo::reduce_sum(others, {1}), dims[1]);
  const Value g = loss_gradient(hlo::convert(grad, t), reduction, dims[0]);
  const Value spread = hlo::broadcast_to(g.numel() == 1 ? hlo::reshape(g, {}) : g, {dims[0]});
  const Value result = where(m.target_mask, own, others) * over_classes(m.weight * spread, dims[1]);
  return hlo::convert(hlo::reshape(result, self.dims()), self.dtype());
}

void check_label_dims(Value self, Value target) {
  check_scores(self);
  require(target.dims() == self.dims() || (self.rank() <= 1 && target.numel() == self.numel()),
          "inconsistent target size: [{}] for input of size: [{}]", fmt::join(target.dims(), ", "),
          fmt::join(self.dims(), ", "));
  require(target.dtype() == DType::kS64, "expected scalar type Long but found {}",
          scalar_type_name(target.dtype()));
}

// Each row's labels up to the first negative one.
struct Labels {
  Value position;  // s32 [batch, classes]
  Value valid;     // pred
};

Labels labels_of(Value self, Value target) {
  check_label_dims(self, target);
  const Value labels = as_batch(target);
  const int64_t classes = labels.dim(1);
  check_range(labels, {-1, classes}, "argument #2 'target' is out of range", CheckKind::kRuntime);
  const Value ended =
      hlo::convert(hlo::lt(labels, hlo::full_like(labels, int64_t{0})), DType::kS32);
  return {as_position(labels, classes), equals(running_count(ended, 1), 0.0)};
}

Value label_mask(const Labels& l) {
  const Value none = hlo::full(l.valid.graph(), {DType::kPred, l.valid.dims()}, false);
  return scatter_along(none, where(l.valid, l.position, 0.0), l.valid, 1, hlo::or_);
}

// [batch, label, class]: 1 - x[label] + x[class] where positive, for valid labels and classes that
// are none of the labels.
Value label_excess(Value x, const Labels& l, Value is_label) {
  const int64_t classes = x.dim(1);
  const Dims cube{x.dim(0), classes, classes};
  const Value chosen = hlo::take_along(x, where(l.valid, l.position, 0.0), 1);
  const Value z =
      1.0 - hlo::broadcast_in_dim(chosen, cube, {0, 1}) + hlo::broadcast_in_dim(x, cube, {0, 2});
  const Value counts =
      hlo::broadcast_in_dim(l.valid, cube, {0, 1}) & ~hlo::broadcast_in_dim(is_label, cube, {0, 2});
  return where(counts & (z > 0.0), z, 0.0);
}

std::pair<Value, Value> multilabel_margin_loss_forward(Value self, Value target,
                                                       int64_t reduction) {
  require_float("multilabel_margin_loss_forward_out_frame", self.dtype());
  const Labels l = labels_of(self, target);
  const Value x = hlo::convert(as_batch(self), ir::compute_type(self.dtype()));
  const Value is_label = label_mask(l);
  const Value sums =
      hlo::reduce_sum(label_excess(x, l, is_label), {1, 2}) / static_cast<double>(x.dim(1));
  Value loss = reduced_loss(sums, reduction);
  if (reduction == kNone && self.rank() < 2) loss = hlo::reshape(sums, {});
  return {hlo::convert(loss, self.dtype()),
          hlo::reshape(hlo::convert(is_label, self.dtype()), target.dims())};
}

Value multilabel_margin_loss_backward(Value grad, Value self, Value target, int64_t reduction,
                                      Value is_target) {
  const Labels l = labels_of(self, target);
  const DType t = ir::compute_type(self.dtype());
  const Value x = hlo::convert(as_batch(self), t);
  const int64_t classes = x.dim(1);
  const Value is_label = differs(as_batch(is_target), 0.0);
  const Value z = label_excess(x, l, is_label);
  const Value active = where(z > 0.0, hlo::full_like(z, 1.0), 0.0);
  const Value to_classes = hlo::reduce_sum(active, {1});
  const Value to_labels = -hlo::reduce_sum(active, {2});
  const Value sum =
      scatter_along(to_classes, where(l.valid, l.position, 0.0), to_labels, 1, hlo::add);
  const Value g = loss_gradient(hlo::convert(grad, t), reduction, x.dim(0));
  const Value spread = hlo::broadcast_to(g.numel() == 1 ? hlo::reshape(g, {}) : g, {x.dim(0)});
  const Value result = sum / static_cast<double>(classes) * over_classes(spread, classes);
  return hlo::convert(hlo::reshape(result, self.dims()), self.dtype());
}

}  // namespace

Rules class_loss_rules() {
  const Traits checks{.reduction = true, .indexes = true};
  return {
      {"aten::nll_loss_forward", nll_loss_forward, checks},
      {"aten::nll_loss_backward", nll_loss_backward, checks},
      {"aten::nll_loss2d_forward", nll_loss2d_forward, checks},
      {"aten::nll_loss2d_backward", nll_loss2d_backward, checks},
      {"aten::multi_margin_loss", multi_margin_loss, checks},
      {"aten::multi_margin_loss_backward", multi_margin_loss_backward, checks},
      {"aten::multilabel_margin_loss_forward", multilabel_margin_loss_forward, checks},
      {"aten::multilabel_margin_loss_backward", multilabel_margin_loss_backward, checks},
  };
}

}  // namespace tpu::lower
