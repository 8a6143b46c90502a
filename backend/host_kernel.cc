// SPDX-License-Identifier: Apache-2.0
#include "backend/host_kernel.h"

#include <charconv>
#include <deque>
#include <shared_mutex>

#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/schema.h"

namespace torch_tpu {
namespace {

using tpu::pjrt::HostBuffer;
using tpu::pjrt::HostCallFrame;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <class T>
T number(std::string_view text, int base = 10) {
  T value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, base).ptr;
  TORCH_INTERNAL_ASSERT(end == text.data() + text.size(), "a host call's argument reads ", text);
  return value;
}

double bits(std::string_view hex) { return std::bit_cast<double>(number<uint64_t>(hex, 16)); }

std::vector<bool> flags(std::string_view text) {
  std::vector<bool> out;
  for (const char c : text) out.push_back(c == '1');
  return out;
}

c10::IValue complex_of(std::string_view text) {
  const auto parts = split(text, ',');
  return c10::complex<double>(bits(parts[0]), bits(parts[1]));
}

template <class T, class F>
c10::IValue list_of(std::string_view text, F parse) {
  c10::List<T> out;
  for (const std::string_view part : split(text, ',')) out.push_back(parse(part));
  return out;
}

c10::IValue bools_of(std::string_view text) {
  c10::List<bool> out;
  for (const bool b : flags(text)) out.push_back(b);
  return out;
}

c10::IValue string_of(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(number<uint8_t>(hex.substr(i, 2), 16));
  }
  return out;
}

c10::IValue constant_of(const c10::Argument& argument, std::string_view token) {
  const std::string_view text = token.substr(1);
  switch (token[0]) {
    case '-':
      return argument.type()->kind() == c10::TypeKind::TensorType ? c10::IValue(at::Tensor())
                                                                  : c10::IValue();
    case 'b':
      return text == "1";
    case 'i':
      return number<int64_t>(text);
    case 'd':
      return bits(text);
    case 'c':
      return complex_of(text);
    case 'I':
      return list_of<int64_t>(text, [](auto t) { return number<int64_t>(t); });
    case 'D':
      return list_of<double>(text, bits);
    case 'B':
      return bools_of(text);
    case 's':
      return string_of(text);
    case 'y':
      return scalar_type_of(static_cast<tpu::ir::DType>(number<int>(text)));
    case 'x':
      return c10::Device(c10::DeviceType::CPU);
  }
  TORCH_INTERNAL_ASSERT(false, "a host call's argument reads ", token);
}

at::Tensor tensor_over(tpu::Result<HostBuffer> buffer) {
  const HostBuffer b = tpu::value_or_throw(std::move(buffer));
  const auto options = at::TensorOptions().dtype(scalar_type_of(b.dtype));
  const c10::IntArrayRef dims(b.dims.data(), b.dims.size());
  if (c10::multiply_integers(dims) == 0) return at::empty(dims, options);
  return at::from_blob(b.data, dims, options);
}

void append_tensors(const c10::IValue& v, std::vector<at::Tensor>& out) {
  if (v.isTensor()) out.push_back(v.toTensor());
  if (v.isTensorList()) {
    for (const c10::IValue& e : v.toListRef()) out.push_back(e.toTensor());
  }
}

}  // namespace

// The call's operands and results as tensors, handed out in order.
class HostKernel::Memory {
 public:
  Memory(const HostCallFrame& frame, size_t fresh) : frame_(frame), fresh_(fresh) {
    for (size_t i = 0; i < fresh; ++i) add_result();
  }

  at::Tensor operand() { return tensor_over(frame_.operand(next_operand_++)); }
  // The program gave its dims as they are, its memory in the other order.
  at::Tensor matrix_by_columns() {
    const at::Tensor t = operand();
    c10::DimVector stored(t.sizes());
    std::swap(stored[stored.size() - 1], stored[stored.size() - 2]);
    return t.view(stored).transpose(-1, -2);
  }
  const at::Tensor& out() { return add_result().seen; }
  const at::Tensor& mutated() {
    at::Tensor initial = operand();
    Result& r = add_result();
    r.memory.copy_(initial);
    r.initial = std::move(initial);
    return r.seen;
  }
  const at::Tensor& fresh(size_t i) const { return results_[i].seen; }
  size_t fresh_count() const { return fresh_; }

  // Kernels may leave flags (conjugation) and strides of their own on what they wrote.
  void settle() {
    for (Result& r : results_) {
      TORCH_INTERNAL_ASSERT(r.seen.sizes() == r.memory.sizes(), "the kernel's result is not ",
                            r.memory.sizes(), ", as its metadata says");
      const bool plain = !r.seen.is_conj() && !r.seen.is_neg() &&
                         r.seen.strides() == r.memory.strides() &&
                         r.seen.const_data_ptr() == r.memory.const_data_ptr();
      if (!plain) r.memory.copy_(r.seen.clone());
    }
  }

  // After a failure there are values all the same.
  void reset() {
    for (Result& r : results_) {
      r.initial.defined() ? r.memory.copy_(r.initial) : r.memory.zero_();
    }
  }

 private:
  struct Result {
    at::Tensor memory;
    at::Tensor seen;     // the same memory as the kernel sees it
    at::Tensor initial;  // what a tensor to be changed held before
  };
  Result& add_result() {
    const at::Tensor memory = tensor_over(frame_.result(results_.size()));
    results_.push_back({memory, memory.alias(), {}});
    return results_.back();
  }

  const HostCallFrame& frame_;
  const size_t fresh_;
  size_t next_operand_ = 0;
  std::deque<Result> results_;  // fresh ones, then written ones; handed out by reference
};

