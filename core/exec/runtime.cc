// SPDX-License-Identifier: Apache-2.0
#include "core/exec/runtime.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "core/exec/environment.h"
#include "core/exec/fork_guard.h"
#include "core/exec/hardware.h"

namespace tpu::exec {
namespace {

struct State {
  std::mutex lock;  // guards options, forks_watched, and starting
  RuntimeOptions options;
  bool forks_watched = false;
  std::atomic<bool> plugin_in_use{false};
  std::atomic<Runtime*> instance{nullptr};
};

// Leaked, like the Runtime: arrays and plugin threads may outlive static destruction.
State& state() {
  static State& s = *new State;
  return s;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string choose_plugin(const RuntimeOptions& options) {
  for (const std::string& choice :
       {options.plugin_path, environment_variable("TORCH_TPU_PJRT_PLUGIN"),
        environment_variable("TPU_LIBRARY_PATH")}) {
    if (!choice.empty()) return choice;
  }
  if (!options.tpu_plugin_path.empty() && Runtime::tpu_present()) return options.tpu_plugin_path;
  require(!options.cpu_plugin_path.empty(),
          "torch_tpu has no PJRT plugin: install xla-cpu-pjrt or set TORCH_TPU_PJRT_PLUGIN to a "
          "plugin's path");
  return options.cpu_plugin_path;
}

int wanted_devices(const RuntimeOptions& options) {
  if (options.device_count > 0) return options.device_count;
  const std::string text = environment_variable("TORCH_TPU_DEVICES");
  if (text.empty()) return 0;
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  require(*end == '\0' && n > 0 && n <= 1024,
          "TORCH_TPU_DEVICES: expected a number from 1 to 1024, got \"{}\"", text);
  return static_cast<int>(n);
}

// Temporaries of programs are outside our pool: without this, big ones are mapped and page-faulted
// anew by every run. Applies to the whole process.
void tune_malloc() {
  if (environment_variable("TORCH_TPU_MALLOC") == "0") return;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  mallopt(M_TOP_PAD, 256 << 20);
  mallopt(M_ARENA_MAX, 1);
}

std::unique_ptr<pjrt::Client> make_client(const std::string& path, int devices) {
  // A libtpu without a TPU would look for one by asking the cloud's metadata server.
  if (!Runtime::tpu_present()) setenv("TPU_SKIP_MDS_QUERY", "1", /*replace=*/0);
  const pjrt::Plugin& plugin = *value_or_throw(pjrt::Plugin::load(path));
  // The CPU plugin alone makes several devices of one host; device_count() promises one. Plugins
  // for real devices have as many as they have, and do not know the option.
  auto sized = pjrt::Client::create(plugin, {{"cpu_device_count", std::max(devices, 1)}});
  return sized.ok() ? std::move(sized).value() : value_or_throw(pjrt::Client::create(plugin));
}

// "TPU v5 lite" is sold as v5e, "TPU v6 lite" as v6e, and "TPU v5" as v5p.
std::string product_name(std::string kind) {
  constexpr std::string_view kLite = " lite";
  if (const size_t at = kind.find(kLite); at != kind.npos) kind.replace(at, kLite.size(), "e");
  return kind == "TPU v5" ? "TPU v5p" : kind;
}

size_t default_memory_limit(const pjrt::Client& client, PJRT_Device* device) {
  if (computes_on_host(client)) return machine_memory() / 10 * 9;
  const auto reported = client.memory_limit(device);
  return reported.ok() ? reported.value() : std::numeric_limits<size_t>::max();
}

}  // namespace

struct Runtime::Impl {
  std::unique_ptr<pjrt::Client> client;
  bool cpu = false;
  cache::Store store;
  std::unique_ptr<Compiler> compiler;
  std::vector<std::unique_ptr<Device>> devices;

  explicit Impl(const RuntimeOptions& options) : store(options.cache_dir, options.cache_bytes) {}

