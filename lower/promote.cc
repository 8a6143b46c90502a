// SPDX-License-Identifier: Apache-2.0
#include "lower/promote.h"

#include "core/hlo/shape.h"

#include <algorithm>
#include <numeric>

namespace tpu::lower {
namespace {

// 0 bool, 1 integer, 2 float, 3 complex.
int category(DType t) {
  if (ir::is_bool(t)) return 0;
  if (ir::is_complex(t)) return 3;
  return ir::is_float(t) ? 2 : 1;
}

DType promote_integers(DType a, DType b) {
  const size_t wa = ir::byte_size(a);
  const size_t wb = ir::byte_size(b);
  if (ir::is_signed_integer(a) == ir::is_signed_integer(b)) return wa >= wb ? a : b;
  const DType s = ir::is_signed_integer(a) ? a : b;
  const DType u = ir::is_signed_integer(a) ? b : a;
  if (ir::byte_size(u) == 1 && ir::byte_size(s) == 1) return DType::kS16;
  require(ir::byte_size(u) == 1,
          "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} "
          "and {}",
          ir::short_name(a), ir::short_name(b));
  return s;
}

DType promote_floats(DType a, DType b) {
  require(ir::byte_size(a) > 1 && ir::byte_size(b) > 1,
          "Promotion for Float8 Types is not supported, attempted to promote {} and {}",
          ir::short_name(a), ir::short_name(b));
  const size_t wa = ir::byte_size(a);
  const size_t wb = ir::byte_size(b);
  if (wa == wb) return DType::kF32;  // f16 with bf16
  return wa > wb ? a : b;
}

DType promote_complex(DType a, DType b) {
  const bool wide = a == DType::kC128 || b == DType::kC128 || a == DType::kF64 || b == DType::kF64;
  return wide ? DType::kC128 : DType::kC64;
}

struct ResultType {
  std::optional<DType> dimensioned, zero_dim, wrapped;

  static void merge(std::optional<DType>& into, DType t) {
    into = into ? promote_types(*into, t) : t;
  }
  static std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher) return lower;
    if (!lower || category(*higher) >= category(*lower)) return higher;
    return promote_types(*higher, *lower);
  }
  DType result() const {
    const auto t = combine(combine(dimensioned, zero_dim), wrapped);
    TPU_CHECK(t, "promotion needs at least one operand");
    return *t;
  }
};

// What a Python number of this type counts as: f64 stands for "a float", c128 for "a complex".
DType wrapped_type(DType t) {
  if (ir::is_complex(t)) return DType::kC64;
  return ir::is_float(t) ? DType::kF32 : t;
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const int ca = category(a);
  const int cb = category(b);
  if (ca == 3 || cb == 3) return promote_complex(a, b);
  if (ca != cb) return ca > cb ? a : b;
  return ca == 1 ? promote_integers(a, b) : promote_floats(a, b);
}

DType result_type(std::span<const Value> values) {
  ResultType state;
  for (const Value& v : values) {
    if (v.graph().is_wrapped(v)) {
      ResultType::merge(state.wrapped, wrapped_type(v.dtype()));
    } else {
      ResultType::merge(v.rank() > 0 ? state.dimensioned : state.zero_dim, v.dtype());
    }
  }
  return state.result();
}

DType result_type(Value x, const Scalar& s) { return result_type(Values{x, number(s)}); }

DType float_type(DType t) { return ir::is_float(t) || ir::is_complex(t) ? t : DType::kF32; }

Value to_float(Value x) { return hlo::convert(x, float_type(x.dtype())); }

Dims broadcast_dims(std::span<const Value> values) {
  Dims dims;
  for (const Value& v : values) {
    const Dims& d = v.dims();
    if (d.size() > dims.size()) dims.insert(dims.begin(), d.size() - dims.size(), 1);
    const size_t shift = dims.size() - d.size();
    for (size_t i = 0; i < d.size(); ++i) {
      int64_t& out = dims[i + shift];
      require(out == d[i] || out == 1 || d[i] == 1,
              "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton "
              "dimension {}",
              out, d[i], i + shift);
      if (out == 1) out = d[i];
    }
  }
  return dims;
}

Values align_as(const Values& values, DType t) {
  const Dims dims = broadcast_dims(values);
  Values out;
  for (const Value& v : values) out.push_back(hlo::broadcast_to(hlo::convert(v, t), dims));
  return out;
}

Values align(const Values& values) { return align_as(values, result_type(values)); }

Values align_compute(const Values& values) {
  return align_as(values, ir::compute_type(result_type(values)));
}

Value number(const Scalar& s) {
  DType t = DType::kC128;
  switch (s.kind()) {
    case Scalar::Kind::kBool:
      t = DType::kPred;
      break;
    case Scalar::Kind::kInt:
      t = DType::kS64;
      break;
    case Scalar::Kind::kFloat:
      t = DType::kF64;
      break;
    case Scalar::Kind::kComplex:
      break;
  }
  const Value v = s.as(t);
  v.graph().mark_wrapped(v);
  return v;
}

int64_t wrap_axis(int64_t axis, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (axis < -n || axis >= n) {
    fail(ErrorKind::kIndex,
         "Dimension out of range (expected to be in range of [{}, {}], but got {})", -n, n - 1,
         axis);
  }
  return axis < 0 ? axis + n : axis;
}

Dims wrap_axes(const Dims& axes, int64_t rank) {
  Dims out;
  for (const int64_t a : axes) {
    const int64_t w = wrap_axis(a, rank);
    require(std::find(out.begin(), out.end(), w) == out.end(),
            "dim {} appears multiple times in the list of dims", w);
    out.push_back(w);
  }
  return out;
}

Dims all_axes(int64_t rank) {
  Dims axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Dims permuted(ir::DimSpan dims, const Dims& permutation) {
  Dims out;
  for (const int64_t p : permutation) out.push_back(dims[static_cast<size_t>(p)]);
  return out;
}

}  // namespace tpu::lower
