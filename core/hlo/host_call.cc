// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/host_call.h"

#include <fmt/ranges.h>

#include <bit>

#include "core/base/error.h"
#include "core/hlo/control.h"

namespace tpu::hlo {
namespace {

std::string hex(double d) { return fmt::format("{:016x}", std::bit_cast<uint64_t>(d)); }

// Builds the arguments' text and the list of operands together.
class Encoder {
 public:
  void operator()(std::monostate) { token("-"); }
  void operator()(const Value& v) {
    token(v.graph().is_wrapped(v) ? "w" : "t");
    operands_.push_back(v);
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

 private:
  void token(std::string_view t) {
    if (!text_.empty()) text_ += ' ';
    text_ += t;
  }
  std::string text_;
  Values operands_;
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
  const Values made =
      row_major_custom_call(graph, kHostCallTarget, encoder.operands(), types,
                            fmt::format(R"({{op = "{}", args = "{}", results = "{}"}})", call.op,
                                        encoder.text(), wanted));
  const Value failed = ne(made.back(), constant(graph, DType::kS64, int64_t{0}));
  graph.check(failed, made.back(), call.op, ir::CheckKind::kHostCall);

  Values results;
  size_t next = 0;
  for (const auto& t : call.fresh) results.push_back(t ? made[next++] : Value(&graph, -1));
  results.insert(results.end(), made.begin() + static_cast<std::ptrdiff_t>(next), made.end() - 1);
  return results;
}

}  // namespace tpu::hlo
