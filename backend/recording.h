// SPDX-License-Identifier: Apache-2.0
// A graph being built from calls: the values of cells while ops are lowered one after another.
//
// Building a plan records one call; recording one of PyTorch's Python decompositions records every
// call it makes on this thread into the same graph. One thread, one recording at a time.
#pragma once

#include <unordered_map>

#include "backend/call.h"
#include "lower/view_map.h"

namespace torch_tpu {

// Thrown when what is being recorded needs a value on the host, or an op without a rule.
class RecordingAbandoned : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The native metadata or rule-made description of one result.
struct ResultSpec {
  c10::ScalarType dtype;
  c10::DimVector sizes;
  c10::DimVector strides;
};

class Recording {
 public:
  Recording(const std::string& op_name, c10::DeviceIndex device);

  static Recording* current();  // of this thread, or null
  class Scope {                 // makes a recording current
   public:
    explicit Scope(Recording& r);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Recording* previous_;
  };

  tpu::ir::Graph graph;
  c10::DeviceIndex device;
  std::vector<std::string> fallbacks;  // ops recorded as host calls for want of a rule

  // A cell that outlives the recording: an argument of the outer call. It becomes a parameter of
  // the array type its cell has, or, unwritten, would get.
  void pin(const TensorArg& argument, int tensor);
  // The same, seen through another cell that stands for the argument's while recording.
  void pin_placeholder(const TensorArg& argument, int tensor, Cell& placeholder);

  // The tensor's value through its view; `starts` as in read_view.
  tpu::ir::Value read(const at::Tensor& t, const tpu::ir::Values& starts = {});
  // Gives the tensor a new value through its view, converted to its dtype.
  void write(const at::Tensor& t, tpu::ir::Value value, const tpu::ir::Values& starts = {});

  struct Pinned {
    Cell* cell;  // the argument's
    int tensor;  // first argument tensor with this cell
    tpu::ir::Value initial;
    tpu::ir::Value current;
  };
  // In order of parameters. `current` differs from `initial` where the cell was written.
  const std::vector<Pinned>& pinned() const { return pinned_; }

 private:
  tpu::ir::Value value_of(const at::Tensor& t, Cell& cell);
  std::vector<Pinned> pinned_;
  std::unordered_map<const Cell*, size_t> index_;
};

tpu::lower::ViewMap view_map_of(const at::Tensor& t);
// Whether the tensor starts its storage and has as many elements.
bool fills_storage(const at::Tensor& t);
// The type of the array an unwritten cell would get if read through this tensor.
tpu::ir::Type assumed_type(const at::Tensor& t);
tpu::ir::Target target_of(c10::DeviceIndex device);

}  // namespace torch_tpu
