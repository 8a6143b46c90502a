// SPDX-License-Identifier: Apache-2.0
// Unique elements and rows. Equal neighbours of a sorted (or given) sequence form runs; the number
// of runs, read from the device, is the result's size. A NaN equals nothing, itself included.
#include <ATen/WrapDimUtils.h>

#include "backend/clean_state.h"
#include "backend/dynamic_shapes.h"

namespace torch_tpu {
namespace {

using Result = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor changes(const at::Tensor& x) {
  const int64_t n = x.size(0);
  return x.narrow(0, 1, n - 1).ne(x.narrow(0, 0, n - 1));
}

struct Runs {
  at::Tensor number;  // of each element's run
  at::Tensor first;   // position of each run's first element
  at::Tensor length;
};

// `change[i]`: element i + 1 differs from element i.
Runs runs_of(const at::Tensor& change) {
  const int64_t n = change.size(0) + 1;
  const at::Tensor begins = at::cat({at::ones({1}, change.options()), change});
  const int64_t count = count_true(begins);
  const at::Tensor edges = at::nonzero_static(begins, bucket(count + 1), n).select(1, 0);
  const at::Tensor first = edges.narrow(0, 0, count);
  return {begins.cumsum(0, at::kLong).sub_(1), first, edges.narrow(0, 1, count).sub(first)};
}

// The runs of a sequence once sorted, and the position that each sorted element had.
struct SortedRuns {
  Runs runs;
  at::Tensor order;
  at::Tensor inverse() const { return at::empty_like(order).scatter_(0, order, runs.number); }
};

SortedRuns sorted_runs(const at::Tensor& x) {
  const auto [values, order] = x.sort(/*stable=*/true, 0, /*descending=*/false);
  return {runs_of(changes(values)), order};
}

// Within each column of x, how many distinct lesser elements there are.
at::Tensor ranks_in_columns(const at::Tensor& x) {
  const auto [values, order] = x.sort(/*stable=*/true, 0, /*descending=*/false);
  const at::Tensor first = at::zeros({1, x.size(1)}, x.options().dtype(at::kBool));
  const at::Tensor ranks = at::cat({first, changes(values)}).cumsum(0, at::kLong);
  return at::empty_like(order).scatter_(0, order, ranks);
}

// The rank of each row of x in lexicographic order: neighbouring columns of ranks are joined until
// one is left.
at::Tensor ranks_of_rows(const at::Tensor& x) {
  at::Tensor ranks = ranks_in_columns(x);
  while (ranks.size(1) > 1) {
    const int64_t paired = ranks.size(1) / 2 * 2;
    at::Tensor joined = ranks.slice(1, 0, paired, 2).mul(x.size(0)) + ranks.slice(1, 1, paired, 2);
    if (paired < ranks.size(1)) joined = at::cat({joined, ranks.narrow(1, paired, 1)}, 1);
    ranks = ranks_in_columns(joined);
  }
  return ranks.select(1, 0);
}

at::Tensor no_positions(const at::Tensor& self, at::IntArrayRef sizes = {0}) {
  return at::empty(sizes, self.options().dtype(at::kLong));
}

void require_ordered(const at::Tensor& self, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex() && !c10::isFloat8Type(self.scalar_type()), "\"",
                              kernel, "\" not implemented for '", self.scalar_type(), "'");
}

Result unique_elements(const at::Tensor& self, bool, bool return_inverse, bool return_counts) {
  require_ordered(self, "unique");
  const CleanState clean;
  const at::Tensor none = no_positions(self);
  if (self.numel() == 0) {
    return {at::empty({0}, self.options()),
            return_inverse ? no_positions(self, self.sizes()) : none, none};
  }
  const at::Tensor flat = self.reshape({-1});
  const SortedRuns sorted = sorted_runs(flat);
  const Runs& runs = sorted.runs;
  return {flat.index_select(0, sorted.order.index_select(0, runs.first)),
          return_inverse ? sorted.inverse().view(self.sizes()) : none,
          return_counts ? runs.length : none};
}

std::tuple<at::Tensor, at::Tensor> unique_without_counts(const at::Tensor& self, bool sorted,
                                                         bool return_inverse) {
  const auto [values, inverse, counts] = unique_elements(self, sorted, return_inverse, false);
  return {values, inverse};
}

// self as rows along `dim`; nothing if there are none.
std::optional<at::Tensor> rows_along(const at::Tensor& self, int64_t dim) {
  const auto empty = std::count(self.sizes().begin(), self.sizes().end(), 0);
  TORCH_CHECK(empty <= 1,
              "Number of zero sized dimensions is more than one, so unique cannot be applied ");
  if (empty == 1) {
    TORCH_CHECK(self.size(dim) == 0,
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                "applied");
    return std::nullopt;
  }
  return self.movedim(dim, 0).reshape({self.size(dim), -1});
}

// The given rows of self, which lie densest in memory as PyTorch's do.
at::Tensor chosen_rows(const at::Tensor& self, int64_t dim, const at::Tensor& rows) {
  return self.movedim(dim, 0).index_select(0, rows).movedim(0, dim);
}

Result unique_rows(const at::Tensor& self, int64_t dim, bool, bool, bool) {
  dim = at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  require_ordered(self, "unique_dim");
  const CleanState clean;
  const auto rows = rows_along(self, dim);
  if (!rows) return {self.clone(), no_positions(self), no_positions(self)};
  const at::Tensor ranks = ranks_of_rows(*rows);
  const SortedRuns sorted = sorted_runs(ranks);
  return {chosen_rows(self, dim, sorted.order.index_select(0, sorted.runs.first)), ranks,
          sorted.runs.length};
}

Result runs_of_rows(const at::Tensor& self, int64_t dim, bool, bool) {
  dim = at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  require_ordered(self, "unique_dim");
  const CleanState clean;
  const auto rows = rows_along(self, dim);
  if (!rows) return {self.clone(), no_positions(self), no_positions(self)};
  const Runs runs = runs_of(changes(*rows).any(1));
  return {chosen_rows(self, dim, runs.first), runs.number, runs.length};
}

Result runs_of_elements(const at::Tensor& self, bool return_inverse, bool return_counts,
                        std::optional<int64_t> dim) {
  if (dim && !(*dim == 0 && self.dim() == 1)) {
    return runs_of_rows(self, *dim, return_inverse, return_counts);
  }
  require_ordered(self, "unique");
  const CleanState clean;
  const at::Tensor none = no_positions(self);
  if (self.numel() == 0) {
    return {at::empty({0}, self.options()),
            return_inverse ? no_positions(self, self.sizes()) : none, none};
  }
  const at::Tensor flat = self.reshape({-1});
  const Runs runs = runs_of(changes(flat));
  return {flat.index_select(0, runs.first), return_inverse ? runs.number.view(self.sizes()) : none,
          return_counts ? runs.length : none};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", &unique_without_counts);
  m.impl("_unique2", &unique_elements);
  m.impl("unique_dim", &unique_rows);
  m.impl("unique_consecutive", &runs_of_elements);
  m.impl("unique_dim_consecutive", &runs_of_rows);
}

}  // namespace torch_tpu
