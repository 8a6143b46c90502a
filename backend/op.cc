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

std::string base_name(const c10::OperatorName& n) {
  std::string base = n.name;
  if (base.size() > 2 && base.back() == '_' && base[base.size() - 2] != '_') base.pop_back();
  return base;
}

bool has_native_meta(const c10::OperatorHandle& h) {
  return h.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// The schema's arguments, with what the rule's traits add.
void read_arguments(Op& op) {
  const auto& arguments = op.handle.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    ArgSpec spec = spec_of(arguments[i]);
    const int index = static_cast<int>(i);
    const std::string& name = arguments[i].name();
    if (spec.kind == Kind::kGenerator) op.generator = index;
    if (name == "memory_format") op.memory_format = index;
    if (name == "indices" && spec.kind == Kind::kTensorList) op.index_list = index;
    if (op.rule) {
      const auto& mutates = op.rule->traits.mutates;
      spec.written |= std::find(mutates.begin(), mutates.end(), name) != mutates.end();
    }
    op.args.push_back(spec);
  }
}

// The rule's parameters follow the functional schema; this overload has them by name.
void order_rule_arguments(Op& op, const c10::FunctionSchema& order) {
  for (const c10::Argument& a : order.arguments()) {
    const auto here = op.handle.schema().argumentIndexWithName(a.name());
    if (!here) {
      if (spec_of(a).dtype) op.rule_args.push_back(kOutDtype);
    } else if (passed_to_rule(op.args[static_cast<size_t>(*here)])) {
      op.rule_args.push_back(*here);
    }
  }
}

// Numbers the rule wants to read at run time leave the key.
void mark_numbers(Op& op) {
  size_t next = 0;
  for (const ParamKind p : op.rule->params) {
    if (p == ParamKind::kContext || next >= op.rule_args.size()) continue;
    const int i = op.rule_args[next++];
    const bool run_time =
        p == ParamKind::kScalar || p == ParamKind::kCoefficient || p == ParamKind::kExponent;
    if (i == kOutDtype || !run_time) continue;
    const auto at = static_cast<size_t>(i);
    const bool list = is_list(op.handle.schema().arguments()[at]);
    op.args[at].kind = list ? Kind::kNumberList : Kind::kNumber;
    op.args[at].coefficient = p == ParamKind::kCoefficient;
    op.args[at].exponent = p == ParamKind::kExponent;
  }
}

// The argument a return value aliases, or -1.
int aliased_argument(const c10::Argument& returned, const c10::FunctionSchema& schema) {
  int alias = -1;
  if (!returned.alias_info()) return alias;
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() && *arguments[i].alias_info() == *returned.alias_info()) {
      alias = static_cast<int>(i);
    }
  }
  return alias;
}

}  // namespace

Op::Op(const c10::OperatorHandle& h, const tpu::lower::Rule* r, Form f,
       std::optional<c10::OperatorHandle> functional)
    : handle(h),
      name(c10::toString(h.operator_name())),
      base(base_name(h.operator_name())),
      name_hash(tpu::hash_bytes(name).low),
      rule(r),
      form(f) {
  read_arguments(*this);
  order_rule_arguments(*this, functional ? functional->schema() : h.schema());
  if (rule) mark_numbers(*this);
  const c10::OperatorHandle& meta = form == Form::kOut && functional ? *functional : h;
  if (form != Form::kMutating && has_native_meta(meta)) native_meta = meta;
  for (const c10::Argument& returned : h.schema().returns()) {
    returns.push_back(aliased_argument(returned, h.schema()));
  }
}

}  // namespace torch_tpu
