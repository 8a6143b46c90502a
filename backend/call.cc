// SPDX-License-Identifier: Apache-2.0
#include "backend/call.h"

#include <atomic>

#include "backend/convert.h"
#include "backend/device.h"
#include "backend/host_call.h"

namespace torch_tpu {
namespace {

using Kind = ArgSpec::Kind;

std::atomic<uint8_t> precision{static_cast<uint8_t>(tpu::ir::Precision::kHighest)};

// Tags keep arguments of different kinds apart in the key.
enum Tag : uint64_t {
  kNone = 1,
  kUndefined,
  kTensor,
  kCpuNumber,
  kList,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kString,
  kNumber,
  kShares,
};

// What a tensor's word in the key says beside dtype and rank.
constexpr uint64_t kWhole = 1;       // contiguous, and the array has its dims and dtype
constexpr uint64_t kContiguous = 2;  // strides follow from sizes
constexpr uint64_t kUnwritten = 4;
constexpr uint64_t kWrapped = 8;
constexpr uint64_t kConj = 16;
constexpr uint64_t kNeg = 32;

uint64_t bits_of(double d) {
  uint64_t u;
  std::memcpy(&u, &d, sizeof(u));
  return u;
}

bool is_whole(const Cell& cell, const at::TensorImpl& t, tpu::ir::DType dtype) {
  if (!cell.array || t.storage_offset() != 0) return false;
  const tpu::ir::Type& type = cell.array->type();
  return type.dtype == dtype && c10::IntArrayRef(type.dims) == t.sizes();
}

constexpr size_t kFewTensors = 24;

}  // namespace

tpu::lower::Coefficient::Class class_of(const tpu::lower::Number& n) {
  using Class = tpu::lower::Coefficient::Class;
  const auto* c = std::get_if<std::complex<double>>(&n);
  if (c && c->imag() != 0) return Class::kOther;
  const double d = tpu::lower::to_double(n);
  if (d == 0) return Class::kZero;
  return d == 1 ? Class::kOne : Class::kOther;
}

uint64_t program_flags() {
  return precision.load(std::memory_order_relaxed) | uint64_t{host_calls_enabled()} << 8 |
         uint64_t{lowers_for_tpu()} << 9;
}

bool lowers_for_tpu() {
  static const char* const wanted = std::getenv("TORCH_TPU_LOWER_FOR");
  return wanted != nullptr && std::string_view(wanted) == "tpu";
}

void set_matmul_precision(tpu::ir::Precision p) { precision = static_cast<uint8_t>(p); }

tpu::ir::Precision matmul_precision() { return static_cast<tpu::ir::Precision>(precision.load()); }

OpCall::OpCall(const Op& o, torch::jit::Stack& s)
    : op(o), stack(s), args(torch::jit::last(s, o.args.size())) {
  hasher_.add(op.name_hash);
  hasher_.add(program_flags());
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgSpec& spec = op.args[i];
    const c10::IValue& v = args[i];
    switch (spec.kind) {
      case Kind::kTensor:
        if (v.isTensor()) {
          add_tensor(v.toTensor(), spec);
        } else {
          hasher_.add(kUndefined);
        }
        break;
      case Kind::kTensorList:
        if (v.isNone()) {
          hasher_.add(kNone);
          break;
        }
        hasher_.add(kList + (v.toListRef().size() << 8));
        for (const c10::IValue& e : v.toListRef()) {
          if (e.isTensor()) {
            add_tensor(e.toTensor(), spec);
          } else {
            hasher_.add(kUndefined);
          }
        }
        break;
      case Kind::kNumber:
        add_number(v, spec);
        break;
      case Kind::kNumberList:
        if (v.isNone()) {
          hasher_.add(kNone);
          break;
        }
        hasher_.add(kList + (v.toListRef().size() << 8));
        for (const c10::IValue& e : v.toListRef()) add_number(e, spec);
        break;
      case Kind::kGenerator:
        break;
      case Kind::kStatic:
      case Kind::kIgnored:
        add_static(v);
        break;
    }
  }
  if (device < 0) find_device();
  if (op.rule && op.rule->traits.extent) add_extent();
  if (tensors.size() > 1) add_sharing();
  words_before_offsets_ = hasher_.size();
  for (const int64_t o : offsets_) hasher_.add(static_cast<uint64_t>(o));
  key_ = hasher_.finish();
}

void OpCall::add_tensor(const at::Tensor& t, const ArgSpec& spec) {
  if (!t.defined()) {
    hasher_.add(kUndefined);
    return;
  }
  at::TensorImpl& impl = *t.unsafeGetTensorImpl();
  const tpu::ir::DType dtype = dtype_of(t.scalar_type(), op.name);
  const uint64_t wrapped = impl.is_wrapped_number() ? kWrapped : 0;
  if (!impl.is_privateuseone()) [[unlikely]] {
    if (!t.is_cpu() || t.dim() != 0 || spec.written) {
      refuse_mixed_devices(tpu_device(std::max<c10::DeviceIndex>(device, 0)), t.device());
    }
    hasher_.add(kCpuNumber | static_cast<uint64_t>(dtype) << 8 | wrapped << 16);
    tensors.push_back({&t, nullptr, static_cast<int>(numbers.size()), false, false});
    numbers.push_back(number_of(value_of(t)));
    return;
  }
  if (device < 0) {
    device = impl.device().index();
  } else if (impl.device().index() != device) {
    refuse_mixed_devices(tpu_device(device), t.device());
  }
  Cell& cell = Cell::of(*impl.unsafe_storage().unsafeGetStorageImpl());
  tensors.push_back({&t, &cell, -1, spec.written, spec.out});
  offsets_.push_back(impl.storage_offset());

  add_geometry(t, cell, dtype, wrapped);
}

