// SPDX-License-Identifier: Apache-2.0
// Tensors over storages: creation, views and resizing. Typed kernels, metadata only: nothing here
// launches a program.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "backend/cell.h"
#include "backend/convert.h"
#include "backend/device.h"
#include "backend/tensors.h"

namespace torch_tpu {
namespace {

constexpr auto kKey = c10::DispatchKey::PrivateUse1;

c10::Device device_or_current(std::optional<c10::Device> d) {
  if (d && d->has_index()) {
    TORCH_CHECK(d->index() < device_count(), "invalid device index ", static_cast<int>(d->index()),
                ": there are ", device_count(), " tpu devices");
    return *d;
  }
  return {c10::DeviceType::PrivateUse1, current_device()};
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<c10::Device> device, std::optional<bool> /*pinned*/) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided,
              "empty_strided on tpu expects a strided layout");
  at::native::check_size_nonnegative(sizes);
  return make_tensor(sizes, strides, c10::dtype_or_default(dtype),
                     device_or_current(device).index());
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> /*pinned*/, std::optional<c10::MemoryFormat> format) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided,
              "empty on tpu expects a strided layout");
  at::native::check_size_nonnegative(sizes);
  at::Tensor t =
      make_tensor(sizes, {}, c10::dtype_or_default(dtype), device_or_current(device).index());
  if (format && *format != c10::MemoryFormat::Contiguous) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve,
                "unsupported memory format option Preserve");
    t.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return t;
}

void ensure_bytes(const at::Tensor& self, int64_t elements_end) {
  const auto needed = static_cast<size_t>(elements_end) * self.itemsize();
  if (needed > self.storage().nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), needed);
  }
}

void set_geometry(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, self.itemsize(),
                                                        static_cast<size_t>(self.storage_offset()));
  ensure_bytes(self, static_cast<int64_t>(bytes / self.itemsize()));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  at::native::check_size_nonnegative(sizes);
  if (self.sizes() != sizes) set_geometry(self, sizes, c10::contiguous_strides(sizes));
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format Preserve");
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_source_storage_offset(at::Tensor& self, at::Storage source, int64_t offset,
                                      c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  TORCH_CHECK(source.device().type() == self.device().type(),
              "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", source.device(),
              "\".  This is no longer allowed; the devices must match.");
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  const auto dense =
      strides.empty() && !sizes.empty() ? c10::contiguous_strides(sizes) : c10::DimVector(strides);
  set_geometry(self, sizes, dense);
  return self;
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
  const auto n = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_source_storage_offset(self, std::move(source), 0, {n}, {1});
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_source_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(),
                                   source.strides());
}

at::Tensor& set_none(at::Tensor& self) {
  c10::Storage empty_storage(c10::Storage::use_byte_size_t(), 0,
                             Cell::make(0, self.device().index()),
                             c10::GetAllocator(c10::DeviceType::PrivateUse1), true);
  return set_source_storage_offset(self, std::move(empty_storage), 0, {0}, {1});
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides();
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}

// `p.data = q` and Module.to() keep the Parameter object only when this says so.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& other) {
  return self.key_set().has(kKey) == other.key_set().has(kKey) || self.is_cpu() || other.is_cpu();
}

void record_stream(at::Tensor& /*self*/, c10::Stream /*stream*/) {}

}  // namespace

at::Tensor make_tensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype,
                       c10::DeviceIndex index) {
  static auto* allocator = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  dtype_of(dtype, "empty");
  const auto type = c10::scalarTypeToTypeMeta(dtype);
  const size_t bytes = strides.empty()
                           ? at::detail::computeStorageNbytesContiguous(sizes, type.itemsize())
                           : at::detail::computeStorageNbytes(sizes, strides, type.itemsize());
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(bytes)),
      Cell::make(bytes, index), allocator, /*resizable=*/true);
  auto t = at::detail::make_tensor_base<c10::TensorImpl>(std::move(storage),
                                                         c10::DispatchKeySet(kKey), type);
  auto* impl = t.unsafeGetTensorImpl();
  if (strides.empty()) {
    if (sizes.size() != 1 || sizes[0] != 0) impl->generic_set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides);
  }
  return t;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_);
  m.impl("set_", &set_none);
  m.impl("set_.source_Storage", &set_source_storage);
  m.impl("set_.source_Storage_storage_offset", &set_source_storage_offset);
  m.impl("set_.source_Tensor", &set_source_tensor);
  m.impl("is_set_to", &is_set_to);
  m.impl("view", &at::native::view);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
  m.impl("record_stream", &record_stream);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

}  // namespace torch_tpu
