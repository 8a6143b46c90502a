// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/exec/device.h"
#include "core/exec/device_impl.h"
#include "core/exec/fork_guard.h"
#include "core/exec/inline_array.h"

namespace tpu::exec {
namespace {

// Launches with more values than these allocate for their lists.
constexpr size_t kInlineArguments = 24;
constexpr size_t kInlineResults = 16;
constexpr size_t kInlineDestinations = 4;

Status mismatch(const Launch& launch, std::string what) {
  return {Code::kInvalidArgument, fmt::format("{}: {}", launch.op, what)};
}

Status check_counts(const Launch& launch, size_t results) {
  const ProgramLayout& layout = launch.program->layout;
  if (launch.arguments.size() == layout.arrays.size() &&
      launch.words.size() == static_cast<size_t>(layout.words) && results == layout.results.size())
      [[likely]] {
    return {};
  }
  return mismatch(launch,
                  fmt::format("the program takes {} arrays and {} words and gives {} results, the "
                              "launch has {}, {} and {}",
                              layout.arrays.size(), layout.words, layout.results.size(),
                              launch.arguments.size(), launch.words.size(), results));
}

// PJRT itself compares byte sizes only and would run f32 code on integers.
Status check_argument(const Launch& launch, size_t i, const Device& device) {
  const Array& argument = *launch.arguments[i];
  const ir::Type& expected = launch.program->layout.arrays[i];
  if (argument.type() != expected) [[unlikely]] {
    return mismatch(launch, fmt::format("expected argument {} to be {}, got {}", i, expected.str(),
                                        argument.type().str()));
  }
  if (&argument.device() != &device) [[unlikely]] {
    return mismatch(launch, fmt::format("expected argument {} on device {}, got device {}", i,
                                        device.index(), argument.device().index()));
  }
  return {};
}

Status check_arguments(const Launch& launch, const Device& device) {
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    TPU_RETURN_IF_ERROR(check_argument(launch, i, device));
  }
  return {};
}

// What a launch does with the memory of its arguments.
class Donation {
 public:
  explicit Donation(const Launch& launch)
      : launch_(launch), uses_(active(launch) ? launch.arguments.size() : 0), kept_(uses_.size()) {}

  Status plan() {
    if (uses_.size() == 0) return {};
    for (const ir::Graph::Alias& alias : launch_.program->layout.aliases) {
      uses_[static_cast<size_t>(alias.parameter)] = kMayDonate;
    }
    for (const int i : launch_.donated) {
      const auto at = static_cast<size_t>(i);
      if (at >= uses_.size() || uses_[at] != kMayDonate) {
        return mismatch(launch_, fmt::format("argument {} cannot be donated", i));
      }
      uses_[at] = kDonate;
      donated_bytes_ += launch_.arguments[at]->bytes();
    }
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i] == kMayDonate) kept_[kept_count_++] = static_cast<int64_t>(i);
    }
    return {};
  }

  // Arguments that the program could overwrite but must not.
  std::span<const int64_t> kept() { return kept_.first(kept_count_); }
  size_t donated_bytes() const { return donated_bytes_; }

 private:
  enum Use : uint8_t { kRead, kMayDonate, kDonate };
  static bool active(const Launch& launch) {
    return !launch.program->layout.aliases.empty() || !launch.donated.empty();
  }

  const Launch& launch_;
  InlineArray<Use, kInlineArguments> uses_;
  InlineArray<int64_t, kInlineArguments> kept_;
  size_t kept_count_ = 0;
  size_t donated_bytes_ = 0;
};

// The plugin's arguments of a launch: arrays, words, destinations.
class Arguments {
 public:
  explicit Arguments(const Launch& launch)
      : launch_(launch),
        layout_(launch.program->layout),
        handles_(layout_.arrays.size() + (layout_.words > 0) + layout_.destinations.size()),
        destinations_(layout_.destinations.size()) {}

  Status add_arrays() {
    for (size_t i = 0; i < launch_.arguments.size(); ++i) {
      const Array& argument = *launch_.arguments[i];
      if (!argument.buffer()) [[unlikely]] {
        return argument.missing().with_context(fmt::format("{}: argument {}", launch_.op, i));
      }
      handles_[next_++] = argument.buffer().get();
    }
    return {};
  }

  Status add_words(WordCache& cache) {
    if (layout_.words == 0) return {};
    auto words = cache.get(launch_.words, long_words_);
    if (!words.ok()) return words.status();
    handles_[next_++] = words.value();
    return {};
  }

