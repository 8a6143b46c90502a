// SPDX-License-Identifier: Apache-2.0
// What a call with a known key needs: its compiled program, where the program's arguments come from
// and where its results go. Made on a miss, stored in memory and on disk, immutable afterwards.
#pragma once

#include "backend/lowering.h"
#include "core/exec/program.h"

namespace torch_tpu {

struct Plan {
  // Where a program result goes: a fresh tensor or the storage of an argument.
  struct Result {
    int fresh = -1;
    int tensor = -1;
  };
  // A view whose position is an operand: its starts occupy slots from first_slot on.
  struct Position {
    int tensor;
    int first_slot;
    tpu::lower::ViewForm form;
  };

  std::vector<ResultSpec> fresh;
  std::vector<Result> results;
  std::vector<int> resized;            // out= tensors, by tensor number...
  std::vector<ResultSpec> resized_to;  // ...and what they become
  std::vector<int> parameters;         // tensor number whose cell supplies each array
  std::vector<tpu::ir::ScalarUse> words;
  std::vector<tpu::ir::NumberRange> ranges;  // looked at before every launch
  std::vector<Position> positions;
  int64_t random_blocks = 0;
  std::vector<std::string> fallbacks;  // ops that the program runs as host calls for want of a rule
  tpu::exec::ProgramRef program;       // null if there is nothing to compute
};

// The views of a call whose positions become operands; first_slot is set by build_plan().
using Moving = std::vector<Plan::Position>;

// Lowers, compiles (or finds on disk) and describes the call. Throws for bad input.
std::unique_ptr<Plan> build_plan(const OpCall& call, const tpu::Hash128& key, Moving moving);

// The same for an op without a rule, as a host call; throws RecordingAbandoned where that cannot
// be.
std::unique_ptr<Plan> build_host_plan(const OpCall& call);

// A fresh result's value laid out as its strides say.
tpu::ir::Value in_memory_order(tpu::ir::Value value, const ResultSpec& spec);

// From a finished recording: the program that computes `fresh` and what the recording wrote to its
// pinned cells. `values[i]` is fresh[i] in memory order, or undefined like it.
std::unique_ptr<Plan> plan_of_recording(Recording& recording, const OpCall& call,
                                        const tpu::Hash128& key, std::vector<ResultSpec> fresh,
                                        tpu::ir::Values values, std::unique_ptr<Plan> plan);

// The stored plan of a key, from disk, with its program loaded; null if there is none.
std::unique_ptr<Plan> load_plan(const tpu::Hash128& key);

// Throws PyTorch's error for a number of the call that overflows the type it is read as.
void check_ranges(const Plan& plan, const OpCall& call);

// Runs the call by its plan: returns the fresh tensors.
using Tensors = c10::SmallVector<at::Tensor, 4>;
Tensors launch(const Plan& plan, const OpCall& call);

// Launches of this process so far.
uint64_t launch_count();

// An unwritten tensor as described; undefined where the spec is.
at::Tensor make_result(const ResultSpec& spec, c10::DeviceIndex device);

// Gives an out= tensor the shape of its result, with PyTorch's warning where it was not empty.
void resize_out(const at::Tensor& out, const ResultSpec& spec);

}  // namespace torch_tpu
