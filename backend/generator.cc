// SPDX-License-Identifier: Apache-2.0
#include "backend/generator.h"

#include <c10/core/GeneratorImpl.h>

#include "backend/device.h"

namespace torch_tpu {
namespace {

constexpr size_t kStateBytes = 16;

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index)
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, index),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom(true));
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == static_cast<int64_t>(kStateBytes),
                "RNG state is wrong size: expected 16 bytes (seed and offset), got ",
                state.numel());
    const auto* bytes = static_cast<const uint8_t*>(state.data());
    std::memcpy(&seed_, bytes, sizeof(seed_));
    std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::empty({static_cast<int64_t>(kStateBytes)}, at::kByte);
    auto* bytes = state.data_ptr<uint8_t>();
    std::memcpy(bytes, &seed_, sizeof(seed_));
    std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
    return state.getIntrusivePtr();
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override {
    set_current_seed(state->current_seed());
    set_offset(state->get_offset());
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
  }

  RandomTicket take(int64_t blocks) {
    const std::lock_guard lock(mutex_);
    const RandomTicket ticket{seed_, offset_};
    offset_ += static_cast<uint64_t>(blocks);
    return ticket;
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->set_current_seed(seed_);
    copy->set_offset(offset_);
    return copy;
  }
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  // Sized once: the number of devices does not change in a process.
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> all;
    for (int i = 0; i < device_count(); ++i) {
      all.push_back(new_generator(static_cast<c10::DeviceIndex>(i)));
    }
    return all;
  }();
  const c10::DeviceIndex i = index < 0 ? current_device() : index;
  TORCH_CHECK(static_cast<size_t>(i) < generators.size(), "invalid device index ",
              static_cast<int>(i), ": there are ", generators.size(), " tpu devices");
  return generators[static_cast<size_t>(i)];
}

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<Generator>(index < 0 ? current_device() : index);
}

RandomTicket draw(const std::optional<at::Generator>& generator, c10::DeviceIndex index,
                  int64_t blocks) {
  const at::Generator& g =
      generator && generator->defined() ? *generator : default_generator(index);
  TORCH_CHECK(g.device().type() == c10::DeviceType::PrivateUse1,
              "Expected a 'tpu' device type for "
              "generator but found '",
              g.device().type(), "'");
  return static_cast<Generator*>(g.unsafeGetGeneratorImpl())->take(blocks);
}

}  // namespace torch_tpu
