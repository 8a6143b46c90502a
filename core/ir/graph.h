// SPDX-License-Identifier: Apache-2.0
// A typed StableHLO program under construction.
//
// A Graph owns its nodes; a Value is a handle (graph, id) that stays valid as long as the Graph.
// Nodes are only appended, so ids are in topological order and emission needs no recursion.
// Not thread-safe: one thread builds one graph.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ir/type.h"

namespace tpu::ir {

class Graph;

class Value {
 public:
  Value(Graph* graph, int id) : graph_(graph), id_(id) {}
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int64_t dim(int64_t axis) const { return type().dims[static_cast<size_t>(axis)]; }
  int64_t rank() const { return type().rank(); }
  int64_t numel() const { return type().numel(); }
  Graph& graph() const { return *graph_; }
  int id() const { return id_; }
  bool operator==(const Value&) const = default;

 private:
  Graph* graph_;
  int id_;
};

using Values = std::vector<Value>;

// Precision of matrix products and convolutions whose operands are f32 (PyTorch's
// "medium", "high" and "highest").
enum class Precision : uint8_t { kDefault, kHigh, kHighest };

// What the program is compiled for; a rule may choose its form by it.
struct Target {
  bool cpu = true;         // the XLA:CPU plugin; false: a TPU
  bool host_calls = true;  // custom calls into the host's kernels are allowed (CPU only)
  Precision precision = Precision::kHighest;
};

// The slots of the generator's state; every other slot is a scalar argument in order of the call.
inline constexpr int kSeedSlot = -1;
inline constexpr int kOffsetSlot = -2;

// One run-time scalar as the program reads it: slot `slot` of the call, encoded as `dtype`.
struct ScalarUse {
  int slot;
  DType carrier;
  int first_word;  // offset in the word vector
  bool operator==(const ScalarUse&) const = default;
};

// A number of the call that must have a value in `dtype`, or the launch fails.
struct NumberRange {
  int slot;
  DType dtype;
};

// How a scalar wanted as `dtype` travels: integers and bool below 64 bits as s32, floats below
// 64 bits as f32, the others as themselves.
DType carrier_type(DType dtype);
// The 32-bit words a carrier takes.
int word_count(DType carrier);

enum class CheckKind : uint8_t { kIndex, kRuntime, kHostCall };

// A condition on data that the host examines after the run. `message` may hold one "{}", replaced
// with the offending value. Of kHostCall the value is the number of an error that the call left
// behind, and that error is raised.
struct Check {
  CheckKind kind;
  std::string message;
};

class Graph {
 public:
  explicit Graph(std::string op_name = "program", Target target = {});
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& op_name() const { return op_name_; }
  const Target& target() const { return target_; }

  // A run-time array argument; parameters are numbered in order of creation.
  Value parameter(Type type);

  // A run-time scalar (rank 0) read from the word vector, which is the parameter after the arrays.
  Value scalar(int slot, DType dtype);
  // The slot behind a value made by scalar(), if it is one.
  std::optional<int> scalar_slot(Value value) const;
  // A Python number beside tensors: it takes part in type promotion only by its category.
  void mark_wrapped(Value value) { wrapped_.push_back(value.id()); }
  bool is_wrapped(Value value) const;
  // Every launch looks whether the slot's number overflows `dtype`.
  void require_range(int slot, DType dtype);
  // Whether the value is another one with its axes permuted: a view that a call may take as it is.
  bool is_transposed(Value value) const;

  // Seed and offset of the generator for an op that draws `blocks` 128-bit blocks, both u64[].
  // Later draws of the same graph start where this one ends; the generator's offset advances by
  // random_blocks() per launch.
  struct RandomState {
    Value seed;
    Value offset;
  };
  RandomState random_state(int64_t blocks);
  int64_t random_blocks() const { return random_blocks_; }

  // The launch fails, after the fact and without losing a tensor, if `bad` (pred[]) is true;
  // `value` (an integer, rank 0) is shown in the message.
  void check(Value bad, Value value, std::string message, CheckKind kind = CheckKind::kIndex);

  // A region of a node: `body` receives the block's arguments and returns its results. Values of
  // enclosing blocks may be used inside.
  using Body = std::function<Values(std::span<const Value>)>;
  struct Block {
    int first_argument;
    int argument_count;
    std::vector<int> nodes;
    std::vector<int> results;
  };

  struct NodeSpec {
    std::string op;  // with dialect: "stablehlo.add"
    Values inputs;
    std::vector<Type> results;
    std::string attributes = {};  // inside <{ }>
    std::vector<std::pair<std::vector<Type>, Body>> blocks = {};
    bool results_of_block = false;  // `results` is what the first block turns out to return
  };
  Values node(NodeSpec spec);
  Value node1(NodeSpec spec) { return node(std::move(spec))[0]; }

  const Type& type(int id) const { return types_[static_cast<size_t>(id)]; }
  const std::vector<int>& parameters() const { return parameters_; }
  const std::vector<ScalarUse>& scalar_uses() const { return scalar_uses_; }
  int words() const { return words_; }
  const std::vector<Check>& checks() const { return checks_; }
  const std::vector<NumberRange>& number_ranges() const { return number_ranges_; }

  // Drops what `results` and the checks do not need: nodes, parameters, run-time scalars. Returns
  // the numbers of the parameters kept, which are then numbered anew. Once, before module().
  std::vector<int> prune(const Values& results);

  // An output that takes the memory of a parameter when the launch may donate it.
  struct Alias {
    int result;
    int parameter;
  };
  struct Module {
    std::string text;
    std::vector<Type> parameters;  // arrays in order, then s32[words] if any, then destinations
    std::vector<Type> results;     // as given, then s64[2] (check, value) if there are checks
  };
  // The whole program as StableHLO text. `destinations` are indices of results that get an extra
  // parameter of their type, donated to hold them.
  Module module(const Values& results, const std::vector<Alias>& aliases = {},
                const std::vector<int>& destinations = {});

 private:
  struct Node {
    std::string op;
    std::vector<int> inputs;
    int first_result;
    int result_count;
    std::string attributes;
    std::vector<Block> blocks;
  };
  int add_value(Type type);
  Block build_block(const std::vector<Type>& arguments, const Body& body);
  struct Listing;
  Listing list(std::span<const int> ids) const;
  std::vector<char> live_values(const Values& results) const;
  std::string emit_arguments(const Values& results, const std::vector<Alias>& aliases,
                             const std::vector<int>& destinations, Module& m) const;
  void emit_scalars(std::string& out) const;
  void emit_nodes(const std::vector<int>& nodes, int depth, std::string& out) const;
  void emit_node(const Node& node, int depth, std::string& out) const;
  void emit_block(const Block& block, int depth, std::string& out) const;
  Value check_result();

  std::string op_name_;
  Target target_;
  std::deque<Type> types_;  // deque: references handed out by type() survive growth
  std::deque<Node> nodes_;
  std::vector<int> top_;  // nodes of the function's own block
  std::vector<int>* current_ = &top_;
  std::vector<int> parameters_;
  std::vector<ScalarUse> scalar_uses_;
  std::vector<int> wrapped_;
  std::vector<NumberRange> number_ranges_;
  std::vector<int> scalar_values_;  // value id of each use, as its carrier
  int words_ = 0;
  int64_t random_blocks_ = 0;
  std::optional<RandomState> random_;
  struct PendingCheck {
    Value bad;
    Value value;
  };
  std::vector<PendingCheck> pending_checks_;
  std::vector<Check> checks_;
};

}  // namespace tpu::ir
