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

bool can_move(const TensorArg& t) {
  if (t.out || !t.cell->array) return false;
  const auto form = tpu::lower::decode_view(t.cell->array->type(), view_map_of(*t.tensor));
  return !form.gather && tpu::lower::starts_for_offset(form, t.tensor->storage_offset());
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

DynamicTensors PositionHistory::dynamic_tensors(const OpCall& call) {
  const Offsets now(call.offsets().begin(), call.offsets().end());
  DynamicTensors dynamic;
  {
    const std::lock_guard lock(mutex_);
    History& h = histories_[call.key_without_offsets()];
    if (h.seen.size() < kDistinct) h.seen.push_back(now);
    const std::vector<int> numbers = device_tensors(call);
    for (size_t t = 0; t < now.size(); ++t) {
      std::vector<int64_t> values;
      for (const Offsets& o : h.seen) {
        if (std::find(values.begin(), values.end(), o[t]) == values.end()) values.push_back(o[t]);
      }
      const bool moves =
          values.size() >= kDistinct || (values.size() >= kProgression && is_progression(values));
      if (moves) dynamic.push_back(numbers[t]);
    }
  }
  if (dynamic.empty() || shares_storage(call)) return {};
  std::erase_if(dynamic, [&](int n) { return !can_move(call.tensors[static_cast<size_t>(n)]); });
  return dynamic;
}

tpu::Hash128 PositionHistory::key(const OpCall& call, const DynamicTensors& dynamic) {
  tpu::Hasher h;
  h.add(call.key_without_offsets());
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const TensorArg& t = call.tensors[i];
    if (!t.cell) continue;
    const bool moves =
        std::find(dynamic.begin(), dynamic.end(), static_cast<int>(i)) != dynamic.end();
    if (!moves) {
      h.add(static_cast<uint64_t>(t.tensor->storage_offset()));
      continue;
    }
    // The decoded structure: equal for offsets that differ only in their starts.
    const auto form = tpu::lower::decode_view(t.cell->array->type(), view_map_of(*t.tensor));
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
  return h.finish();
}

}  // namespace torch_tpu
