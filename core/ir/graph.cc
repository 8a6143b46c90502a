// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "core/base/error.h"

namespace tpu::ir {
namespace {

constexpr const char* kWords = "%words";

std::string ref(int id) { return fmt::format("%{}", id); }

// Sets a variable for the length of a scope, also when a body throws.
template <class T>
class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), old_(std::exchange(variable, value)) {}
  ~Restore() { variable_ = old_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T old_;
};

std::string indent(int depth) { return std::string(static_cast<size_t>(depth) * 2, ' '); }

// The words of one scalar become its carrier value: sliced out of the word vector, cut in two for a
// complex number, and bitcast.
class ScalarReader {
 public:
  ScalarReader(size_t use_number, int words, std::string& out)
      : name_(fmt::format("%w{}", use_number)), words_type_{DType::kS32, {words}}, out_(out) {}

  void read(const ScalarUse& use, int result) {
    const int n = word_count(use.carrier);
    if (!is_complex(use.carrier)) {
      read_real(use.first_word, n, use.carrier, ref(result), name_);
      return;
    }
    const DType part = real_of(use.carrier);
    const std::string re = name_ + "re";
    const std::string im = name_ + "im";
    read_real(use.first_word, n / 2, part, re, re);
    read_real(use.first_word + n / 2, n / 2, part, im, im);
    const std::string part_type = Type{part, {}}.mlir();
    emit(ref(result), "complex", re + ", " + im, "", part_type + ", " + part_type,
         {use.carrier, {}});
  }

 private:
  void read_real(int first, int count, DType t, const std::string& result,
                 const std::string& prefix) {
    const Type words{DType::kS32, {count}};
    const Type word{DType::kS32, {}};
    const std::string bits = prefix + "bits";
    emit(bits, "slice", kWords,
         fmt::format(" <{{start_indices = array<i64: {}>, limit_indices = array<i64: {}>, "
                     "strides = array<i64: 1>}}>",
                     first, first + count),
         words_type_.mlir(), words);
    if (count > 1) {
      emit(result, "bitcast_convert", bits, "", words.mlir(), {t, {}});
      return;
    }
    const std::string flat = t == DType::kS32 ? result : prefix + "word";
    emit(flat, "reshape", bits, "", words.mlir(), word);
    if (t != DType::kS32) emit(result, "bitcast_convert", flat, "", word.mlir(), {t, {}});
  }

  void emit(const std::string& result, const char* op, const std::string& operands,
            const std::string& attributes, const std::string& operand_types, const Type& type) {
    out_ += fmt::format("    {} = \"stablehlo.{}\"({}){} : ({}) -> {}\n", result, op, operands,
                        attributes, operand_types, type.mlir());
  }

  std::string name_;
  Type words_type_;
  std::string& out_;
};

}  // namespace

const Type& Value::type() const { return graph_->type(id_); }

DType carrier_type(DType dtype) {
  if (byte_size(dtype) >= 8) return dtype;
  return is_float(dtype) ? DType::kF32 : DType::kS32;
}

int word_count(DType carrier) { return static_cast<int>(byte_size(carrier) / 4); }

Graph::Graph(std::string op_name, Target target) : op_name_(std::move(op_name)), target_(target) {}

int Graph::add_value(Type type) {
  for (const int64_t d : type.dims) TPU_CHECK(d >= 0, "dimensions are static and non-negative");
  types_.push_back(std::move(type));
  return static_cast<int>(types_.size()) - 1;
}

Value Graph::parameter(Type type) {
  const int id = add_value(std::move(type));
  parameters_.push_back(id);
  return {this, id};
}

Value Graph::scalar(int slot, DType dtype) {
  const DType carrier = carrier_type(dtype);
  for (size_t i = 0; i < scalar_uses_.size(); ++i) {
    if (scalar_uses_[i].slot == slot && scalar_uses_[i].carrier == carrier) {
      return {this, scalar_values_[i]};
    }
  }
  const int id = add_value({carrier, {}});
  scalar_uses_.push_back({slot, carrier, words_});
  scalar_values_.push_back(id);
  words_ += word_count(carrier);
  return {this, id};
}

std::optional<int> Graph::scalar_slot(Value value) const {
  for (size_t i = 0; i < scalar_values_.size(); ++i) {
    if (scalar_values_[i] == value.id()) return scalar_uses_[i].slot;
  }
  return std::nullopt;
}

bool Graph::is_transposed(Value value) const {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (node->first_result == value.id()) return node->op == "stablehlo.transpose";
  }
  return false;
}

bool Graph::is_wrapped(Value value) const {
  return std::find(wrapped_.begin(), wrapped_.end(), value.id()) != wrapped_.end();
}

void Graph::require_range(int slot, DType dtype) {
  for (const NumberRange& r : number_ranges_) {
    if (r.slot == slot && r.dtype == dtype) return;
  }
  number_ranges_.push_back({slot, dtype});
}

