// SPDX-License-Identifier: Apache-2.0
#include "backend/host_lowering.h"

#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/schema.h"
#include "backend/strides.h"
#include "core/hlo/host_call.h"

namespace torch_tpu {
namespace {

using Kind = ArgSpec::Kind;
using tpu::hlo::HostArgument;
using tpu::ir::Type;
using tpu::ir::Value;

void refuse_unless(bool possible, const char* why) {
  if (!possible) throw RecordingAbandoned(why);
}

bool is_tensor_type(const c10::Type& t) {
  if (t.kind() == c10::TypeKind::TensorType) return true;
  const auto* list = t.castRaw<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::TensorType;
}

void refuse_unsuitable(const Op& op) {
  const c10::OperatorHandle& h = op.handle;
  for (const at::Tag tag : {at::Tag::dynamic_output_shape, at::Tag::data_dependent_output,
                            at::Tag::nondeterministic_seeded, at::Tag::inplace_view}) {
    refuse_unless(!h.hasTag(tag), "results that no metadata tells");
  }
  refuse_unless(op.generator < 0, "random numbers of the host");
  for (size_t i = 0; i < op.args.size(); ++i) {
    const c10::Argument& a = h.schema().arguments()[i];
    refuse_unless(!a.alias_info() || is_written(a), "a view");
    refuse_unless(!op.args[i].written || op.args[i].kind == Kind::kTensor, "a written list");
  }
  for (const c10::Argument& r : h.schema().returns()) {
    refuse_unless(is_tensor_type(*r.type()), "a result that is no tensor");
  }
}

Type type_of(const ResultSpec& s) { return {dtype_of(s.dtype), dims_of(s.sizes)}; }

const at::Tensor& argument(const OpCall& call, const char* name) {
  return call.args[static_cast<size_t>(*call.op.handle.schema().argumentIndexWithName(name))]
      .toTensor();
}

ResultSpec contiguous_like(const at::Tensor& t, c10::ScalarType dtype) {
  return {dtype, c10::DimVector(t.sizes()), c10::contiguous_strides(t.sizes())};
}
ResultSpec contiguous_like(const at::Tensor& t) { return contiguous_like(t, t.scalar_type()); }

// LAPACK's own order: each matrix by columns.
std::vector<ResultSpec> geqrf_results(const OpCall& call) {
  const at::Tensor& a = argument(call, "self");
  TORCH_CHECK(a.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  ResultSpec factors = contiguous_like(a);
  std::swap(factors.sizes[a.dim() - 1], factors.sizes[a.dim() - 2]);
  factors.strides = c10::contiguous_strides(factors.sizes);
  std::swap(factors.sizes[a.dim() - 1], factors.sizes[a.dim() - 2]);
  std::swap(factors.strides[a.dim() - 1], factors.strides[a.dim() - 2]);
  c10::DimVector tau(a.sizes().slice(0, a.dim() - 1));
  tau.back() = std::min(a.size(-1), a.size(-2));
  return {factors, {a.scalar_type(), tau, c10::contiguous_strides(tau)}};
}

std::vector<ResultSpec> like_log_probs(const OpCall& call) {
  return {contiguous_like(argument(call, "log_probs"))};
}
std::vector<ResultSpec> like_self(const OpCall& call) {
  return {contiguous_like(argument(call, "self"))};
}
std::vector<ResultSpec> like_x(const OpCall& call) {
  return {contiguous_like(argument(call, "x"))};
}

// The results of ops for which PyTorch has no metadata.
using Results = std::vector<ResultSpec> (*)(const OpCall&);
Results own_metadata(const std::string& op) {
  static const std::unordered_map<std::string, Results> known{
      {"aten::geqrf", geqrf_results},
      {"aten::_ctc_loss_backward", like_log_probs},
      {"aten::_ctc_loss_backward.Tensor", like_log_probs},
      {"aten::_standard_gamma_grad", like_self},
      {"aten::_dirichlet_grad", like_x},
  };
  const auto it = known.find(op);
  return it == known.end() ? nullptr : it->second;
}

// The call with meta tensors in place of its own; out= tensors are empty, to be resized.
class MetaCall {
 public:
  explicit MetaCall(const OpCall& call) {
    if (const Results results = own_metadata(call.op.name)) {
      fresh_ = results(call);
      return;
    }
    for (size_t i = 0; i < call.args.size(); ++i)
      stack_.push_back(replace(call.args[i], call.op.args[i]));
    const torch::jit::Stack arguments = stack_;
    {
      const CleanState clean;
      const WithoutTorchFunction plain;
      call.op.handle.callBoxed(stack_);
    }
    for (size_t i = 0; i < call.op.args.size(); ++i) {
      const bool given = arguments[i].isTensor() && arguments[i].toTensor().defined();
      if (call.op.args[i].written && given) written_.push_back(spec_of(arguments[i].toTensor()));
    }
    for (size_t i = 0; i < stack_.size(); ++i) {
      if (call.op.returns[i] < 0) add_fresh(stack_[i]);
    }
  }

  const std::vector<ResultSpec>& fresh() const { return fresh_; }
  const std::vector<ResultSpec>& written() const { return written_; }

 private:
  static ResultSpec spec_of(const at::Tensor& t) {
    if (!t.defined()) return {.dtype = c10::ScalarType::Undefined};
    return {t.scalar_type(), c10::DimVector(t.sizes()), dense_strides_of(t)};
  }

  void add_fresh(const c10::IValue& v) {
    if (v.isTensor()) return fresh_.push_back(spec_of(v.toTensor()));
    refuse_unless(v.isTensorList(), "a result that is no tensor");
    for (const c10::IValue& e : v.toListRef()) fresh_.push_back(spec_of(e.toTensor()));
  }

  static at::Tensor replace(const at::Tensor& t, bool out) {
    if (!t.defined()) return t;
    const auto options = at::TensorOptions().dtype(t.scalar_type()).device(at::kMeta);
    if (out) return at::empty({0}, options);
    at::Tensor m = at::empty_strided(t.sizes(), t.strides(), options);
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) {
      m.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return m;
  }

  static c10::IValue replace(const c10::IValue& v, const ArgSpec& spec) {
    if (v.isTensor()) return replace(v.toTensor(), spec.out);
    if (v.isDevice()) return c10::Device(at::kMeta);
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& e : v.toListRef()) list.push_back(replace(e.toTensor(), false));
      return list;
    }
    if (v.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& e : v.toListRef()) {
        list.push_back(e.isTensor() ? std::optional(replace(e.toTensor(), false)) : std::nullopt);
      }
      return list;
    }
    return v;
  }

