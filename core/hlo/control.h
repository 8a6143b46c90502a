// SPDX-License-Identifier: Apache-2.0
// Control flow, random bits and custom calls.
#pragma once

#include "core/hlo/contract.h"

namespace tpu::hlo {

using Condition = std::function<Value(std::span<const Value>)>;
using LoopBody = std::function<Values(std::span<const Value>)>;
Values while_loop(const Values& initial, const Condition& condition, const LoopBody& body);
// body(i, state) for i in [0, count), i being s32[].
Values for_loop(int64_t count, const Values& initial,
                const std::function<Values(Value, std::span<const Value>)>& body);
Values if_else(Value predicate, const std::function<Values()>& on_true,
               const std::function<Values()>& on_false);

// Random bits of unsigned type `t` by Philox 4x32-10 (Salmon et al., SC 2011). Key: the two words
// of `seed`; counter of the k-th 128-bit block: the two words of `offset` + k, then zeros. Elements
// take the blocks' bits in order, least significant first, so a draw at `offset` + 1 is the same
// sequence without its first block. The state advances on the host, by philox_blocks().
Value philox_bits(Value seed, Value offset, const Dims& dims, DType t);
// 128-bit blocks behind `count` elements of `t`.
int64_t philox_blocks(int64_t count, DType t);

// `backend_config_dict` is the text of a dictionary attribute, braces included. For the typed FFI.
Values custom_call(Graph& graph, std::string_view target, const Values& operands,
                   const std::vector<Type>& results, std::string_view backend_config_dict);
// The same for a target that wants its arrays in a certain order in memory: per array its axes, the
// most minor one first.
struct MemoryOrders {
  std::vector<Dims> operands;
  std::vector<Dims> results;
};
Values custom_call_in_order(Graph& graph, std::string_view target, const Values& operands,
                            const std::vector<Type>& results, const MemoryOrders& orders,
                            std::string_view backend_config_dict);
Value optimization_barrier(Value x);

}  // namespace tpu::hlo
