// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification (Graves et al., ICML 2006). The states of a sequence are
// its labels with a blank before, between and after them; alpha and beta are the log-probabilities
// of all paths into and out of a state. Lengths are data, so that only padded sizes compile.
#include <limits>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/matmul.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

Value number_like(Value x, int64_t n) { return hlo::full_like(x, n); }

// log(exp(a) + exp(b)), also of two -inf.
Value log_add(Value a, Value b) {
  const Value greater = hlo::max(a, b);
  const Value sum = greater + hlo::log1p(hlo::exp(hlo::min(a, b) - greater));
  return where(equals(greater, kNever), kNever, sum);
}

// x moved by `by` states, -inf moving in.
Value shifted(Value x, int64_t by) {
  const Value fill = hlo::constant(x.graph(), x.dtype(), kNever);
  return hlo::pad(x, fill, {0, by}, {0, -by}, {0, 0});
}

class Lattice {
 public:
  Lattice(Value log_probs, Value targets, Value input_lengths, Value target_lengths, int64_t blank)
      : log_probs_(log_probs),
        times_(log_probs.dim(0)),
        batch_(log_probs.dim(1)),
        labels_(targets.dim(targets.rank() - 1)),
        states_(2 * labels_ + 1) {
    input_lengths_ = column(input_lengths);
    target_lengths_ = column(target_lengths);
    place_labels(targets.rank() == 1 ? rows_of(targets, target_lengths) : targets, blank);
    const Dims cube{times_, batch_, states_};
    emitted_ = hlo::take_along(log_probs, hlo::broadcast_in_dim(*label_, cube, {1, 2}), 2);
  }

  struct Forward {
    Value alpha;  // [times, batch, states]
    Value loss;   // [batch]
  };
  Forward forward() const {
    const Value s = state();
    const Value start = where((s < 2.0) & valid(), emission(0), kNever);
    const auto step = [&](Value i, std::span<const Value> carried) {
      const Value now = i + 1.0;
      const Value stay = log_add(carried[0], shifted(carried[0], 1));
      const Value leap = where(*leaps_, shifted(carried[0], 2), kNever);
      const Value next = log_add(stay, leap) + emission(now);
      const Value live = hlo::broadcast_to(now, input_lengths_->dims()) < *input_lengths_;
      const Value alpha = where(over_states(live) & valid(), next, kNever);
      // A finished sequence keeps its last alpha to be read at the end.
      const Value last = where(over_states(live), alpha, carried[0]);
      return Values{last, put(carried[1], alpha, now)};
    };
    const Value unwritten = hlo::full(graph(), {type(), {times_, batch_, states_}}, kNever);
    const Value zero = hlo::constant(graph(), DType::kS32, int64_t{0});
    const Values end = hlo::for_loop(times_ - 1, {start, put(unwritten, start, zero)}, step);
    return {end[1], loss_of(end[0])};
  }

  // By the recursion of alpha run backwards.
  Value beta() const {
    const auto step = [&](Value i, std::span<const Value> carried) {
      const Value now = number_like(i, times_ - 1) - i;
      const Value stay = log_add(carried[0], shifted(carried[0], -1));
      const Value leap = shifted(where(*leaps_, carried[0], kNever), -2);
      const Value moved = log_add(stay, leap);
      const Value end = over_states(equal_column(now + 1.0, *input_lengths_));
      const Value inner = where(end, where(is_last(), 0.0, hlo::full_like(moved, kNever)), moved);
      const Value live =
          over_states(hlo::broadcast_to(now, input_lengths_->dims()) < *input_lengths_);
      const Value beta = where(live & valid(), inner + emission(now), kNever);
      return Values{beta, put(carried[1], beta, now)};
    };
    const Value unwritten = hlo::full(graph(), {type(), {times_, batch_, states_}}, kNever);
    const Value none = hlo::full(graph(), {type(), {batch_, states_}}, kNever);
    return hlo::for_loop(times_, {none, unwritten}, step)[1];
  }

