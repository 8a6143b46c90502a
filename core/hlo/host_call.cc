// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/host_call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/hlo/attributes.h"
#include "core/hlo/control.h"

namespace tpu::hlo {
namespace {

std::string hex(double d) { return fmt::format("{:016x}", std::bit_cast<uint64_t>(d)); }

Dims row_major(const Type& type) {
  Dims order = all_axes(type.rank());
  std::reverse(order.begin(), order.end());
  return order;
}

// Builds the arguments' text and the list of operands together.
class Encoder {
 public:
  void operator()(std::monostate) { token("-"); }
  void operator()(const Value& v) {
    token(v.graph().is_wrapped(v) ? "w" : "t");
    operands_.push_back(v);
  }
  void operator()(const HostByColumns& matrix) {
    token("q");
    by_columns_.resize(operands_.size());
    by_columns_.push_back(true);
    operands_.push_back(matrix.value);
  }
  void operator()(const std::vector<std::optional<Value>>& list) {
    std::string flags;
    for (const auto& v : list) {
      flags += v ? '1' : '0';
      if (v) operands_.push_back(*v);
    }
    token("T" + flags);
  }
  void operator()(const HostWritten& written) {
    token(written.initial ? "m" : "o");
    if (written.initial) operands_.push_back(*written.initial);
  }
  void operator()(const Literal& literal) { std::visit(*this, literal); }
  void operator()(bool b) { token(b ? "b1" : "b0"); }
  void operator()(int64_t i) { token(fmt::format("i{}", i)); }
  void operator()(double d) { token("d" + hex(d)); }
  void operator()(const std::complex<double>& c) {
    token(fmt::format("c{},{}", hex(c.real()), hex(c.imag())));
  }
  void operator()(const Dims& dims) { token(fmt::format("I{}", fmt::join(dims, ","))); }
  void operator()(const std::vector<double>& list) {
    std::vector<std::string> texts;
    texts.reserve(list.size());
    for (const double d : list) texts.push_back(hex(d));
    token(fmt::format("D{}", fmt::join(texts, ",")));
  }
  void operator()(const std::vector<bool>& list) {
    std::string flags;
    for (const bool b : list) flags += b ? '1' : '0';
    token("B" + flags);
  }
  void operator()(const std::string& s) {
    std::string text = "s";
    for (const char c : s) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    token(text);
  }
  void operator()(DType t) { token(fmt::format("y{}", static_cast<int>(t))); }
  void operator()(HostDevice) { token("x"); }

  const std::string& text() const { return text_; }
  const Values& operands() const { return operands_; }
  // In memory, most minor axis first.
  std::vector<Dims> orders() const {
    std::vector<Dims> orders;
    for (size_t i = 0; i < operands_.size(); ++i) {
      orders.push_back(row_major(operands_[i].type()));
      if (i < by_columns_.size() && by_columns_[i]) std::swap(orders[i][0], orders[i][1]);
    }
    return orders;
  }

 private:
  void token(std::string_view t) {
    if (!text_.empty()) text_ += ' ';
    text_ += t;
  }
  std::string text_;
  Values operands_;
  std::vector<bool> by_columns_;  // of the operands so far
};

}  // namespace

Values host_call(Graph& graph, const HostCall& call) {
  TPU_CHECK(graph.target().host_calls, "rules call the host's kernels only where that is allowed");
  Encoder encoder;
  for (const HostArgument& a : call.arguments) std::visit(encoder, a);
  std::vector<Type> types;
  std::string wanted;
  for (const auto& t : call.fresh) {
    wanted += t ? '1' : '0';
    if (t) types.push_back(*t);
  }
  types.insert(types.end(), call.written.begin(), call.written.end());
  const Type status{DType::kS64, {}};
  types.push_back(status);
  std::vector<Dims> result_orders;
  result_orders.reserve(types.size());
  for (const Type& t : types) result_orders.push_back(row_major(t));
  const Values made = custom_call_in_order(
      graph, kHostCallTarget, encoder.operands(), types, {encoder.orders(), result_orders},
      fmt::format(R"({{op = "{}", args = "{}", results = "{}"}})", call.op, encoder.text(),
                  wanted));
  const Value failed = ne(made.back(), constant(graph, DType::kS64, int64_t{0}));
  graph.check(failed, made.back(), call.op, ir::CheckKind::kHostCall);

  Values results;
  size_t next = 0;
  for (const auto& t : call.fresh) results.push_back(t ? made[next++] : Value(&graph, -1));
  results.insert(results.end(), made.begin() + static_cast<std::ptrdiff_t>(next), made.end() - 1);
  return results;
}

}  // namespace tpu::hlo