  template <class Allocate>
  Status add_destinations(Allocate allocate) {
    for (size_t i = 0; i < layout_.destinations.size(); ++i) {
      auto buffer = allocate(layout_.results[static_cast<size_t>(layout_.destinations[i])]);
      if (!buffer.ok()) return buffer.status();
      destinations_[i] = std::move(buffer).value();
      handles_[next_++] = destinations_[i].get();
    }
    return {};
  }

  std::span<PJRT_Buffer* const> span() { return handles_.span(); }

 private:
  const Launch& launch_;
  const ProgramLayout& layout_;
  InlineArray<PJRT_Buffer*, kInlineArguments> handles_;
  InlineArray<pjrt::Buffer, kInlineDestinations> destinations_;
  pjrt::Buffer long_words_;
  size_t next_ = 0;
};

// Room for what the launch allocates beyond the memory that it is given.
Status admit(const Program& program, const Donation& donation, Ledger& ledger) {
  const size_t wanted = program.result_bytes + program.temp_bytes;
  const size_t given = donation.donated_bytes();
  return ledger.admit(wanted > given ? wanted - given : 0);
}

// So often in a row a program has to finish at once until that is taken for granted.
constexpr uint8_t kSureInline = 16;

// Whether the launch's completion must be asked for. Not if the program runs on the caller, which
// the plugin decides by its content, and its inputs are there.
bool must_watch(const Program& program, bool device_idle) {
  return !device_idle || program.may_fail || !program.layout.checks.empty() ||
         program.finished_at_once.load(std::memory_order_relaxed) < kSureInline;
}

void note_outcome(const Program& program, bool finished) {
  auto& count = program.finished_at_once;
  const uint8_t seen = count.load(std::memory_order_relaxed);
  if (!finished) {
    count.store(0, std::memory_order_relaxed);
  } else if (seen < kSureInline) {
    count.store(seen + 1, std::memory_order_relaxed);
  }
}

}  // namespace

Status Device::launch(const Launch& launch, std::span<ArrayRef> results) {
  if (out_of_service()) [[unlikely]]
    return out_of_service_status();
  TPU_RETURN_IF_ERROR(check_counts(launch, results.size()));
  TPU_RETURN_IF_ERROR(check_arguments(launch, *this));
  const bool in_turn = impl_->postponed.empty() || run_postponed();
  if (!in_turn || !launch.program->ready()) [[unlikely]] {
    if (may_postpone(*launch.program)) {
      postpone(launch, results);
      return {};
    }
    await_turn(*launch.program);
  }
  InlineArray<pjrt::Buffer, kInlineResults> buffers(results.size());
  TPU_RETURN_IF_ERROR(run(launch, buffers.span()));
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] =
        ArrayRef(new Array(*this, launch.program->layout.results[i], std::move(buffers[i])));
  }
  return {};
}

Status Device::run(const Launch& launch, std::span<pjrt::Buffer> results) {
  const Program& program = *launch.program;
  TPU_RETURN_IF_ERROR(program.wait());
  Arguments arguments(launch);
  TPU_RETURN_IF_ERROR(arguments.add_arrays());
  Donation donation(launch);
  TPU_RETURN_IF_ERROR(donation.plan());
  TPU_RETURN_IF_ERROR(admit(program, donation, impl_->ledger));
  TPU_RETURN_IF_ERROR(arguments.add_words(impl_->words));
  TPU_RETURN_IF_ERROR(
      arguments.add_destinations([&](const ir::Type& type) { return impl_->destination(type); }));

  const bool checked = !program.layout.checks.empty();
  InlineArray<PJRT_Buffer*, kInlineResults> outputs(results.size() + checked);
  const bool device_idle = impl_->flights.none();
  const bool watch = must_watch(program, device_idle);
  PJRT_Event* complete = nullptr;
  TPU_RETURN_IF_ERROR(program.executable.execute({.arguments = arguments.span(),
                                                  .non_donatable = donation.kept(),
                                                  .device = impl_->device,
                                                  .results = outputs.span(),
                                                  .complete = watch ? &complete : nullptr}));
  for (const int i : launch.donated) launch.arguments[static_cast<size_t>(i)]->empty();
  const pjrt::Api& api = impl_->client.api();
  for (size_t i = 0; i < results.size(); ++i) results[i] = pjrt::Buffer(&api, outputs[i]);
  const bool finished = !watch || impl_->flights.add(pjrt::Event(&api, complete));
  if (watch && device_idle) note_outcome(program, finished);
  if (checked) keep_checks(launch, pjrt::Buffer(&api, outputs[results.size()]), finished);
  return {};
}

void Device::keep_checks(const Launch& launch, pjrt::Buffer result, bool finished) {
  if (finished && impl_->checks.passed(result)) return;
  impl_->checks.add(
      {std::move(result), launch.program->layout.checks, std::string(launch.op), launch.origin});
}

}  // namespace tpu::exec