  // What reaches log_probs, per unit of each sequence's gradient.
  Value gradient(Value alpha, Value loss) const {
    const Dims cube{times_, batch_, states_};
    const Value path = alpha + beta() + hlo::broadcast_in_dim(loss, cube, {1});
    const Value share = where(equals(alpha, kNever), path, path - *emitted_);
    const Value occupied = by_class(hlo::exp(share));
    const Value time = hlo::iota(graph(), {DType::kS32, {times_, batch_}}, 0);
    const Value live = time < hlo::broadcast_in_dim(flat(*input_lengths_), {times_, batch_}, {1});
    const Value inside = hlo::broadcast_in_dim(live, log_probs_.dims(), {0, 1});
    return where(inside, hlo::exp(log_probs_) - occupied, 0.0);
  }

 private:
  Graph& graph() const { return log_probs_.graph(); }
  DType type() const { return log_probs_.dtype(); }
  Value column(Value v) const { return hlo::reshape(hlo::convert(v, DType::kS32), {batch_, 1}); }
  Value flat(Value v) const { return hlo::reshape(v, {batch_}); }
  Value state() const { return hlo::iota(graph(), {DType::kS32, {batch_, states_}}, 1); }
  Value over_states(Value v) const { return hlo::broadcast_in_dim(v, {batch_, states_}, {0, 1}); }
  Value equal_column(Value n, Value column) const {
    return hlo::eq(hlo::broadcast_to(n, column.dims()), column);
  }
  Value last_state() const {
    return over_states(*target_lengths_ * number_like(*target_lengths_, 2));
  }
  Value valid() const { return state() <= last_state(); }
  Value is_last() const {
    const Value s = state();
    return valid() & (s >= last_state() - 1.0);
  }

  // The labels of concatenated sequences, as many columns as all of them have.
  Value rows_of(Value targets, Value lengths) const {
    const Value own = hlo::reshape(hlo::convert(lengths, DType::kS32), {batch_});
    const Value start = running_count(own, 0) - own;
    const Dims dims{batch_, labels_};
    const Value at =
        hlo::broadcast_in_dim(start, dims, {0}) + hlo::iota(graph(), {DType::kS32, dims}, 1);
    return take_flat(targets, min(at, static_cast<double>(labels_ - 1)));
  }

  void place_labels(Value rows, int64_t blank) {
    const Value label = hlo::convert(rows, DType::kS32);
    const Value blanks = hlo::constant(graph(), DType::kS32, blank);
    const Value spread = hlo::pad(label, blanks, {0, 1}, {0, 1}, {0, 1});
    label_ = clip(spread, number_like(spread, 0), number_like(spread, log_probs_.dim(2) - 1));
    const Value none = hlo::constant(graph(), DType::kS32, int64_t{-1});
    const Value before = hlo::pad(spread, none, {0, 2}, {0, -2}, {0, 0});
    const Value odd = equals(state() & number_like(state(), 1), 1.0);
    leaps_ = odd & hlo::ne(spread, before);
  }

  Value emission(Value time) const {
    const Value zero = number_like(time, 0);
    const Value row = hlo::dynamic_slice(*emitted_, {time, zero, zero}, {1, batch_, states_});
    return hlo::reshape(row, {batch_, states_});
  }
  Value emission(int64_t time) const { return emission(hlo::constant(graph(), DType::kS32, time)); }
  Value put(Value all, Value row, Value time) const {
    const Value zero = number_like(time, 0);
    const Value update = hlo::reshape(row, {1, batch_, states_});
    return hlo::dynamic_update_slice(all, update, {time, zero, zero});
  }

  Value loss_of(Value last) const {
    const Value ends = where(is_last(), last, kNever);
    const Value greatest = max_over(ends, {1});
    const Value shift = where(is_infinite(greatest), 0, greatest);
    const Value mass =
        sum_over(hlo::exp(ends - hlo::broadcast_in_dim(shift, ends.dims(), {0})), {1});
    // Without time only the empty sequence of labels has a path.
    const Value no_time = equals(flat(*input_lengths_), 0.0);
    const Value no_label = equals(flat(*target_lengths_), 0.0);
    const Value loss = -(hlo::log(mass) + shift);
    return where(no_time, where(no_label, 0.0, hlo::full_like(loss, -kNever)), loss);
  }