  torch::jit::Stack stack_;
  std::vector<ResultSpec> fresh_;
  std::vector<ResultSpec> written_;
};

HostArgument constant_list(const c10::IValue& v) {
  const auto elements = v.toListRef();
  if (v.isBoolList()) {
    std::vector<bool> out;
    for (const c10::IValue& e : elements) out.push_back(e.toBool());
    return out;
  }
  if (v.isDoubleList()) {
    std::vector<double> out;
    for (const c10::IValue& e : elements) out.push_back(e.toDouble());
    return out;
  }
  tpu::ir::Dims out;
  for (const c10::IValue& e : elements) {
    refuse_unless(e.isInt() || e.isSymInt(), "a list of neither numbers nor tensors");
    out.push_back(e.isSymInt() ? e.toSymInt().expect_int() : e.toInt());
  }
  return out;
}

HostArgument constant(const c10::IValue& v, const ArgSpec& spec) {
  if (v.isNone()) return {};
  if (v.isString()) return std::string(v.toStringView());
  if (v.isDevice()) return tpu::hlo::HostDevice{};
  if (v.isList()) return constant_list(v);
  if (spec.dtype) return dtype_of(static_cast<c10::ScalarType>(v.toInt()));
  if (v.isSymInt()) return tpu::hlo::Literal(v.toSymInt().expect_int());
  refuse_unless(v.isScalar(), "an argument that has no text");
  return number_of(v.toScalar());
}

// The call's arguments as those of a host call.
class HostArguments {
 public:
  HostArguments(Recording& recording, const OpCall& call) : recording_(recording), call_(call) {}

  std::vector<HostArgument> all() {
    std::vector<HostArgument> out;
    for (size_t i = 0; i < call_.args.size(); ++i)
      out.push_back(one(call_.args[i], call_.op.args[i]));
    return out;
  }

 private:
  HostArgument one(const c10::IValue& v, const ArgSpec& spec) {
    if (spec.kind == Kind::kTensor) {
      if (!v.isTensor() || !v.toTensor().defined()) return {};
      if (!spec.written) return next();
      if (!spec.out) return tpu::hlo::HostWritten{next()};
      ++next_;
      return tpu::hlo::HostWritten{};
    }
    if (spec.kind != Kind::kTensorList || v.isNone()) return constant(v, spec);
    std::vector<std::optional<Value>> list;
    for (const c10::IValue& e : v.toListRef()) {
      const bool defined = e.isTensor() && e.toTensor().defined();
      list.push_back(defined ? std::optional(next()) : std::nullopt);
    }
    return list;
  }

  Value next() {
    const TensorArg& t = call_.tensors[next_++];
    tpu::ir::Graph& graph = recording_.graph;
    const tpu::ir::DType type = dtype_of(t.tensor->scalar_type());
    const Value v = t.slot < 0 ? recording_.read(*t.tensor)
                               : tpu::hlo::convert(graph.scalar(t.slot, type), type);
    if (t.tensor->unsafeGetTensorImpl()->is_wrapped_number()) graph.mark_wrapped(v);
    return v;
  }

  Recording& recording_;
  const OpCall& call_;
  size_t next_ = 0;
};

}  // namespace

Lowered lower_on_host(Recording& recording, const OpCall& call) {
  refuse_unless(recording.graph.target().host_calls, "host calls are off");
  refuse_unsuitable(call.op);
  const MetaCall meta(call);
  tpu::hlo::HostCall host{
      .op = call.op.name, .arguments = HostArguments(recording, call).all(), .fresh = {}};
  Lowered out;
  out.fresh = meta.fresh();
  for (const ResultSpec& s : meta.fresh()) {
    const bool defined = s.dtype != c10::ScalarType::Undefined;
    host.fresh.push_back(defined ? std::optional(type_of(s)) : std::nullopt);
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (!call.tensors[i].written) continue;
    const ResultSpec& spec = meta.written()[out.written.size()];
    host.written.push_back(type_of(spec));
    out.written.push_back(static_cast<int>(i));
    if (call.tensors[i].out) out.resized.push_back(spec);
  }
  recording.fallbacks.push_back(call.op.name);
  out.results = tpu::hlo::host_call(recording.graph, host);
  return out;
}

}  // namespace torch_tpu
