// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/destination.h"
#include "backend/strides.h"

namespace torch_tpu {
namespace {

using Kind = ArgSpec::Kind;
using tpu::ir::Value;
using tpu::ir::Values;
using tpu::lower::Arg;

thread_local const Op* metadata_of = nullptr;

// Results of PyTorch's native structured metadata for this call, as (lazy) tensors.
std::vector<at::Tensor> native_metadata(const OpCall& call) {
  const c10::OperatorHandle& meta = *call.op.native_meta;
  torch::jit::Stack stack(
      call.args.begin(),
      call.args.begin() + static_cast<int64_t>(meta.schema().arguments().size()));
  const Op* previous = std::exchange(metadata_of, &call.op);
  const CleanState clean;
  try {
    meta.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional, stack);
  } catch (...) {
    metadata_of = previous;
    throw;
  }
  metadata_of = previous;
  std::vector<at::Tensor> results;
  for (const c10::IValue& v : stack) results.push_back(v.toTensor());
  return results;
}

ResultSpec spec_of(const at::Tensor& t) {
  return {t.scalar_type(), c10::DimVector(t.sizes()), c10::DimVector(t.strides())};
}

tpu::lower::Outputs outputs_of(const std::vector<ResultSpec>& specs) {
  tpu::lower::Outputs out;
  for (const ResultSpec& s : specs) out.types.push_back({dtype_of(s.dtype), dims_of(s.sizes)});
  return out;
}

// Hands the schema's arguments to the rule in the order of its parameters.
class ArgumentReader {
 public:
  ArgumentReader(Recording& r, const OpCall& call, const LowerOptions& options)
      : recording_(r), call_(call), options_(options) {
    for (size_t i = 0; i < call.args.size(); ++i) by_argument_.push_back(read(i));
  }

  std::vector<Arg> in_rule_order() const {
    std::vector<Arg> out;
    for (const int i : call_.op.rule_args) {
      out.push_back(i == kOutDtype ? out_dtype() : by_argument_[static_cast<size_t>(i)]);
    }
    return out;
  }

 private:
  Arg read(size_t i) {
    const ArgSpec& spec = call_.op.args[i];
    const c10::IValue& v = call_.args[i];
    switch (spec.kind) {
      case Kind::kTensor:
        return v.isTensor() && v.toTensor().defined() ? Arg(next_tensor()) : Arg();
      case Kind::kTensorList:
        return tensor_list(v);
      case Kind::kNumber:
        return v.isNone() ? Arg() : number(spec);
      case Kind::kNumberList:
        return number_list(v, spec);
      case Kind::kStatic:
        return spec.dtype ? dtype(v) : constant(v);
      case Kind::kGenerator:
      case Kind::kIgnored:
        break;
    }
    return {};
  }

  Value next_tensor() {
    const auto n = next_tensor_++;
    const TensorArg& t = call_.tensors[n];
    if (t.slot >= 0) return cpu_number(t);
    const Values none;
    const Values& starts = options_.starts ? (*options_.starts)[n] : none;
    if (t.out) return tpu::hlo::full(recording_.graph, assumed_type(*t.tensor), false);
    const Value v = recording_.read(*t.tensor, starts);
    if (t.tensor->unsafeGetTensorImpl()->is_wrapped_number()) recording_.graph.mark_wrapped(v);
    return v;
  }

  Value cpu_number(const TensorArg& t) {
    const tpu::ir::DType type = dtype_of(t.tensor->scalar_type());
    const auto slot = static_cast<size_t>(t.slot);
    tpu::ir::Graph& g = recording_.graph;
    const Value v = options_.literal_numbers ? tpu::hlo::constant(g, type, call_.numbers[slot])
                                             : g.scalar(t.slot, type);
    next_number_ = slot + 1;
    if (t.tensor->unsafeGetTensorImpl()->is_wrapped_number()) g.mark_wrapped(v);
    // A wanted type narrower than its carrier is reached by rounding once, in the program.
    return options_.literal_numbers ? v : tpu::hlo::convert(v, type);
  }

  Arg tensor_list(const c10::IValue& v) {
    if (v.isNone()) return {};
    const auto elements = v.toListRef();
    tpu::lower::OptionalValues values;
    bool all = true;
    for (const c10::IValue& e : elements) {
      const bool defined = e.isTensor() && e.toTensor().defined();
      all = all && defined;
      values.push_back(defined ? std::optional<Value>(next_tensor()) : std::nullopt);
    }
    if (!all || is_optional_list(v)) return values;
    Values plain;
    for (const auto& e : values) plain.push_back(*e);
    return plain;
  }

  static bool is_optional_list(const c10::IValue& v) { return v.isOptionalTensorList(); }

  Arg number(const ArgSpec& spec) {
    const tpu::lower::Scalar s = next_scalar();
    const tpu::lower::Number& n = call_.numbers[next_number_ - 1];
    if (spec.coefficient) return tpu::lower::Coefficient(s, class_of(n));
    if (spec.exponent) return tpu::lower::Exponent(s, n);
    return s;
  }

  tpu::lower::Scalar next_scalar() {
    const auto slot = next_number_++;
    if (options_.literal_numbers) return {recording_.graph, call_.numbers[slot]};
    return {recording_.graph, static_cast<int>(slot),
            static_cast<tpu::lower::Scalar::Kind>(call_.numbers[slot].index())};
  }

  Arg number_list(const c10::IValue& v, const ArgSpec& spec) {
    if (v.isNone()) return {};
    std::vector<tpu::lower::Scalar> list;
    for (size_t i = 0; i < v.toListRef().size(); ++i) list.push_back(next_scalar());
    return list;
  }