Graph::RandomState Graph::random_state(int64_t blocks) {
  if (!random_) {
    random_ = RandomState{scalar(kSeedSlot, DType::kU64), scalar(kOffsetSlot, DType::kU64)};
  }
  RandomState state = *random_;
  if (random_blocks_ > 0) {
    const Type u64{DType::kU64, {}};
    const Value drawn =
        node1({.op = "stablehlo.constant",
               .inputs = {},
               .results = {u64},
               .attributes = fmt::format("value = dense<{}> : tensor<ui64>", random_blocks_)});
    state.offset =
        node1({.op = "stablehlo.add", .inputs = {state.offset, drawn}, .results = {u64}});
  }
  random_blocks_ += blocks;
  return state;
}

void Graph::check(Value bad, Value value, std::string message, CheckKind kind) {
  TPU_CHECK(bad.type() == (Type{DType::kPred, {}}), "a check is one bool");
  TPU_CHECK(value.rank() == 0, "a check shows one number");
  TPU_CHECK(current_ == &top_, "a value made inside a region is not visible outside it");
  pending_checks_.push_back({bad, value});
  checks_.push_back({kind, std::move(message)});
}

Graph::Block Graph::build_block(const std::vector<Type>& arguments, const Body& body) {
  Block block;
  Values values;
  block.first_argument = static_cast<int>(types_.size());
  block.argument_count = static_cast<int>(arguments.size());
  for (const Type& t : arguments) values.emplace_back(this, add_value(t));
  const Restore<std::vector<int>*> outer(current_, &block.nodes);
  for (const Value& r : body(values)) block.results.push_back(r.id());
  return block;
}

Values Graph::node(NodeSpec spec) {
  Node node;
  node.op = std::move(spec.op);
  node.attributes = std::move(spec.attributes);
  for (const Value& v : spec.inputs) {
    TPU_CHECK(&v.graph() == this, "operands belong to the graph they are used in");
    node.inputs.push_back(v.id());
  }
  for (auto& [arguments, body] : spec.blocks) node.blocks.push_back(build_block(arguments, body));
  if (spec.results_of_block) {
    for (const int id : node.blocks.at(0).results) spec.results.push_back(type(id));
  }
  node.first_result = static_cast<int>(types_.size());
  node.result_count = static_cast<int>(spec.results.size());
  Values results;
  for (Type& t : spec.results) results.emplace_back(this, add_value(std::move(t)));
  nodes_.push_back(std::move(node));
  current_->push_back(static_cast<int>(nodes_.size()) - 1);
  return results;
}

std::vector<char> Graph::live_values(const Values& results) const {
  std::vector<char> live(types_.size(), 0);
  const auto mark = [&](int id) { live[static_cast<size_t>(id)] = 1; };
  for (const Value& v : results) mark(v.id());
  for (const PendingCheck& c : pending_checks_) {
    mark(c.bad.id());
    mark(c.value.id());
  }
  // A node is listed after its operands and after the nodes of its blocks.
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node& n = nodes_[i];
    const auto first = live.begin() + n.first_result;
    if (std::none_of(first, first + n.result_count, [](char l) { return l != 0; })) continue;
    for (const int id : n.inputs) mark(id);
    for (const Block& b : n.blocks) {
      for (const int id : b.results) mark(id);
    }
  }
  return live;
}

std::vector<int> Graph::prune(const Values& results) {
  const std::vector<char> live = live_values(results);
  const auto is_live = [&](int id) { return live[static_cast<size_t>(id)] != 0; };
  std::erase_if(top_, [&](int i) {
    const Node& n = nodes_[static_cast<size_t>(i)];
    for (int k = 0; k < n.result_count; ++k) {
      if (is_live(n.first_result + k)) return false;
    }
    return true;
  });

  std::vector<int> kept;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (is_live(parameters_[i])) kept.push_back(static_cast<int>(i));
  }
  std::erase_if(parameters_, [&](int id) { return !is_live(id); });

  std::vector<ScalarUse> uses;
  std::vector<int> values;
  words_ = 0;
  for (size_t i = 0; i < scalar_uses_.size(); ++i) {
    if (!is_live(scalar_values_[i])) continue;
    ScalarUse use = scalar_uses_[i];
    use.first_word = words_;
    words_ += word_count(use.carrier);
    uses.push_back(use);
    values.push_back(scalar_values_[i]);
  }
  scalar_uses_ = std::move(uses);
  scalar_values_ = std::move(values);
  return kept;
}

void Graph::emit_scalars(std::string& out) const {
  for (size_t i = 0; i < scalar_uses_.size(); ++i) {
    ScalarReader(i, words_, out).read(scalar_uses_[i], scalar_values_[i]);
  }
}

// "%1, %2" and "tensor<f32>, tensor<i32>" of some values.
struct Graph::Listing {
  std::string refs;
  std::string types;
};

Graph::Listing Graph::list(std::span<const int> ids) const {
  Listing l;
  for (const int id : ids) {
    const bool first = l.refs.empty();
    l.refs += first ? ref(id) : ", " + ref(id);
    l.types += first ? type(id).mlir() : ", " + type(id).mlir();
  }
  return l;
}