void OpCall::add_geometry(const at::Tensor& t, Cell& cell, tpu::ir::DType dtype, uint64_t bits) {
  const at::TensorImpl& impl = *t.unsafeGetTensorImpl();
  const c10::IntArrayRef sizes = impl.sizes();
  const bool contiguous = impl.is_contiguous_default(c10::MemoryFormat::Contiguous);
  const Cell::Guard guard(cell);
  const bool whole = contiguous && is_whole(cell, impl, dtype);
  bits |= (whole ? kWhole : 0) | (contiguous ? kContiguous : 0);
  if (!cell.written()) bits |= kUnwritten;
  if (impl.is_conj()) bits |= kConj;
  if (impl.is_neg()) bits |= kNeg;
  hasher_.add(kTensor | static_cast<uint64_t>(dtype) << 8 | bits << 16 | sizes.size() << 24);
  for (const int64_t s : sizes) hasher_.add(static_cast<uint64_t>(s));
  if (!contiguous) {
    for (const int64_t s : impl.strides()) hasher_.add(static_cast<uint64_t>(s));
  }
  if (whole) return;
  hasher_.add(t.storage().nbytes());
  if (!cell.array) return;
  const tpu::ir::Type& type = cell.array->type();
  hasher_.add(static_cast<uint64_t>(type.dtype) << 8 | type.dims.size());
  for (const int64_t d : type.dims) hasher_.add(static_cast<uint64_t>(d));
}

void OpCall::add_number(const c10::IValue& v, const ArgSpec& spec) {
  if (v.isNone()) {
    hasher_.add(kNone);
    return;
  }
  const c10::Scalar s = v.isSymInt() ? c10::Scalar(v.toSymInt().expect_int()) : v.toScalar();
  tpu::lower::Number n = number_of(s);
  uint64_t word = kNumber | n.index() << 8;
  if (spec.coefficient) word |= (1 + static_cast<uint64_t>(class_of(n))) << 16;
  if (spec.exponent) word |= static_cast<uint64_t>(tpu::lower::exponent_class(n)) << 16;
  hasher_.add(word);
  numbers.push_back(std::move(n));
}

void OpCall::add_static(const c10::IValue& v) {
  if (v.isNone()) {
    hasher_.add(kNone);
  } else if (v.isBool()) {
    hasher_.add(kBool | static_cast<uint64_t>(v.toBool()) << 8);
  } else if (v.isInt()) {
    hasher_.add(kInt);
    hasher_.add(static_cast<uint64_t>(v.toInt()));
  } else if (v.isSymInt()) {
    hasher_.add(kInt);
    hasher_.add(static_cast<uint64_t>(v.toSymInt().expect_int()));
  } else if (v.isDouble()) {
    hasher_.add(kDouble);
    hasher_.add(bits_of(v.toDouble()));
  } else if (v.isComplexDouble()) {
    hasher_.add(kComplex);
    hasher_.add(bits_of(v.toComplexDouble().real()));
    hasher_.add(bits_of(v.toComplexDouble().imag()));
  } else if (v.isString()) {
    hasher_.add(kString);
    hasher_.add(v.toStringView());
  } else if (v.isDevice()) {
    hasher_.add(kInt | static_cast<uint64_t>(v.toDevice().type()) << 8);
  } else if (v.isList()) {
    const auto list = v.toListRef();
    hasher_.add(kList + (list.size() << 8));
    for (const c10::IValue& e : list) add_static(e);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, op.name, ": an argument of type ", v.tagKind(),
                                " is not supported on tpu");
  }
}

// Which tensors share a storage decides validity and aliasing, so it is part of the key.
void OpCall::add_sharing() {
  if (tensors.size() <= kFewTensors) {
    for (size_t i = 1; i < tensors.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (tensors[i].cell && tensors[i].cell == tensors[j].cell) {
          hasher_.add(kShares | i << 8 | j << 32);
          break;
        }
      }
    }
    return;
  }
  std::unordered_map<const Cell*, size_t> first;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto [it, fresh] = first.try_emplace(tensors[i].cell, i);
    if (!fresh && tensors[i].cell) hasher_.add(kShares | i << 8 | it->second << 32);
  }
}

// A factory function says where its result goes.
void OpCall::find_device() {
  for (const c10::IValue& v : args) {
    if (v.isDevice() && v.toDevice().is_privateuseone()) {
      device = v.toDevice().has_index() ? v.toDevice().index() : current_device();
      return;
    }
  }
  TORCH_CHECK(false, op.name, ": expected at least one tensor on tpu");
}

tpu::ir::DType OpCall::first_dtype() const {
  return tensors.empty() ? tpu::ir::DType::kF32 : dtype_of(tensors[0].tensor->scalar_type());
}

void OpCall::add_extent() {
  extent = op.rule->traits.extent(numbers, first_dtype());
  hasher_.add(static_cast<uint64_t>(extent));
}

void OpCall::check_numbers() const {
  if (op.rule && op.rule->traits.check) op.rule->traits.check(numbers, first_dtype());
}

void OpCall::finish(c10::ArrayRef<c10::IValue> results) {
  torch::jit::drop(stack, op.args.size());
  for (const c10::IValue& r : results) stack.push_back(r);
}

}  // namespace torch_tpu
