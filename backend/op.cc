// SPDX-License-Identifier: Apache-2.0
#include "backend/op.h"

#include "core/base/hash.h"

namespace torch_tpu {
namespace {

using Kind = ArgSpec::Kind;
using tpu::lower::ParamKind;

bool is_ignored_type(const c10::Type& t) {
  const auto k = t.kind();
  return k == c10::TypeKind::DeviceObjType || k == c10::TypeKind::LayoutType ||
         k == c10::TypeKind::MemoryFormatType;
}

const c10::Type& unwrap_optional(const c10::Type& t) {
  if (const auto* o = t.castRaw<c10::OptionalType>()) return *o->getElementType();
  return t;
}

// What the schema alone says; numbers are refined by the rule's parameters.
ArgSpec spec_of(const c10::Argument& a) {
  ArgSpec spec{Kind::kStatic};
  const c10::Type& real = unwrap_optional(*a.real_type());
  const c10::Type& type = unwrap_optional(*a.type());
  if (is_ignored_type(real) || a.name() == "pin_memory") {
    spec.kind = Kind::kIgnored;
  } else if (real.kind() == c10::TypeKind::ScalarTypeType) {
    spec.dtype = true;
  } else if (type.kind() == c10::TypeKind::TensorType) {
    spec.kind = Kind::kTensor;
  } else if (type.kind() == c10::TypeKind::GeneratorType) {
    spec.kind = Kind::kGenerator;
  } else if (const auto* list = type.castRaw<c10::ListType>()) {
    const c10::Type& element = unwrap_optional(*list->getElementType());
    if (element.kind() == c10::TypeKind::TensorType) spec.kind = Kind::kTensorList;
  }
  spec.written = a.alias_info() && a.alias_info()->isWrite();
  spec.out = a.is_out();
  return spec;
}

bool is_list(const c10::Argument& a) {
  return unwrap_optional(*a.type()).castRaw<c10::ListType>() != nullptr;
}

bool passed_to_rule(const ArgSpec& s) {
  return s.kind != Kind::kIgnored && s.kind != Kind::kGenerator && !s.out;
}

std::string full_name(const c10::OperatorName& n) {
  return n.overload_name.empty() ? n.name : n.name + "." + n.overload_name;
}

std::string base_name(const c10::OperatorName& n) {
  std::string base = n.name;
  if (base.size() > 2 && base.back() == '_' && base[base.size() - 2] != '_') base.pop_back();
  return base;
}

bool has_native_meta(const c10::OperatorHandle& h) {
  return h.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

Op::Op(const c10::OperatorHandle& h, const tpu::lower::Rule* r, Form f,
       std::optional<c10::OperatorHandle> functional)
    : handle(h),
      name(full_name(h.operator_name())),
      base(base_name(h.operator_name())),
      name_hash(tpu::hash_bytes(name).low),
      rule(r),
      form(f) {
  const auto& arguments = h.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    args.push_back(spec_of(arguments[i]));
    const int index = static_cast<int>(i);
    if (args.back().kind == Kind::kGenerator) generator = index;
    if (arguments[i].name() == "memory_format") memory_format = index;
    if (arguments[i].name() == "indices" && args.back().kind == Kind::kTensorList) {
      index_list = index;
    }
    if (!rule) continue;
    for (const std::string& m : rule->traits.mutates) {
      if (m == arguments[i].name()) args.back().written = true;
    }
  }

  // The rule's parameters follow the functional schema; this overload has them by name.
  const auto& order = functional ? functional->schema().arguments() : arguments;
  for (const c10::Argument& a : order) {
    const auto here = h.schema().argumentIndexWithName(a.name());
    if (!here) {
      if (spec_of(a).dtype) rule_args.push_back(kOutDtype);
    } else if (passed_to_rule(args[static_cast<size_t>(*here)])) {
      rule_args.push_back(*here);
    }
  }
  if (rule) {
    size_t next = 0;
    for (const ParamKind p : rule->params) {
      if (p == ParamKind::kContext || next >= rule_args.size()) continue;
      const int i = rule_args[next++];
      if (i == kOutDtype || (p != ParamKind::kScalar && p != ParamKind::kCoefficient)) continue;
      ArgSpec& spec = args[static_cast<size_t>(i)];
      spec.kind = is_list(arguments[static_cast<size_t>(i)]) ? Kind::kNumberList : Kind::kNumber;
      spec.coefficient = p == ParamKind::kCoefficient;
    }
  }

  const c10::OperatorHandle& meta = form == Form::kOut && functional ? *functional : h;
  if (form != Form::kMutating && has_native_meta(meta)) native_meta = meta;

  for (const c10::Argument& ret : h.schema().returns()) {
    int alias = -1;
    for (size_t i = 0; i < arguments.size() && ret.alias_info(); ++i) {
      if (arguments[i].alias_info() && *arguments[i].alias_info() == *ret.alias_info()) {
        alias = static_cast<int>(i);
      }
    }
    returns.push_back(alias);
  }
}

}  // namespace torch_tpu
