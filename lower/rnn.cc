// SPDX-License-Identifier: Apache-2.0
// The cells of LSTM and GRU after their matrix products, with their gradients. The workspaces hold
// activated gates and are read by the gradients here only.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/reduction.h"

namespace tpu::lower {
namespace {

Value plus_bias(Value gates, const std::optional<Value>& bias) {
  const Value x = widened(gates);
  return bias ? x + hlo::broadcast_to(widened(*bias), x.dims()) : x;
}

Values split(Value x, int64_t parts) {
  const int64_t axis = x.rank() - 1;
  const int64_t size = x.dim(axis) / parts;
  Values out;
  for (int64_t i = 0; i < parts; ++i) {
    out.push_back(hlo::slice_axis(x, axis, i * size, (i + 1) * size));
  }
  return out;
}

Value join(const Values& parts) { return hlo::concatenate(parts, parts[0].rank() - 1); }

// x * (1 - x) and 1 - x * x: the slopes of logistic and tanh, from their values.
Value logistic_slope(Value y) { return y * (1.0 - y); }
Value tanh_slope(Value y) { return 1.0 - y * y; }

Values lstm_cell(Value input_gates, Value hidden_gates, Value cx, std::optional<Value> input_bias,
                 std::optional<Value> hidden_bias) {
  const DType t = input_gates.dtype();
  const Values gates =
      split(plus_bias(input_gates, input_bias) + plus_bias(hidden_gates, hidden_bias), 4);
  const Value in = hlo::logistic(gates[0]);
  const Value forget = hlo::logistic(gates[1]);
  const Value cell = hlo::tanh(gates[2]);
  const Value out = hlo::logistic(gates[3]);
  const Value cy = forget * widened(cx) + in * cell;
  const Value hy = out * hlo::tanh(cy);
  return {hlo::convert(hy, t), hlo::convert(cy, t), hlo::convert(join({in, forget, cell, out}), t)};
}

// Gradients by gates, cx and bias.
Values lstm_cell_backward(std::optional<Value> grad_hy, std::optional<Value> grad_cy, Value cx,
                          Value cy, Value workspace, bool has_bias) {
  const DType t = workspace.dtype();
  const Values gates = split(widened(workspace), 4);
  const Value zero = hlo::full_like(widened(cx), int64_t{0});
  const Value dh = grad_hy ? widened(*grad_hy) : zero;
  const Value dc_in = grad_cy ? widened(*grad_cy) : zero;
  const Value tc = hlo::tanh(widened(cy));
  const Value dc = dh * gates[3] * tanh_slope(tc) + dc_in;
  const Value d_gates =
      join({dc * gates[2] * logistic_slope(gates[0]), dc * widened(cx) * logistic_slope(gates[1]),
            dc * gates[0] * tanh_slope(gates[2]), dh * tc * logistic_slope(gates[3])});
  return {hlo::convert(d_gates, t), hlo::convert(dc * gates[1], t),
          has_bias ? hlo::convert(sum_over(d_gates, {0}), t) : undefined(workspace.graph())};
}

// The workspace holds reset, update, new, the old state and the hidden part of the new gate.
Values gru_cell(Value input_gates, Value hidden_gates, Value hx, std::optional<Value> input_bias,
                std::optional<Value> hidden_bias) {
  const DType t = input_gates.dtype();
  const Values in = split(plus_bias(input_gates, input_bias), 3);
  const Values hidden = split(plus_bias(hidden_gates, hidden_bias), 3);
  const Value h = widened(hx);
  const Value reset = hlo::logistic(in[0] + hidden[0]);
  const Value update = hlo::logistic(in[1] + hidden[1]);
  const Value fresh = hlo::tanh(in[2] + reset * hidden[2]);
  const Value hy = fresh + update * (h - fresh);
  return {hlo::convert(hy, t), hlo::convert(join({reset, update, fresh, h, hidden[2]}), t)};
}

Values gru_cell_backward(Value grad_hy, Value workspace, bool has_bias) {
  const DType t = workspace.dtype();
  const Values w = split(widened(workspace), 5);
  const Value dh = widened(grad_hy);
  const Value d_fresh = dh * (1.0 - w[1]) * tanh_slope(w[2]);
  const Value d_update = dh * (w[3] - w[2]) * logistic_slope(w[1]);
  const Value d_reset = d_fresh * w[4] * logistic_slope(w[0]);
  const Value d_in = join({d_reset, d_update, d_fresh});
  const Value d_hidden = join({d_reset, d_update, d_fresh * w[0]});
  const Value none = undefined(workspace.graph());
  return {hlo::convert(d_in, t), hlo::convert(d_hidden, t), hlo::convert(dh * w[1], t),
          has_bias ? hlo::convert(sum_over(d_in, {0}), t) : none,
          has_bias ? hlo::convert(sum_over(d_hidden, {0}), t) : none};
}

}  // namespace

Rules rnn_rules() {
  return {
      {"aten::_thnn_fused_lstm_cell", lstm_cell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward},
      {"aten::_thnn_fused_gru_cell", gru_cell},
      {"aten::_thnn_fused_gru_cell_backward", gru_cell_backward},
  };
}

}  // namespace tpu::lower
