// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention as one op, and its gradient. Scores, softmax and sums are in f32 for
// the 16-bit types. Fewer key heads than query heads are shared by consecutive query heads without
// being repeated. A row that attends to nothing gives zeros.
#include <algorithm>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/matmul.h"
#include "lower/reduction.h"

namespace tpu::lower {
namespace {

constexpr int64_t kRow = 2;
constexpr int64_t kColumn = 3;

// Dims before the last two.
Dims leading(Value x) { return Dims(x.dims().begin(), x.dims().end() - 2); }

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The sizes of one call. Everything is computed on [batch, heads, rows, columns].
struct Layout {
  Dims lead;  // batch dims of the result, with the query's heads last
  int64_t batch = 1, heads = 1, key_heads = 1;
  int64_t rows = 0, columns = 0;  // queries, keys

  Dims scores() const { return {batch, heads, rows, columns}; }
  Dims user_dims(int64_t a, int64_t b) const { return joined(lead, {a, b}); }
};

Layout layout_of(Value q, Value k, Value v) {
  require(q.dim(q.rank() - 1) == k.dim(k.rank() - 1) && k.dim(k.rank() - 2) == v.dim(v.rank() - 2),
          "scaled_dot_product_attention: expected query [..., L, E], key [..., S, E] and value "
          "[..., S, Ev], got {}, {} and {}",
          q.type().str(), k.type().str(), v.type().str());
  Layout l;
  l.rows = q.dim(q.rank() - 2);
  l.columns = k.dim(k.rank() - 2);
  Dims ql = leading(q);
  Dims kl = leading(k);
  const Dims vl = leading(v);
  l.heads = ql.empty() ? 1 : ql.back();
  l.key_heads = kl.empty() ? 1 : kl.back();
  const bool shared = l.key_heads > 0 && l.heads % l.key_heads == 0 && !ql.empty() && !kl.empty();
  if (shared) kl.back() = ql.back();
  const auto plain = [&](Dims d) {
    return hlo::full(q.graph(), {DType::kPred, std::move(d)}, false);
  };
  Dims vl_as_q = vl;
  if (shared && !vl.empty() && vl.back() == l.key_heads) vl_as_q.back() = ql.back();
  l.lead = broadcast_dims(Values{plain(ql), plain(kl), plain(vl_as_q)});
  if (!l.lead.empty()) l.heads = l.lead.back();
  if (!shared) l.key_heads = l.heads;
  for (size_t i = 0; i + 1 < l.lead.size(); ++i) l.batch *= l.lead[i];
  return l;
}

// Dims of an operand whose heads are `heads`, before it is made rank 4.
Dims operand_dims(const Layout& l, int64_t heads, Value x) {
  Dims dims = l.lead;
  if (!dims.empty()) dims.back() = heads;
  return joined(std::move(dims), {x.dim(x.rank() - 2), x.dim(x.rank() - 1)});
}

Value to_rank4(Value x, const Layout& l, int64_t heads) {
  const Dims dims{l.batch, heads, x.dim(x.rank() - 2), x.dim(x.rank() - 1)};
  return hlo::reshape(hlo::broadcast_to(x, operand_dims(l, heads, x)), dims);
}

// [b, heads, rows, n] -> [b, key heads, heads per key head * rows, n], and back.
Value by_key_head(Value x, const Layout& l) {
  return hlo::reshape(x, {l.batch, l.key_heads,
                          l.heads / std::max<int64_t>(l.key_heads, 1) * l.rows, x.dim(kColumn)});
}
Value by_head(Value x, const Layout& l) {
  return hlo::reshape(x, {l.batch, l.heads, l.rows, x.dim(kColumn)});
}

// Sums a gradient over the dims along which its operand was broadcast.
Value sum_to(Value x, const Dims& dims) {
  const auto extra = static_cast<size_t>(x.rank()) - dims.size();
  Dims axes;
  for (size_t i = 0; i < x.dims().size(); ++i) {
    if (i < extra || (dims[i - extra] == 1 && x.dims()[i] != 1)) {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return hlo::reshape(axes.empty() ? x : sum_over(x, axes), dims);
}

Value minus_infinity(Value x) {
  return hlo::broadcast_to(hlo::lowest(x.graph(), x.dtype()), x.dims());
}

struct Options {
  std::optional<Value> bias;
  bool causal;
  double scale;
};

// f32 (or f64) scores with -inf where a query may not look.
Value scores(Value q, Value k, const Layout& l, const Options& o) {
  const Value product = wide_matmul_transposed(by_key_head(q, l), k);
  Value s = by_head(product, l) * o.scale;
  if (o.causal) {
    const Value row = hlo::iota_like(s, kRow, DType::kS32);
    s = where(row >= hlo::iota_like(s, kColumn, DType::kS32), s, minus_infinity(s));
  }
  if (!o.bias) return s;
  const Value bias =
      hlo::reshape(hlo::broadcast_to(*o.bias, l.user_dims(l.rows, l.columns)), l.scores());
  if (ir::is_bool(bias.dtype())) return where(bias, s, minus_infinity(s));
  return s + hlo::convert(bias, s.dtype());
}

double scale_of(const std::optional<double>& scale, Value q) {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(q.dim(q.rank() - 1)));
}

// What dropout multiplies the weights by: 0 or 1 / (1 - p).
Value dropout_factor(Value like, Value seed, Value offset, const Coefficient& p) {
  const Value bits = hlo::philox_bits(seed, offset, like.dims(), DType::kU32);
  const Value high = hlo::shift_right_logical(bits, hlo::full_like(bits, int64_t{8}));
  const Value uniform = hlo::convert(hlo::convert(high, DType::kS32), DType::kF32) * 0x1p-24;
  const Value keep = uniform >= p.scalar().like(uniform);
  return where(keep, 1.0 / (1.0 - p.scalar().like(like)), 0.0);
}

struct Seed {
  Value seed, offset;  // u64
};

Value drop(Value weights, const Seed& s, const Coefficient& p) {
  if (p.is_zero()) return weights;
  if (p.is_one()) return hlo::full_like(weights, int64_t{0});
  return weights * dropout_factor(weights, s.seed, s.offset, p);
}

Seed draw_seed(Graph& graph, const Dims& dims, const Coefficient& p) {
  if (p.is_zero() || p.is_one()) {
    const Value zero = hlo::constant(graph, DType::kU64, int64_t{0});
    return {zero, zero};
  }
  const auto state = graph.random_state(hlo::philox_blocks(ir::element_count(dims), DType::kU32));
  return {state.seed, state.offset};
}

Values attention(Value query, Value key, Value value, std::optional<Value> bias,
                 Coefficient dropout_p, bool causal, bool, std::optional<double> scale) {
  Graph& graph = query.graph();
  const Layout l = layout_of(query, key, value);
  const Value s = scores(to_rank4(query, l, l.heads), to_rank4(key, l, l.key_heads), l,
                         {bias, causal, scale_of(scale, query)});
  const Value greatest = max_over(s, {kColumn});
  const Value empty = equals(greatest, -INFINITY);
  const Value base = where(empty, 0.0, greatest);
  const Value weights = hlo::exp(s - spread(base, s.dims(), {kColumn}));
  const Value sum = sum_over(weights, {kColumn});
  const Seed seed = draw_seed(graph, s.dims(), dropout_p);
  const Value v = to_rank4(value, l, l.key_heads);
  const Value dropped = hlo::convert(drop(weights, seed, dropout_p), query.dtype());
  const Value mixed = by_head(wide_matmul(by_key_head(dropped, l), v), l);
  const Value out = mixed / spread(where(empty, 1.0, sum), mixed.dims(), {kColumn});
  // +inf makes the weights of an empty row zero in the gradient.
  const Value log_sum = where(empty, INFINITY, hlo::log(sum) + base);
  const Dims lse_dims = joined(l.lead, {l.rows});
  return {hlo::reshape(hlo::convert(out, query.dtype()), l.user_dims(l.rows, v.dim(kColumn))),
          hlo::reshape(log_sum, lse_dims),
          undefined(graph),
          undefined(graph),
          hlo::convert(seed.seed, DType::kS64),
          hlo::convert(seed.offset, DType::kS64),
          undefined(graph)};
}

// The gradient by an operand of `heads` heads, in the operand's own dims.
Value returned(Value gradient, Value operand, const Layout& l, int64_t heads) {
  const Value full = hlo::reshape(gradient, operand_dims(l, heads, operand));
  return hlo::convert(sum_to(full, operand.dims()), operand.dtype());
}

// a^T b over the rows of both.
Value rows_product(Value a, Value b) {
  return wide_dot(
      a, b,
      {.lhs_batch = {0, 1}, .rhs_batch = {0, 1}, .lhs_contract = {kRow}, .rhs_contract = {kRow}});
}

Values attention_backward(Value gradient, Value query, Value key, Value value,
                          std::optional<Value> bias, std::vector<bool> mask, Value out, Value lse,
                          std::optional<Value>, std::optional<Value>, int64_t, int64_t,
                          Coefficient dropout_p, bool causal, Value seed, Value offset,
                          std::optional<double> scale) {
  const DType t = query.dtype();
  const Layout l = layout_of(query, key, value);
  const Value q = to_rank4(query, l, l.heads);
  const Value k = to_rank4(key, l, l.key_heads);
  const Value v = to_rank4(value, l, l.key_heads);
  const Value dy = to_rank4(gradient, l, l.heads);
  const Options options{bias, causal, scale_of(scale, query)};
  const Value s = scores(q, k, l, options);
  const Value log_sum = hlo::reshape(hlo::convert(lse, s.dtype()), {l.batch, l.heads, l.rows});
  const Value weights = hlo::exp(s - spread(log_sum, s.dims(), {kColumn}));
  const Seed state{hlo::convert(seed, DType::kU64), hlo::convert(offset, DType::kU64)};
  const Value delta = sum_over(widened(dy) * widened(to_rank4(out, l, l.heads)), {kColumn});
  const Value dy_grouped = by_key_head(dy, l);
  const Value dw = drop(by_head(wide_matmul_transposed(dy_grouped, v), l), state, dropout_p);
  const Value ds = weights * (dw - spread(delta, s.dims(), {kColumn}));
  const Value ds_grouped = by_key_head(hlo::convert(ds * options.scale, t), l);
  Values results(4, undefined(query.graph()));
  if (mask[0]) results[0] = returned(by_head(wide_matmul(ds_grouped, k), l), query, l, l.heads);
  if (mask[1]) {
    results[1] = returned(rows_product(ds_grouped, by_key_head(q, l)), key, l, l.key_heads);
  }
  if (mask[2]) {
    const Value dropped = by_key_head(hlo::convert(drop(weights, state, dropout_p), t), l);
    results[2] = returned(rows_product(dropped, dy_grouped), value, l, l.key_heads);
  }
  if (mask[3] && bias) {
    const Value full = hlo::reshape(ds, l.user_dims(l.rows, l.columns));
    results[3] = hlo::convert(sum_to(full, bias->dims()), bias->dtype());
  }
  return results;
}

}  // namespace

Rules attention_rules() {
  const Traits traits{.strides = Strides::kPreserve, .reduction = true};
  return {
      {"aten::_scaled_dot_product_fused_attention_overrideable", attention, traits},
      {"aten::_scaled_dot_product_fused_attention_overrideable_backward", attention_backward,
       traits},
  };
}

}  // namespace tpu::lower