  static bool in_forked_child();
};

// Only the forking thread exists in a child: a lock held by another one would never be released.
bool Runtime::Impl::in_forked_child() {
  State& s = state();
  new (&s.lock) std::mutex;
  if (Runtime* runtime = s.instance.load()) {
    for (const auto& device : runtime->impl_->devices) new (&device->queue_lock()) std::mutex;
  }
  return s.plugin_in_use.load();
}

Runtime::Runtime() : impl_(std::make_unique<Impl>(state().options)) {
  const RuntimeOptions& options = state().options;
  const int wanted = wanted_devices(options);
  impl_->client = make_client(choose_plugin(options), wanted);
  pjrt::Client& client = *impl_->client;
  impl_->cpu = computes_on_host(client);
  if (impl_->cpu) tune_malloc();
  const int available = static_cast<int>(client.devices().size());
  require(available > 0, "PJRT plugin {} has no device", client.plugin().path());
  require(wanted <= available, "{} TPU devices were asked for (TORCH_TPU_DEVICES), but {} has {}",
          wanted, client.plugin().path(), available);
  if (options.prepare != nullptr) options.prepare(client);
  impl_->compiler = std::make_unique<Compiler>(client, impl_->store);
  for (int i = 0; i < (wanted > 0 ? wanted : available); ++i) {
    impl_->devices.push_back(std::make_unique<Device>(*this, i));
    impl_->devices.back()->set_memory_limit(
        options.memory_limit > 0
            ? options.memory_limit
            : default_memory_limit(client, client.devices()[static_cast<size_t>(i)]));
  }
}

void Runtime::configure(RuntimeOptions options) {
  State& s = state();
  const std::lock_guard guard(s.lock);
  require(s.instance.load() == nullptr, "TPU options were set after the first use of a TPU device");
  s.options = std::move(options);
}

const RuntimeOptions& Runtime::options() { return state().options; }

Runtime& Runtime::instance() {
  State& s = state();
  if (out_of_service()) [[unlikely]]
    throw_status(out_of_service_status());
  if (Runtime* runtime = s.instance.load(std::memory_order_acquire)) [[likely]]
    return *runtime;
  const std::lock_guard guard(s.lock);
  if (Runtime* runtime = s.instance.load()) return *runtime;
  if (!std::exchange(s.forks_watched, true)) watch_forks(Impl::in_forked_child);
  s.plugin_in_use.store(true);
  try {
    s.instance.store(new Runtime, std::memory_order_release);
  } catch (...) {
    s.plugin_in_use.store(false);
    throw;
  }
  // Registered after the plugin's own exit handlers, so that it runs before them.
  std::atexit(shutdown);
  return *s.instance.load();
}

bool Runtime::started() { return state().instance.load() != nullptr; }
bool Runtime::in_bad_fork() { return in_forked_child(); }
bool Runtime::tpu_present() { return tpu_chips() > 0; }

int Runtime::device_count() {
  if (Runtime* runtime = state().instance.load()) {
    return static_cast<int>(runtime->impl_->devices.size());
  }
  const RuntimeOptions& options = state().options;
  if (const int wanted = wanted_devices(options); wanted > 0) return wanted;
  const bool tpu =
      !options.tpu_plugin_path.empty() && choose_plugin(options) == options.tpu_plugin_path;
  return tpu ? std::max(1, tpu_chips()) : 1;
}

void Runtime::shutdown() {
  State& s = state();
  Runtime* runtime = s.instance.load();
  if (runtime == nullptr || out_of_service()) return;
  // Launches still postponed then fail, unseen.
  runtime->impl_->compiler->abandon();
  for (const auto& device : runtime->impl_->devices) (void)device->mark()->await();
  pjrt::abandon_handles();
}

bool Runtime::is_cpu() const { return impl_->cpu; }
const std::string& Runtime::platform() const { return impl_->client->platform(); }
const std::string& Runtime::plugin_path() const { return impl_->client->plugin().path(); }

std::string Runtime::device_name(int index) const {
  if (impl_->cpu) return tpu_present() ? "XLA:CPU" : "XLA:CPU (no TPU found)";
  return product_name(
      impl_->client->device_kind(impl_->client->devices()[static_cast<size_t>(index)]));
}

Device& Runtime::device(int index) {
  const int count = static_cast<int>(impl_->devices.size());
  require(index >= 0 && index < count, "invalid device index {}: there are {} TPU devices", index,
          count);
  return *impl_->devices[static_cast<size_t>(index)];
}

Compiler& Runtime::compiler() { return *impl_->compiler; }
pjrt::Client& Runtime::client() { return *impl_->client; }

}  // namespace tpu::exec
