// SPDX-License-Identifier: Apache-2.0
#include "backend/plan_record.h"

#include "backend/device.h"

namespace torch_tpu {
namespace {

// Changes with any change of what is written below.
constexpr uint32_t kFormat = 2;

class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void field(const T& v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v));
  }
  void field(const std::string& s) {
    field(s.size());
    bytes_ += s;
  }
  template <class Range>
  void numbers(const Range& r) {
    field(r.size());
    for (const auto& v : r) field(v);
  }
  template <class T, class F>
  void list(const std::vector<T>& v, F&& each) {
    field(v.size());
    for (const T& e : v) each(e);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what Writer wrote; ok() is false once the bytes ran out.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void field(T& v) {
    if (rest_.size() < sizeof(v)) {
      ok_ = false;
      return;
    }
    std::memcpy(&v, rest_.data(), sizeof(v));
    rest_.remove_prefix(sizeof(v));
  }
  void field(std::string& s) {
    s.assign(rest_.substr(0, count()));
    rest_.remove_prefix(s.size());
  }
  template <class Range>
  void numbers(Range& r) {
    r.resize(count());
    for (auto& v : r) field(v);
  }
  template <class T, class F>
  void list(std::vector<T>& v, F&& each) {
    v.resize(count());
    for (T& e : v) each(e);
  }

 private:
  // No element takes less than a byte, so a damaged count cannot ask for much memory.
  size_t count() {
    size_t n = 0;
    field(n);
    if (n > rest_.size()) ok_ = false;
    return ok_ ? n : 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

// One description of the format serves both directions.
template <class Stream, class Spec>
void visit_spec(Stream& s, Spec& spec) {
  s.field(spec.dtype);
  s.numbers(spec.sizes);
  s.numbers(spec.strides);
}

template <class Stream, class T>
void visit_type(Stream& s, T& type) {
  s.field(type.dtype);
  s.numbers(type.dims);
}

template <class Stream, class L>
void visit_layout(Stream& s, L& layout) {
  const auto type = [&](auto& t) { visit_type(s, t); };
  s.list(layout.arrays, type);
  s.field(layout.words);
  s.numbers(layout.destinations);
  s.numbers(layout.aliases);
  s.list(layout.results, type);
  s.list(layout.checks, [&](auto& c) {
    s.field(c.kind);
    s.field(c.message);
  });
}

template <class Stream, class Form>
void visit_form(Stream& s, Form& f) {
  s.field(f.gather);
  s.numbers(f.merged);
  s.numbers(f.splits);
  for (auto* dims : {&f.reshaped, &f.starts, &f.lengths, &f.steps, &f.distinct, &f.permutation,
                     &f.broadcast_axes, &f.map.sizes, &f.map.strides}) {
    s.numbers(*dims);
  }
  s.field(f.map.dtype);
  s.field(f.map.offset);
}

template <class Stream, class P>
void visit_plan(Stream& s, P& plan) {
  const auto spec = [&](auto& r) { visit_spec(s, r); };
  s.list(plan.fresh, spec);
  s.numbers(plan.results);
  s.numbers(plan.resized);
  s.list(plan.resized_to, spec);
  s.numbers(plan.parameters);
  s.numbers(plan.words);
  s.numbers(plan.ranges);
  s.list(plan.positions, [&](auto& p) {
    s.field(p.tensor);
    s.field(p.first_slot);
    visit_form(s, p.form);
  });
  s.field(plan.random_blocks);
  s.list(plan.fallbacks, [&](auto& name) { s.field(name); });
}

}  // namespace

void store_plan(const Plan& plan, const tpu::Hash128& key) {
  Writer w;
  w.field(kFormat);
  visit_plan(w, plan);
  w.field(plan.program != nullptr);
  if (plan.program) {
    w.field(plan.program->identity);
    visit_layout(w, plan.program->layout);
  }
  runtime().compiler().store_record(key, w.take());
}

std::unique_ptr<Plan> load_plan(const tpu::Hash128& key) {
  const auto bytes = runtime().compiler().find_record(key);
  if (!bytes) return nullptr;
  Reader r(*bytes);
  uint32_t format = 0;
  r.field(format);
  if (!r.ok() || format != kFormat) return nullptr;
  auto plan = std::make_unique<Plan>();
  visit_plan(r, *plan);
  bool has_program = false;
  r.field(has_program);
  if (!r.ok()) return nullptr;
  if (!has_program) return r.at_end() ? std::move(plan) : nullptr;
  tpu::Hash128 identity;
  tpu::exec::ProgramLayout layout;
  r.field(identity);
  visit_layout(r, layout);
  if (!r.at_end()) return nullptr;
  plan->program = runtime().compiler().find(identity, layout);
  return plan->program ? std::move(plan) : nullptr;
}

}  // namespace torch_tpu
