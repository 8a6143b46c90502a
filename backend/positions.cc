// SPDX-License-Identifier: Apache-2.0
#include "backend/positions.h"

namespace torch_tpu {
namespace {

constexpr size_t kDistinct = 9;
constexpr size_t kProgression = 5;

bool is_progression(const std::vector<int64_t>& v) {
  for (size_t i = 2; i < v.size(); ++i) {
    if (v[i] - v[i - 1] != v[1] - v[0]) return false;
  }
  return true;
}

// Views of one storage in one call: their overlap decides whether the call is valid at all.
bool shares_storage(const OpCall& call) {
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (call.tensors[i].cell && call.tensors[i].cell == call.tensors[j].cell) return true;
    }
  }
  return false;
}

// The view as one whose position may be an operand; nullopt if it has no sliced form.
std::optional<Plan::Position> moving_view(const OpCall& call, int tensor) {
  const TensorArg& t = call.tensors[static_cast<size_t>(tensor)];
  if (t.out || !t.cell->array) return std::nullopt;
  auto form = tpu::lower::decode_view(t.cell->array->type(), view_map_of(*t.tensor));
  if (form.gather || !tpu::lower::starts_for_offset(form, t.tensor->storage_offset())) {
    return std::nullopt;
  }
  return Plan::Position{tensor, 0, std::move(form)};
}

// The decoded structure: equal for offsets that differ only in their starts.
void add_structure(tpu::Hasher& h, const tpu::lower::ViewForm& form) {
  h.add("moves");
  for (const tpu::ir::Dims* d : {&form.merged, &form.reshaped, &form.lengths, &form.steps,
                                 &form.distinct, &form.permutation, &form.broadcast_axes}) {
    h.add(d->size());
    for (const int64_t v : *d) h.add(static_cast<uint64_t>(v));
  }
  for (const auto& s : form.splits) {
    for (const int64_t v : {s.axis, s.start, s.size, s.inner}) h.add(static_cast<uint64_t>(v));
  }
}

// call.offsets() has one entry per device tensor; this maps it to tensor numbers.
std::vector<int> device_tensors(const OpCall& call) {
  std::vector<int> out;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (call.tensors[i].cell) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace

PositionHistory& PositionHistory::instance() {
  static auto* history = new PositionHistory;
  return *history;
}

std::vector<int> PositionHistory::changing_tensors(const OpCall& call) {
  const Offsets now(call.offsets().begin(), call.offsets().end());
  const std::vector<int> numbers = device_tensors(call);
  std::vector<int> changing;
  const std::lock_guard lock(mutex_);
  std::vector<Offsets>& seen = seen_[call.key_without_offsets()];
  if (seen.size() < kDistinct) seen.push_back(now);
  for (size_t t = 0; t < now.size(); ++t) {
    std::vector<int64_t> values;
    for (const Offsets& o : seen) {
      if (std::find(values.begin(), values.end(), o[t]) == values.end()) values.push_back(o[t]);
    }
    const bool changes =
        values.size() >= kDistinct || (values.size() >= kProgression && is_progression(values));
    if (changes) changing.push_back(numbers[t]);
  }
  return changing;
}

Moving PositionHistory::moving_views(const OpCall& call) {
  const std::vector<int> changing = changing_tensors(call);
  Moving moving;
  if (changing.empty() || shares_storage(call)) return moving;
  for (const int n : changing) {
    if (auto view = moving_view(call, n)) moving.push_back(std::move(*view));
  }
  return moving;
}

tpu::Hash128 PositionHistory::key(const OpCall& call, const Moving& moving) {
  tpu::Hasher h;
  h.add(call.key_without_offsets());
  for (const int n : device_tensors(call)) {
    const auto at = std::find_if(moving.begin(), moving.end(),
                                 [&](const Plan::Position& p) { return p.tensor == n; });
    if (at != moving.end()) {
      add_structure(h, at->form);
    } else {
      h.add(static_cast<uint64_t>(call.tensors[static_cast<size_t>(n)].tensor->storage_offset()));
    }
  }
  return h.finish();
}

}  // namespace torch_tpu
