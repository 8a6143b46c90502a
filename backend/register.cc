// SPDX-License-Identifier: Apache-2.0
// Registers the boxed entry for every overload that a rule covers: the functional one it is named
// after, and the in-place and out= overloads of the same group that the schema shows.
#include <deque>

#include "backend/boxed.h"

namespace torch_tpu {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;

// Typed kernels elsewhere in this folder that a rule's group would otherwise cover.
bool has_typed_kernel(const std::string& name) {
  return name == "aten::copy_" || name == "aten::fill_.Scalar" || name == "aten::zero_";
}

bool is_implicit_composite(const OperatorHandle& h) {
  return h.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !h.hasKernelForDispatchKey(DispatchKey::Autograd);
}

bool writes(const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); }

bool mutates(const OperatorHandle& h) {
  const auto& args = h.schema().arguments();
  return std::any_of(args.begin(), args.end(), writes);
}

bool has_out(const OperatorHandle& h) {
  const auto& args = h.schema().arguments();
  return std::any_of(args.begin(), args.end(), [](const auto& a) { return a.is_out(); });
}

bool takes_device(const OperatorHandle& h) {
  return h.schema().argumentIndexWithName("device").has_value();
}

bool takes_tensor(const OperatorHandle& h) {
  const auto& args = h.schema().arguments();
  return std::any_of(args.begin(), args.end(), [](const c10::Argument& a) {
    return a.type()->str().find("Tensor") != std::string::npos;
  });
}

bool is_option(const c10::Argument& a) {
  static const std::unordered_set<std::string> names{"dtype", "layout", "device", "pin_memory",
                                                     "memory_format"};
  return names.contains(a.name());
}

// Whether `other` takes the functional overload's arguments: all of them, by name and type, apart
// from tensor options, and nothing else but out= arguments.
bool same_arguments(const OperatorHandle& functional, const OperatorHandle& other) {
  const auto& theirs = other.schema().arguments();
  size_t next = 0;
  for (const c10::Argument& a : functional.schema().arguments()) {
    const bool match = next < theirs.size() && !theirs[next].is_out() &&
                       theirs[next].name() == a.name() && *theirs[next].type() == *a.type();
    if (match) {
      ++next;
    } else if (!is_option(a)) {
      return false;
    }
  }
  return next == theirs.size() || theirs[next].is_out();
}

// All overloads by base name ("aten::add", "aten::add_").
class Overloads {
 public:
  Overloads() {
    for (const c10::OperatorName& n : c10::Dispatcher::singleton().getAllOpNames()) {
      if (n.name.starts_with("aten::")) by_name_[n.name].push_back(n);
    }
  }
  std::vector<OperatorHandle> of(const std::string& name) const {
    std::vector<OperatorHandle> out;
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) return out;
    for (const c10::OperatorName& n : it->second) {
      if (auto h = c10::Dispatcher::singleton().findSchema(n)) out.push_back(*h);
    }
    return out;
  }

 private:
  std::unordered_map<std::string, std::vector<c10::OperatorName>> by_name_;
};

class Registrar {
 public:
  explicit Registrar(torch::Library& library) : library_(library) {}

  void add(const tpu::lower::Rule& rule) {
    const size_t dot = rule.name.find('.');
    const std::string base = rule.name.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : rule.name.substr(dot + 1);
    const auto handle = c10::Dispatcher::singleton().findSchema({base, overload});
    TORCH_CHECK(handle,
                "torch_tpu: a rule names an operator that PyTorch does not have: ", rule.name);
    if (has_out(*handle)) {  // its functional overload is a composite that may have no rule
      implement(*handle, rule, Op::Form::kOut, std::nullopt);
      return;
    }
    if (mutates(*handle)) {
      implement(*handle, rule, Op::Form::kMutating, std::nullopt);
      return;
    }
    // A factory's composite makes the tensor on the asked device and fills it by the out= form.
    const bool by_composite =
        (!takes_tensor(*handle) || takes_device(*handle)) &&
        handle->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
    if (!by_composite) implement(*handle, rule, Op::Form::kFunctional, std::nullopt);
    for (const OperatorHandle& other : overloads_.of(base)) {
      if (has_out(other) && same_arguments(*handle, other)) {
        implement(other, rule, Op::Form::kOut, *handle);
      }
    }
    for (const OperatorHandle& other : overloads_.of(base + "_")) {
      if (mutates(other) && !has_out(other) && same_arguments(*handle, other)) {
        implement(other, rule, Op::Form::kInplace, *handle);
      }
    }
  }

 private:
  void implement(const OperatorHandle& h, const tpu::lower::Rule& rule, Op::Form form,
                 std::optional<OperatorHandle> functional) {
    const std::string name = c10::toString(h.operator_name());
    if (has_typed_kernel(name) || h.hasTag(at::Tag::inplace_view)) return;
    // A kernel on such an op would cut the gradient: its formula is in the composite.
    if (is_implicit_composite(h)) {
      TORCH_CHECK(form != Op::Form::kFunctional && form != Op::Form::kMutating,
                  "torch_tpu: a rule may not replace the composite ", name);
      return;
    }
    if (!done_.insert(name).second) return;
    const Op& op = ops_.emplace_back(h, &rule, form, std::move(functional));
    library_.impl(name.substr(std::string("aten::").size()).c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedOp>(op)));
  }

  torch::Library& library_;
  Overloads overloads_;
  std::unordered_set<std::string> done_;
  // Handed out by reference for the life of the process.
  std::deque<Op>& ops_ = *new std::deque<Op>;
};

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  Registrar registrar(m);
  for (const tpu::lower::Rule& rule : tpu::lower::all_rules()) registrar.add(rule);
}

}  // namespace torch_tpu
