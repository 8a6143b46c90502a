// SPDX-License-Identifier: Apache-2.0
// From a call to graph values: PyTorch's native metadata where it exists, the op's rule, and the
// description of fresh results.
#pragma once

#include "backend/recording.h"

namespace torch_tpu {

// While PyTorch's native metadata runs, the group's own out= overload arrives here and must do
// nothing. True if `op` is that overload; its out arguments then are the results.
bool swallowed_by_metadata(const Op& op);

struct Lowered {
  std::vector<tpu::ir::Value> results;  // fresh results, then written arguments' values
  std::vector<ResultSpec> fresh;        // one per fresh result
  std::vector<int> written;             // tensor number per written argument's value
  std::vector<ResultSpec> resized;      // for out= forms: geometry each out tensor must take
};

// How the numbers and positions of the call reach the graph.
struct LowerOptions {
  bool literal_numbers = false;  // as constants: inside a recorded decomposition
  const std::vector<tpu::ir::Values>* starts = nullptr;  // per tensor: run-time view positions
};

// Reads the call's tensors through `recording`, applies the rule and describes results. Throws
// tpu::Error or torch's own errors for bad input. Does not write the results anywhere.
Lowered lower_call(Recording& recording, const OpCall& call, const LowerOptions& options);

}  // namespace torch_tpu
