// SPDX-License-Identifier: Apache-2.0
// Copies between host and device, between devices, and within one; reading a scalar.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include "backend/boxed.h"
#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/device.h"
#include "backend/recording.h"
#include "backend/tensors.h"

namespace torch_tpu {
namespace {

bool on_tpu(const at::Tensor& t) { return t.device().type() == c10::DeviceType::PrivateUse1; }

// The tensor without its lazy conjugate or negative bit: what its storage holds.
at::Tensor raw(const at::Tensor& t) {
  if (!t.is_conj() && !t.is_neg()) return t;
  at::Tensor plain = t.alias();
  plain._set_conj(false);
  plain._set_neg(false);
  return plain;
}

// Within one device: one program casts, broadcasts and writes through the destination's view.
void copy_within(const at::Tensor& self, const at::Tensor& source) {
  static const InPlaceOp copy("aten::copy");
  copy(self, source, false);
}

// A dense host tensor in the order in which `like` lies in memory.
at::Tensor host_in_memory_order(const at::Tensor& host, const tpu::ir::Dims& order) {
  return host.permute(order).contiguous();
}

tpu::exec::ArrayRef upload(const at::Tensor& dense, c10::DeviceIndex index) {
  const tpu::ir::Type type{dtype_of(dense.scalar_type()), dims_of(dense.sizes())};
  tpu::exec::Device& to = device(index);
  const WithoutGil released;
  return translating_errors(
      [&] { return tpu::value_or_throw(to.upload(dense.const_data_ptr(), type)); });
}

void give_array(const at::Tensor& t, tpu::exec::ArrayRef array) {
  const std::lock_guard lock(device(t.device().index()).queue_lock());
  Cell::of(t).replace(std::move(array));
}

// A constant of the graph being recorded.
void record_constant(Recording& recording, const at::Tensor& self, const at::Tensor& host) {
  constexpr int64_t kLargestConstant = 1024;
  if (host.numel() > kLargestConstant || !c10::isIntegralType(host.scalar_type(), true)) {
    if (host.numel() != 1) throw RecordingAbandoned("host data enters a recorded call");
    recording.write(self, tpu::hlo::broadcast_to(
                              tpu::hlo::constant(recording.graph, dtype_of(self.scalar_type()),
                                                 number_of(value_of(host.reshape({})))),
                              dims_of(self.sizes())));
    return;
  }
  const at::Tensor wide = host.expand(self.sizes()).to(at::kLong).contiguous();
  const std::span<const int64_t> values(wide.const_data_ptr<int64_t>(),
                                        static_cast<size_t>(wide.numel()));
  recording.write(self, tpu::hlo::constant_array(recording.graph, dims_of(self.sizes()), values,
                                                 dtype_of(self.scalar_type())));
}

void copy_from_host(const at::Tensor& self, const at::Tensor& source) {
  if (Recording* recording = Recording::current()) {
    return record_constant(*recording, self, source.resolve_conj().resolve_neg());
  }
  at::Tensor host = source.resolve_conj().resolve_neg().to(self.scalar_type());
  const at::Tensor to = raw(self);
  const auto map = view_map_of(to);
  const auto order = tpu::lower::memory_order(map);
  const bool whole = fills_storage(to);
  const bool same = host.sizes() == self.sizes() && !self.is_conj() && !self.is_neg();
  if (order && whole && same) {
    give_array(to, upload(host_in_memory_order(host, *order), self.device().index()));
    return;
  }
  host = host.contiguous();
  at::Tensor staged = make_tensor(host.sizes(), {}, host.scalar_type(), self.device().index());
  give_array(staged, upload(host, self.device().index()));
  copy_within(self, staged);
}

// Waits for the value; `host` is dense and has the dtype and sizes of `source`.
void download(const at::Tensor& source, const at::Tensor& host) {
  at::Tensor dense = source;
  const Cell& cell = Cell::of(source);
  const bool is_array = cell.array && source.is_contiguous() && source.storage_offset() == 0 &&
                        !source.is_conj() && !source.is_neg() &&
                        cell.array->type() == tpu::ir::Type{dtype_of(source.scalar_type()),
                                                            cell.array->type().dims} &&
                        cell.array->type().numel() == source.numel();
  if (!is_array) {
    dense = make_tensor(source.sizes(), {}, source.scalar_type(), source.device().index());
    copy_within(dense, source);
  }
  tpu::exec::Device& from = device(source.device().index());
  tpu::exec::ArrayRef array;
  {
    const std::lock_guard lock(from.queue_lock());
    array = Cell::of(dense).array;
  }
  const WithoutGil released;
  translating_errors([&] {
    tpu::throw_if_error(from.download(*array, host.mutable_data_ptr()));
    from.raise_failed_checks();
  });
}

void copy_to_host(const at::Tensor& self, const at::Tensor& source) {
  if (Recording::current()) throw RecordingAbandoned("a recorded call reads a value on the host");
  if (source.numel() == 0) return;
  const bool direct = self.is_contiguous() && self.scalar_type() == source.scalar_type() &&
                      self.sizes() == source.sizes() && !self.is_conj() && !self.is_neg();
  const at::Tensor host =
      direct ? self : at::empty(source.sizes(), source.options().device(at::kCPU));
  download(source, host);
  if (!direct) self.copy_(host);
}

void copy_across(const at::Tensor& self, const at::Tensor& source) {
  at::Tensor dense = make_tensor(source.sizes(), {}, source.scalar_type(), source.device().index());
  copy_within(dense, source);
  at::Tensor arrived = make_tensor(source.sizes(), {}, source.scalar_type(), self.device().index());
  tpu::exec::ArrayRef array;
  {
    const std::lock_guard lock(device(source.device().index()).queue_lock());
    array = Cell::of(dense).array;
  }
  give_array(arrived, translating_errors([&] {
               return tpu::value_or_throw(device(self.device().index()).copy_from(*array));
             }));
  copy_within(self, arrived);
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool /*non_blocking*/) {
  if (self.is_same(source)) return self;
  const CleanState clean;
  TORCH_CHECK(at::is_expandable_to(source.sizes(), self.sizes()), "The size of tensor a (",
              self.dim() ? self.sizes().back() : 1, ") must match the size of tensor b (",
              source.dim() ? source.sizes().back() : 1, ") at non-singleton dimension ",
              std::max<int64_t>(self.dim() - 1, 0));
  if (self.numel() == 0) return self;
  at::assert_no_internal_overlap(self);
  if (self.is_alias_of(source)) at::assert_no_partial_overlap(self, source.expand_as(self));
  if (!on_tpu(source)) {
    TORCH_CHECK(source.is_cpu(), "copy_: cannot copy from ", source.device(), " to ",
                self.device());
    copy_from_host(self, source);
  } else if (!on_tpu(self)) {
    copy_to_host(self, source);
  } else if (self.device() == source.device()) {
    copy_within(self, source);
  } else {
    copy_across(self, source);
  }
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor to = dst;
  copy_(to, self, non_blocking);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  at::native::resize_output(dst, self.sizes());
  return copy_from(self, dst, false);
}

c10::Scalar local_scalar_dense(const at::Tensor& self) {
  if (Recording::current()) throw RecordingAbandoned("a recorded call reads a value on the host");
  const CleanState clean;
  const at::Tensor host = at::empty({}, self.options().device(at::kCPU));
  copy_to_host(host, self.dim() == 0 ? self : self.reshape({}));
  return value_of(host);
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  if (self.device() != other.device()) refuse_mixed_devices(self.device(), other.device());
  if (self.sizes() != other.sizes()) return false;
  const CleanState clean;
  return self.eq(other).all().item<bool>();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("equal", &equal);
  m.impl("copy_", &copy_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
}

// copy_ reads the lazy bits itself; resolving them first would come back here for ever.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace torch_tpu
