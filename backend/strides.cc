// SPDX-License-Identifier: Apache-2.0
#include "backend/strides.h"

#include <ATen/TensorIterator.h>

namespace torch_tpu {
namespace {

using tpu::lower::Strides;

c10::DimVector of_format(c10::IntArrayRef sizes, c10::MemoryFormat f) {
  if (f == c10::MemoryFormat::ChannelsLast && sizes.size() == 4) {
    return c10::DimVector(c10::get_channels_last_strides_2d(sizes));
  }
  if (f == c10::MemoryFormat::ChannelsLast3d && sizes.size() == 5) {
    return c10::DimVector(c10::get_channels_last_strides_3d(sizes));
  }
  return c10::contiguous_strides(sizes);
}

// The tensors that a result of an operator on lists is made of: those at its place.
c10::SmallVector<const at::Tensor*, 4> at_place(const OpCall& call, size_t place) {
  c10::SmallVector<const at::Tensor*, 4> inputs;
  size_t next = 0;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.op.args[i].kind != ArgSpec::Kind::kTensorList) continue;
    const size_t count = call.args[i].toListRef().size();
    inputs.push_back(call.tensors[next + place % count].tensor);
    next += count;
  }
  return inputs;
}

c10::SmallVector<const at::Tensor*, 4> all_inputs(const OpCall& call) {
  c10::SmallVector<const at::Tensor*, 4> inputs;
  for (const TensorArg& t : call.tensors) {
    if (t.cell && !t.out) inputs.push_back(t.tensor);
  }
  return inputs;
}

}  // namespace

c10::DimVector dense_strides_of(const at::Tensor& t) {
  return t.is_non_overlapping_and_dense()
             ? c10::DimVector(t.strides())
             : c10::DimVector(at::infer_dense_strides(t.sizes(), t.strides()));
}

StrideChooser::StrideChooser(const OpCall& call, size_t result)
    : call_(call),
      inputs_(call.op.base.starts_with("aten::_foreach_") ? at_place(call, result)
                                                          : all_inputs(call)) {}

c10::DimVector StrideChooser::strides(c10::IntArrayRef sizes) const {
  const auto format = requested_format();
  const at::Tensor* first = inputs_.empty() ? nullptr : inputs_[0];
  switch (call_.op.rule ? call_.op.rule->traits.strides : Strides::kContiguous) {
    case Strides::kContiguous:
      break;
    case Strides::kPointwise:
      return pointwise(sizes);
    case Strides::kPreserve:
      if (format && *format != c10::MemoryFormat::Preserve) return of_format(sizes, *format);
      if (first && first->sizes() == sizes) return dense_strides_of(*first);
      break;
    case Strides::kSuggest:
      if (first && first->dim() == static_cast<int64_t>(sizes.size())) {
        return of_format(sizes, first->suggest_memory_format());
      }
      break;
  }
  return c10::contiguous_strides(sizes);
}

std::optional<c10::MemoryFormat> StrideChooser::requested_format() const {
  if (call_.op.memory_format < 0) return std::nullopt;
  const c10::IValue& v = call_.args[static_cast<size_t>(call_.op.memory_format)];
  return v.isNone() ? std::nullopt : std::optional(v.toMemoryFormat());
}

c10::DimVector StrideChooser::pointwise(c10::IntArrayRef sizes) const {
  if (inputs_.empty()) return c10::contiguous_strides(sizes);
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).check_all_same_device(false).set_check_mem_overlap(false);
  config.add_owned_output(at::Tensor());
  config.declare_static_dtype_and_device(at::kFloat, c10::Device(c10::DeviceType::Meta));
  for (const at::Tensor* t : inputs_) {
    config.add_owned_const_input(
        at::empty_strided(t->sizes(), t->strides(), at::TensorOptions().device(at::kMeta)));
  }
  auto iterator = config.build();
  const at::Tensor& out = iterator.output();
  return out.sizes() == sizes ? c10::DimVector(out.strides()) : c10::contiguous_strides(sizes);
}

}  // namespace torch_tpu
