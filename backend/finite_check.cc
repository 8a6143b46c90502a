// SPDX-License-Identifier: Apache-2.0
#include "backend/finite_check.h"

#include <atomic>

#include "backend/clean_state.h"
#include "backend/convert.h"
#include "backend/device.h"
#include "backend/mode.h"

namespace torch_tpu {
namespace {

std::atomic<bool> enabled{false};
// Reading a result runs ops, which are not looked at.
thread_local bool looking = false;

class Looking {
 public:
  Looking() { looking = true; }
  ~Looking() { looking = false; }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  const CleanState clean_;
};

bool has_infinity(c10::ScalarType t) { return c10::isFloatingType(t) || c10::isComplexType(t); }

at::Tensor not_finite(const at::Tensor& host) {
  const bool narrow = c10::isFloat8Type(host.scalar_type());
  return at::isfinite(narrow ? host.to(at::kFloat) : host).logical_not();
}

bool is_finite(const tpu::lower::Number& n) {
  if (const auto* d = std::get_if<double>(&n)) return std::isfinite(*d);
  const auto* z = std::get_if<std::complex<double>>(&n);
  return !z || (std::isfinite(z->real()) && std::isfinite(z->imag()));
}

void refuse(const OpCall& call, size_t result, const at::Tensor& host, const at::Tensor& bad) {
  const at::Tensor first = bad.nonzero()[0];
  std::vector<int64_t> at;
  for (int64_t i = 0; i < first.numel(); ++i) at.push_back(first[i].item<int64_t>());
  const at::Tensor value = host.index(std::vector<at::indexing::TensorIndex>(at.begin(), at.end()));
  const auto line = gil_hooks().python_line;
  const std::string origin = line ? line() : std::string();
  TORCH_CHECK(false, call.op.name, ": finite operands give ", value.item(), " at ",
              c10::IntArrayRef(at), " of result ", result,
              origin.empty() ? "" : " (at " + origin + ")");
}

}  // namespace

void set_finite_checks(bool on) { enabled = on; }

FiniteCheck::FiniteCheck(const OpCall& call)
    : call_(call),
      active_(enabled.load(std::memory_order_relaxed) && !looking &&
              eager_mode() == EagerMode::kDebug) {
  if (!active_) return;
  for (const TensorArg& t : call.tensors) {
    if (!t.cell || t.out) continue;
    const Cell::Guard guard(*t.cell);
    if (t.cell->array) operands_.push_back(t.cell->array);
  }
}

bool FiniteCheck::operands_are_finite() const {
  if (!std::all_of(call_.numbers.begin(), call_.numbers.end(), is_finite)) return false;
  return std::all_of(operands_.begin(), operands_.end(), [](const tpu::exec::ArrayRef& array) {
    const c10::ScalarType t = scalar_type_of(array->type().dtype);
    if (!has_infinity(t)) return true;
    const at::Tensor host = at::empty(array->type().dims, t);
    const WithoutGil released;
    tpu::throw_if_error(array->device().download(*array, host.mutable_data_ptr()));
    return !not_finite(host).any().item<bool>();
  });
}

void FiniteCheck::look_at(const Tensors& fresh) const {
  if (!active_) return;
  const Looking scope;
  Tensors results = fresh;
  for (const TensorArg& t : call_.tensors) {
    if (t.written) results.push_back(*t.tensor);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !has_infinity(results[i].scalar_type())) continue;
    const at::Tensor host = results[i].to(at::kCPU);
    const at::Tensor bad = not_finite(host);
    if (bad.any().item<bool>() && operands_are_finite()) refuse(call_, i, host, bad);
  }
}

}  // namespace torch_tpu