void Graph::emit_block(const Block& block, int depth, std::string& out) const {
  out += "{\n" + indent(depth) + "^bb0(";
  for (int i = 0; i < block.argument_count; ++i) {
    const int id = block.first_argument + i;
    out += fmt::format("{}{}: {}", i ? ", " : "", ref(id), type(id).mlir());
  }
  out += "):\n";
  emit_nodes(block.nodes, depth + 1, out);
  const Listing results = list(block.results);
  out += fmt::format("{}\"stablehlo.return\"({}) : ({}) -> ()\n{}}}", indent(depth + 1),
                     results.refs, results.types, indent(depth));
}

void Graph::emit_node(const Node& node, int depth, std::string& out) const {
  std::vector<int> result_ids(static_cast<size_t>(node.result_count));
  std::iota(result_ids.begin(), result_ids.end(), node.first_result);
  const Listing inputs = list(node.inputs);
  const Listing results = list(result_ids);
  out += fmt::format("{}{}{}\"{}\"({})", indent(depth), results.refs,
                     node.result_count ? " = " : "", node.op, inputs.refs);
  if (!node.attributes.empty()) out += " <{" + node.attributes + "}>";
  const char* open = " (";
  for (const Block& block : node.blocks) {
    out += std::exchange(open, ", ");
    emit_block(block, depth, out);
  }
  if (!node.blocks.empty()) out += ")";
  const bool one = node.result_count == 1;
  out += fmt::format(" : ({}) -> {}{}{}\n", inputs.types, one ? "" : "(", results.types,
                     one ? "" : ")");
}

void Graph::emit_nodes(const std::vector<int>& nodes, int depth, std::string& out) const {
  for (const int i : nodes) emit_node(nodes_[static_cast<size_t>(i)], depth, out);
}

// s64[2]: 1 + the number of the first check that failed (0: none), and its value.
Value Graph::check_result() {
  const auto constant = [&](int64_t v) {
    return node1({.op = "stablehlo.constant",
                  .inputs = {},
                  .results = {{DType::kS64, {}}},
                  .attributes = fmt::format("value = dense<{}> : tensor<i64>", v)});
  };
  Value which = constant(0);
  Value value = constant(0);
  const Type scalar{DType::kS64, {}};
  for (size_t i = pending_checks_.size(); i-- > 0;) {
    const PendingCheck& c = pending_checks_[i];
    const Value shown =
        c.value.dtype() == DType::kS64
            ? c.value
            : node1({.op = "stablehlo.convert", .inputs = {c.value}, .results = {scalar}});
    which = node1({.op = "stablehlo.select",
                   .inputs = {c.bad, constant(static_cast<int64_t>(i) + 1), which},
                   .results = {scalar}});
    value = node1({.op = "stablehlo.select", .inputs = {c.bad, shown, value}, .results = {scalar}});
  }
  const Type one{DType::kS64, {1}};
  const Value a = node1({.op = "stablehlo.reshape", .inputs = {which}, .results = {one}});
  const Value b = node1({.op = "stablehlo.reshape", .inputs = {value}, .results = {one}});
  return node1({.op = "stablehlo.concatenate",
                .inputs = {a, b},
                .results = {{DType::kS64, {2}}},
                .attributes = "dimension = 0 : i64"});
}

// The text of main's argument list; records the types in `m`.
std::string Graph::emit_arguments(const Values& results, const std::vector<Alias>& aliases,
                                  const std::vector<int>& destinations, Module& m) const {
  std::string text;
  const auto add = [&](const std::string& name, const Type& t, std::optional<int> alias) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, t.mlir());
    if (alias) text += fmt::format(" {{tf.aliasing_output = {} : i32}}", *alias);
    m.parameters.push_back(t);
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::optional<int> alias;
    for (const Alias& a : aliases) {
      if (a.parameter == static_cast<int>(i)) alias = a.result;
    }
    add(ref(parameters_[i]), type(parameters_[i]), alias);
  }
  if (words_ > 0) add(kWords, {DType::kS32, {words_}}, {});
  for (const int d : destinations) {
    add(fmt::format("%destination{}", d), results[static_cast<size_t>(d)].type(), d);
  }
  return text;
}

Graph::Module Graph::module(const Values& results, const std::vector<Alias>& aliases,
                            const std::vector<int>& destinations) {
  Module m;
  const std::string arguments = emit_arguments(results, aliases, destinations, m);
  Values all = results;
  if (!checks_.empty()) all.push_back(check_result());
  std::vector<int> ids;
  for (const Value& v : all) {
    m.results.push_back(v.type());
    ids.push_back(v.id());
  }
  const Listing returned = list(ids);
  m.text = fmt::format("module {{\n  func.func public @main({}) -> ({}) {{\n", arguments,
                       returned.types);
  emit_scalars(m.text);
  emit_nodes(top_, 2, m.text);
  m.text += fmt::format("    \"func.return\"({}) : ({}) -> ()\n  }}\n}}\n", returned.refs,
                        returned.types);
  return m;
}

}  // namespace tpu::ir