  static Arg dtype(const c10::IValue& v) {
    if (v.isNone()) return {};
    return dtype_of(static_cast<c10::ScalarType>(v.toInt()));
  }

  Arg out_dtype() const {
    for (const TensorArg& t : call_.tensors) {
      if (t.out) return dtype_of(t.tensor->scalar_type());
    }
    return {};
  }

  static Arg constant(const c10::IValue& v) {
    if (v.isNone()) return {};
    if (v.isString()) return std::string(v.toStringView());
    if (v.isList()) return constant_list(v.toListRef());
    if (v.isSymInt()) return tpu::lower::Number(v.toSymInt().expect_int());
    return number_of(v.toScalar());
  }

  static Arg constant_list(c10::ArrayRef<c10::IValue> list) {
    if (!list.empty() && list[0].isBool()) {
      std::vector<bool> out;
      for (const auto& e : list) out.push_back(e.toBool());
      return out;
    }
    if (!list.empty() && list[0].isDouble()) {
      std::vector<double> out;
      for (const auto& e : list) out.push_back(e.toDouble());
      return out;
    }
    tpu::ir::Dims out;
    for (const auto& e : list) {
      out.push_back(e.isSymInt() ? e.toSymInt().expect_int() : e.toInt());
    }
    return out;
  }

  Recording& recording_;
  const OpCall& call_;
  const LowerOptions& options_;
  std::vector<Arg> by_argument_;
  size_t next_tensor_ = 0;
  size_t next_number_ = 0;
};

// The written arguments in schema order, as numbers into call.tensors.
std::vector<int> written_tensors(const OpCall& call) {
  std::vector<int> out;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (call.tensors[i].written) out.push_back(static_cast<int>(i));
  }
  return out;
}

class CallLowering {
 public:
  CallLowering(Recording& r, const OpCall& call, const LowerOptions& options)
      : recording_(r), call_(call), options_(options) {}

  Lowered run() {
    if (call_.op.native_meta) {
      for (const at::Tensor& t : native_metadata(call_)) known_.push_back(spec_of(t));
    }
    const bool results_known = !known_.empty() && call_.op.form != Op::Form::kInplace;
    tpu::lower::Outputs outputs = outputs_of(known_);
    const auto args = ArgumentReader(recording_, call_, options_).in_rule_order();
    Values values = call_.op.rule->lower({recording_.graph, args, outputs, call_.extent});
    Lowered out;
    out.written = written_tensors(call_);
    const bool derived = call_.op.form == Op::Form::kInplace || call_.op.form == Op::Form::kOut;
    if (derived) {
      bind_derived(values, results_known, out);
    } else {
      bind_fresh(values, out);
    }
    return out;
  }

 private:
  ResultSpec describe(Value v, size_t result) const {
    return {scalar_type_of(v.dtype()), c10::DimVector(v.dims().begin(), v.dims().end()),
            StrideChooser(call_, result).strides(v.dims())};
  }

  // Brings a rule's value to what metadata promised.
  Value conform(Value v, const ResultSpec& spec) const {
    v = tpu::hlo::convert(v, dtype_of(spec.dtype));
    TORCH_CHECK(c10::IntArrayRef(v.dims()) == c10::IntArrayRef(spec.sizes),
                "internal error: ", call_.op.name, ": the rule gives ", v.type().str(),
                " where PyTorch's metadata says ", c10::IntArrayRef(spec.sizes),
                ". Please report this.");
    return v;
  }

  void bind_fresh(const Values& values, Lowered& out) {
    const size_t fresh = values.size() - out.written.size();
    TORCH_CHECK(values.size() >= out.written.size(), "internal error: ", call_.op.name,
                ": the rule returns too few values. Please report this.");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i >= fresh) {
        out.results.push_back(values[i]);
        continue;
      }
      if (tpu::lower::is_undefined(values[i])) {
        out.fresh.push_back({.dtype = c10::ScalarType::Undefined});
        out.results.push_back(values[i]);
        continue;
      }
      const ResultSpec spec = i < known_.size() ? known_[i] : describe(values[i], i);
      out.results.push_back(conform(values[i], spec));
      out.fresh.push_back(spec);
    }
  }

  void bind_derived(const Values& values, bool results_known, Lowered& out) {
    TORCH_CHECK(values.size() == out.written.size(), "internal error: ", call_.op.name, ": ",
                values.size(), " results for ", out.written.size(),
                " tensors. Please report this.");
    for (size_t i = 0; i < values.size(); ++i) {
      const TensorArg& to = call_.tensors[static_cast<size_t>(out.written[i])];
      TORCH_CHECK(!tpu::lower::is_undefined(values[i]), call_.op.name,
                  ": an out= tensor is given for a result that output_mask leaves out");
      const ResultSpec spec = results_known ? known_[i] : describe(values[i], i);
      if (known_.empty() || to.out) check_destination(call_, to, spec);
      out.results.push_back(results_known ? conform(values[i], spec) : values[i]);
      if (to.out) out.resized.push_back(spec);
    }
  }

  Recording& recording_;
  const OpCall& call_;
  const LowerOptions& options_;
  std::vector<ResultSpec> known_;
};

}  // namespace

bool swallowed_by_metadata(const Op& op) {
  return metadata_of && op.form == Op::Form::kOut && op.base == metadata_of->base;
}

Lowered lower_call(Recording& recording, const OpCall& call, const LowerOptions& options) {
  return CallLowering(recording, call, options).run();
}

}  // namespace torch_tpu
