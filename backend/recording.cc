// SPDX-License-Identifier: Apache-2.0
#include "backend/recording.h"

#include "backend/call.h"
#include "backend/convert.h"
#include "backend/device.h"
#include "backend/host_call.h"

namespace torch_tpu {
namespace {

using tpu::ir::Type;
using tpu::ir::Value;
using tpu::ir::Values;

thread_local Recording* current_recording = nullptr;

// Conjugate and negative views are lazy flags on the tensor; its cell has the raw value.
Value through_flags(const at::Tensor& t, Value v) {
  if (t.is_conj()) v = tpu::hlo::complex(tpu::hlo::real(v), tpu::hlo::neg(tpu::hlo::imag(v)));
  return t.is_neg() ? tpu::hlo::neg(v) : v;
}

int64_t elements_of_storage(const at::Tensor& t) {
  return static_cast<int64_t>(t.storage().nbytes() / t.itemsize());
}

// FSDP frees a storage by resizing it to nothing; the tensors over it stay.
void require_inside_storage(const at::Tensor& t) {
  const size_t needed =
      at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.itemsize(), t.storage_offset());
  TORCH_CHECK(t.numel() == 0 || needed <= t.storage().nbytes(), "setStorage: sizes ", t.sizes(),
              ", strides ", t.strides(), ", storage offset ", t.storage_offset(), ", and itemsize ",
              t.itemsize(), " requiring a storage size of ", needed,
              " are out of bounds for storage of size ", t.storage().nbytes());
}

}  // namespace

bool fills_storage(const at::Tensor& t) {
  return t.storage_offset() == 0 && t.numel() == elements_of_storage(t);
}

tpu::lower::ViewMap view_map_of(const at::Tensor& t) {
  return {dtype_of(t.scalar_type()), dims_of(t.sizes()), dims_of(t.strides()), t.storage_offset()};
}

Type assumed_type(const at::Tensor& t) {
  const tpu::ir::DType dtype = dtype_of(t.scalar_type());
  const tpu::lower::ViewMap map = view_map_of(t);
  if (fills_storage(t)) {
    if (const auto order = tpu::lower::memory_order(map)) {
      Type type{dtype, {}};
      for (const int64_t axis : *order) type.dims.push_back(t.size(axis));
      return type;
    }
  }
  return {dtype, {elements_of_storage(t)}};
}

tpu::ir::Target target_of(c10::DeviceIndex index) {
  const bool cpu = device(index).runtime().is_cpu() && !lowers_for_tpu();
  return {.cpu = cpu, .host_calls = cpu && host_calls_allowed(), .precision = matmul_precision()};
}

Recording::Recording(const std::string& op_name, c10::DeviceIndex index)
    : graph(op_name, target_of(index)), device(index) {}

Recording* Recording::current() { return current_recording; }

Recording::Scope::Scope(Recording& r) : previous_(std::exchange(current_recording, &r)) {}
Recording::Scope::~Scope() { current_recording = previous_; }

void Recording::pin(const TensorArg& argument, int tensor) {
  pin_placeholder(argument, tensor, *argument.cell);
}

void Recording::pin_placeholder(const TensorArg& argument, int tensor, Cell& placeholder) {
  const auto [it, fresh] = index_.try_emplace(&placeholder, pinned_.size());
  if (!fresh) return;
  Cell& cell = *argument.cell;
  const Value v = graph.parameter(cell.array ? cell.array->type() : assumed_type(*argument.tensor));
  pinned_.push_back({&cell, tensor, v, v});
}

Value Recording::value_of(const at::Tensor& t, Cell& cell) {
  if (const auto it = index_.find(&cell); it != index_.end()) return pinned_[it->second].current;
  if (cell.recording == this) return *cell.value;
  if (cell.array) throw RecordingAbandoned("a tensor from outside of the recorded call is read");
  return tpu::hlo::full(graph, assumed_type(t), false);
}

Value Recording::read(const at::Tensor& t, const Values& starts) {
  require_inside_storage(t);
  const Value array = value_of(t, Cell::of(t));
  const auto form = tpu::lower::decode_view(array.type(), view_map_of(t));
  return through_flags(t, tpu::lower::read_view(array, form, starts));
}

void Recording::write(const at::Tensor& t, Value value, const Values& starts) {
  require_inside_storage(t);
  Cell& cell = Cell::of(t);
  const tpu::lower::ViewMap map = view_map_of(t);
  value = through_flags(t, tpu::hlo::convert(value, map.dtype));
  const auto it = index_.find(&cell);
  const bool pinned = it != index_.end();
  const bool known = pinned || cell.recording == this;
  Value array = value;
  if (!known && fills_storage(t) && tpu::lower::memory_order(map)) {
    array = tpu::lower::to_memory(value, map, t.numel());
  } else {
    const Value old = value_of(t, cell);
    array = tpu::lower::write_view(old, tpu::lower::decode_view(old.type(), map), value, starts);
  }
  if (pinned) {
    pinned_[it->second].current = array;
  } else {
    cell.recording = this;
    cell.value = array;
  }
}

}  // namespace torch_tpu