  Value by_class(Value share) const {
    if (graph().target().cpu) {
      const Value zeros = hlo::full_like(log_probs_, 0.0);
      return scatter_along(zeros, hlo::broadcast_in_dim(*label_, share.dims(), {1, 2}), share, 2,
                           hlo::add);
    }
    const Dims dims{batch_, states_, log_probs_.dim(2)};
    const Value is_class = hlo::eq(hlo::broadcast_in_dim(*label_, dims, {0, 1}),
                                   hlo::iota(graph(), {DType::kS32, dims}, 2));
    const Value product =
        wide_dot(share, hlo::convert(is_class, type()),
                 {.lhs_batch = {1}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}});
    return hlo::transpose(product, {1, 0, 2});
  }

  Value log_probs_;
  int64_t times_, batch_, labels_, states_;
  std::optional<Value> input_lengths_, target_lengths_;  // [batch, 1]
  std::optional<Value> label_;                           // of each state
  std::optional<Value> leaps_;    // the state can follow the one before the last
  std::optional<Value> emitted_;  // [times, batch, states]
};

void check_arguments(Value log_probs, Value input_lengths, Value target_lengths, int64_t blank) {
  require(log_probs.rank() == 3,
          "Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 "
          "'log_probs' (while checking arguments for ctc_loss_allocate_outputs)",
          log_probs.rank());
  require(log_probs.numel() > 0, "log_probs tensor must not be empty");
  require_dtype(log_probs.dtype() == DType::kF32 || log_probs.dtype() == DType::kF64,
                "ctc_loss_cpu", log_probs.dtype());
  require(blank >= 0 && blank < log_probs.dim(2), "blank must be in label range");
  const auto check = [&](Value lengths, std::string_view name) {
    require(ir::is_integer(lengths.dtype()), "{} must be integral", name);
    require(lengths.numel() == log_probs.dim(1), "{} must be of size batch_size", name);
  };
  check(input_lengths, "input_lengths");
  check(target_lengths, "target_lengths");
  check_range(input_lengths, {0, log_probs.dim(0) + 1},
              fmt::format("Expected input_lengths to have value at most {}, but got value {{}} "
                          "(while checking arguments for ctc_loss_allocate_outputs)",
                          log_probs.dim(0)),
              CheckKind::kRuntime);
}

Values ctc_loss(Value log_probs, Value targets, Value input_lengths, Value target_lengths,
                int64_t blank) {
  check_arguments(log_probs, input_lengths, target_lengths, blank);
  const Lattice lattice(log_probs, targets, input_lengths, target_lengths, blank);
  const auto [alpha, loss] = lattice.forward();
  return {loss, hlo::transpose(alpha, {1, 0, 2})};
}

Value ctc_loss_backward(Value grad, Value log_probs, Value targets, Value input_lengths,
                        Value target_lengths, Value loss, Value log_alpha, int64_t blank,
                        bool zero_infinity) {
  const Lattice lattice(log_probs, targets, input_lengths, target_lengths, blank);
  const Value unit = lattice.gradient(hlo::transpose(log_alpha, {1, 0, 2}), loss);
  const Value scaled = unit * hlo::broadcast_in_dim(grad, unit.dims(), {1});
  if (!zero_infinity) return scaled;
  const Value hopeless = equals(loss, -kNever);
  return where(hlo::broadcast_in_dim(hopeless, unit.dims(), {1}), 0.0, scaled);
}

}  // namespace

Rules ctc_rules() {
  return {
      {"aten::_ctc_loss.Tensor", ctc_loss, {.reduction = true, .indexes = true}},
      {"aten::_ctc_loss_backward.Tensor", ctc_loss_backward, {.reduction = true}},
  };
}

}  // namespace tpu::lower