const HostKernel& HostKernel::of(const HostCallFrame& frame) {
  static std::shared_mutex mutex;  // guards `kernels`
  static auto& kernels = *new std::unordered_map<std::string, std::unique_ptr<HostKernel>>;
  const auto text = [&](const char* name) { return frame.text(name).value_or(""); };
  const std::string_view op = text("op");
  const std::string_view args = text("args");
  const std::string_view wanted = text("results");
  std::string key;
  for (const std::string_view part : {op, args, wanted}) key.append(part).append("|");
  {
    const std::shared_lock lock(mutex);
    if (const auto it = kernels.find(key); it != kernels.end()) return *it->second;
  }
  std::unique_ptr<HostKernel> made(new HostKernel(op, args, wanted));
  const std::lock_guard lock(mutex);
  return *kernels.try_emplace(std::move(key), std::move(made)).first->second;
}

HostKernel::HostKernel(std::string_view op, std::string_view args, std::string_view wanted)
    : handle_(find_operator(op)), wanted_(flags(wanted)) {
  const auto tokens = split(args, ' ');
  const auto& arguments = handle_.schema().arguments();
  TORCH_CHECK(tokens.size() == arguments.size(), op, ": a host call has ", tokens.size(),
              " arguments");
  for (size_t i = 0; i < tokens.size(); ++i) slots_.push_back(decode(arguments[i], tokens[i]));
  fresh_ = static_cast<size_t>(std::count(wanted_.begin(), wanted_.end(), true));
  const auto& returns = handle_.schema().returns();
  const bool all_tensors = std::all_of(returns.begin(), returns.end(), [](const auto& r) {
    return r.type()->kind() == c10::TypeKind::TensorType && !r.alias_info();
  });
  if (all_tensors && fresh_ == returns.size()) out_form_ = out_overload_of(handle_);
}

HostKernel::Slot HostKernel::decode(const c10::Argument& argument, std::string_view token) {
  using Kind = Slot::Kind;
  switch (token[0]) {
    case 't':
      return {Kind::kTensor};
    case 'q':
      return {Kind::kByColumns};
    case 'w':
      return {Kind::kWrappedNumber};
    case 'o':
      return {Kind::kOut};
    case 'm':
      return {Kind::kMutated};
    case 'T':
      return {.kind = Kind::kList,
              .defined = flags(token.substr(1)),
              .optional_elements = is_list_of_optionals(argument)};
    default:
      return {.kind = Kind::kConstant, .constant = constant_of(argument, token)};
  }
}

c10::IValue HostKernel::list(const Slot& slot, Memory& memory) const {
  if (slot.optional_elements) {
    c10::List<std::optional<at::Tensor>> list;
    for (const bool defined : slot.defined) {
      list.push_back(defined ? std::optional(memory.operand()) : std::nullopt);
    }
    return list;
  }
  c10::List<at::Tensor> list;
  for (const bool defined : slot.defined) list.push_back(defined ? memory.operand() : at::Tensor());
  return list;
}

void HostKernel::run(const HostCallFrame& frame) const {
  // Nothing of the thread that happens to run the program: autograd, modes, profilers.
  const CleanState clean;
  const WithoutTorchFunction plain;
  const at::DisableRecordFunctionGuard unrecorded;
  Memory memory(frame, fresh_);
  torch::jit::Stack stack;
  for (const Slot& slot : slots_) {
    switch (slot.kind) {
      case Slot::Kind::kConstant:
        stack.push_back(slot.constant);
        break;
      case Slot::Kind::kTensor:
        stack.emplace_back(memory.operand());
        break;
      case Slot::Kind::kByColumns:
        stack.emplace_back(memory.matrix_by_columns());
        break;
      case Slot::Kind::kWrappedNumber: {
        at::Tensor number = memory.operand();
        number.unsafeGetTensorImpl()->set_wrapped_number(true);
        stack.emplace_back(std::move(number));
        break;
      }
      case Slot::Kind::kList:
        stack.push_back(list(slot, memory));
        break;
      case Slot::Kind::kOut:
        stack.emplace_back(memory.out());
        break;
      case Slot::Kind::kMutated:
        stack.emplace_back(memory.mutated());
        break;
    }
  }
  try {
    call(stack, memory);
    memory.settle();
  } catch (...) {
    memory.reset();
    throw;
  }
}

void HostKernel::call(torch::jit::Stack& stack, Memory& memory) const {
  if (out_form_) {
    for (size_t i = 0; i < memory.fresh_count(); ++i) stack.emplace_back(memory.fresh(i));
    out_form_->callBoxed(stack);
    return;
  }
  handle_.callBoxed(stack);
  take_results(stack, memory);
}

void HostKernel::take_results(const torch::jit::Stack& stack, Memory& memory) const {
  std::vector<at::Tensor> made;
  const auto& returns = handle_.schema().returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    if (!returns[i].alias_info()) append_tensors(stack[i], made);
  }
  TORCH_INTERNAL_ASSERT(made.size() == wanted_.size(), handle_.operator_name(),
                        ": the kernel gave ", made.size(), " tensors, its metadata ",
                        wanted_.size());
  size_t next = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!wanted_[i]) continue;
    const at::Tensor& to = memory.fresh(next++);
    TORCH_INTERNAL_ASSERT(made[i].defined() && made[i].sizes() == to.sizes(),
                          handle_.operator_name(), ": the kernel's result is not ", to.sizes(),
                          ", as its metadata says");
    to.copy_(made[i]);
  }
}

}  // namespace torch_tpu
