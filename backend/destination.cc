// SPDX-License-Identifier: Apache-2.0
#include "backend/destination.h"

#include <ATen/MemoryOverlap.h>

namespace torch_tpu {
namespace {

using Names = std::unordered_set<std::string>;

// These compute in the dtype of their out= tensor.
bool computes_in_out_dtype(const Op& op) {
  return op.base == "aten::sum" || op.base == "aten::prod";
}

// PyTorch lets these write views that repeat elements.
bool fills(const Op& op) {
  return op.base == "aten::fill" || op.base == "aten::zero" || op.base == "aten::masked_fill";
}

// Structured ops write their own dtype, but for those whose kernels cast: pointwise ones and these.
bool writes_own_dtype(const Op& op) {
  static const Names casts{"aten::cat",     "aten::mean",     "aten::cumsum",
                           "aten::cumprod", "aten::mse_loss", "aten::smooth_l1_loss",
                           "aten::glu"};
  return op.native_meta && op.form == Op::Form::kOut && !casts.contains(op.base) &&
         !op.handle.hasTag(at::Tag::pointwise);
}

// Ops with a text of their own for out= of another dtype; {from} and {to} are the dtypes.
const std::string* own_text(const Op& op) {
  static const std::unordered_map<std::string, std::string> texts = [] {
    std::unordered_map<std::string, std::string> map{
        {"aten::where.self_out", "Expected out type to be {from} but got {to}"},
        {"aten::index_select.out",
         "index_select(): self and result must have the same scalar type"},
        {"aten::take.out",
         "take(): self and out expected to have the same dtype, but got self.dtype = {from} and "
         "out.dtype = {to}"},
        {"aten::kthvalue.values", "output values must be of same type as input"},
        {"aten::nan_to_num.out", "nan_to_num: dtype of out: {to} should be same as input: {from}"},
    };
    for (const char* name : {"amax.out", "amin.out"}) {
      map[std::string("aten::") + name] =
          "Expected the dtype for input and out to match, but got {from} for input's dtype and "
          "{to} for out's dtype.";
    }
    for (const char* name : {"clamp.out", "clamp_min.out", "clamp_max.out", "gelu.out",
                             "softplus.out", "hardtanh.out"}) {
      map[std::string("aten::") + name] = "Found dtype {to} but expected {from}";
    }
    for (const char* name : {"dot.out", "vdot.out"}) {
      map[std::string("aten::") + name] = "result dtype {to} does not match input dtype {from}";
    }
    for (const char* name : {"logcumsumexp.out", "cummax.out", "cummin.out"}) {
      map[std::string("aten::") + name] = "expected scalar_type {from} but found {to}";
    }
    for (const char* name : {"all.out", "all.dims_out", "all.all_out"}) {
      map[std::string("aten::") + name] = "all only supports bool tensor for result, got: {to}";
    }
    for (const char* name : {"any.out", "any.dims_out", "any.all_out"}) {
      map[std::string("aten::") + name] = "any only supports bool tensor for result, got: {to}";
    }
    return map;
  }();
  const auto it = texts.find(op.name);
  return it == texts.end() ? nullptr : &it->second;
}

std::string filled(std::string text, const std::string& name, const std::string& value) {
  const size_t at = text.find(name);
  return at == std::string::npos ? text : text.replace(at, name.size(), value);
}

void check_castable(const Op& op, c10::ScalarType from, c10::ScalarType to) {
  if (from == to || computes_in_out_dtype(op)) return;
  const bool truth = op.base == "aten::all" || op.base == "aten::any";
  if (truth && to == at::kByte) return;
  if (const std::string* text = own_text(op)) {
    TORCH_CHECK(false,
                filled(filled(*text, "{from}", c10::toString(from)), "{to}", c10::toString(to)));
  }
  TORCH_CHECK(!writes_own_dtype(op), "Expected out tensor to have dtype ",
              c10::scalarTypeToTypeMeta(from), ", but got ", c10::scalarTypeToTypeMeta(to),
              " instead");
  if (op.base == "aten::cat" || op.base == "aten::stack") {
    TORCH_CHECK_TYPE(c10::canCast(from, to),
                     "torch.cat(): input types can't be cast to the desired output type ",
                     c10::toString(to));
  }
  TORCH_CHECK(c10::canCast(from, to), "result type ", c10::toString(from),
              " can't be cast to the desired output type ", c10::toString(to));
}

}  // namespace

void check_destination(const OpCall& call, const TensorArg& to, const ResultSpec& spec) {
  const at::Tensor& t = *to.tensor;
  check_castable(call.op, spec.dtype, t.scalar_type());
  if (!fills(call.op)) at::assert_no_internal_overlap(t);
  if (!to.out) {
    TORCH_CHECK(t.sizes() == c10::IntArrayRef(spec.sizes), "output with shape ", t.sizes(),
                " doesn't match the broadcast shape ", c10::IntArrayRef(spec.sizes));
    return;
  }
  for (const TensorArg& other : call.tensors) {
    if (!other.cell || other.out || other.cell != to.cell) continue;
    at::assert_no_partial_overlap(t, *other.tensor);
  }
}

}  // namespace torch_tpu
