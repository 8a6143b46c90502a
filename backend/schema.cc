// SPDX-License-Identifier: Apache-2.0
#include "backend/schema.h"

namespace torch_tpu {
namespace {

bool extends_by_out(const c10::FunctionSchema& functional, const c10::FunctionSchema& other) {
  const auto& ours = functional.arguments();
  const auto& theirs = other.arguments();
  if (theirs.size() <= ours.size()) return false;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const bool fits =
        i < ours.size() ? theirs[i].name() == ours[i].name() && *theirs[i].type() == *ours[i].type()
                        : theirs[i].is_out();
    if (!fits) return false;
  }
  return true;
}

}  // namespace

c10::OperatorHandle find_operator(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string overload(dot == name.npos ? "" : name.substr(dot + 1));
  const auto found =
      c10::Dispatcher::singleton().findSchema({std::string(name.substr(0, dot)), overload});
  TORCH_CHECK(found, "PyTorch has no operator ", name);
  return *found;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

bool is_list_of_optionals(const c10::Argument& argument) {
  const auto* list = argument.type()->castRaw<c10::ListType>();
  return list && list->getElementType()->castRaw<c10::OptionalType>();
}

std::optional<c10::OperatorHandle> out_overload_of(const c10::OperatorHandle& functional) {
  const std::string& base = functional.operator_name().name;
  for (const c10::OperatorName& n : c10::Dispatcher::singleton().getAllOpNames()) {
    if (n.name != base) continue;
    const auto other = c10::Dispatcher::singleton().findSchema(n);
    if (other && extends_by_out(functional.schema(), other->schema())) return other;
  }
  return std::nullopt;
}

}  // namespace torch_tpu
