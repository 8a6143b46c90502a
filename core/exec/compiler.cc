// SPDX-License-Identifier: Apache-2.0
#include "core/exec/compiler.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <unordered_map>

#include "core/cache/lru.h"
#include "core/exec/compile_pool.h"
#include "core/exec/environment.h"
#include "core/exec/fork_guard.h"
#include "core/exec/option_filter.h"
#include "core/exec/option_sets.h"

namespace tpu::exec {
namespace {

constexpr size_t kProgramCacheBytes = size_t{512} << 20;
constexpr size_t kRecordCacheBytes = size_t{64} << 20;
constexpr size_t kMostEvents = 1000;
// What a loaded program of a few ops weighs beside its code.
constexpr size_t kProgramOverhead = 20 << 10;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Hash128 tagged(const Hash128& environment, const Hash128& key, std::string_view tag) {
  Hasher hasher;
  hasher.add(environment);
  hasher.add(key);
  hasher.add(tag);
  return hasher.finish();
}

// Texts of checks are not in the module but in the layout, so they are hashed with it.
Hash128 program_identity(const Hash128& machine, const std::string& text,
                         const pjrt::CompileOptions& options, const ProgramLayout& layout) {
  Hasher hasher;
  hasher.add(machine);
  hasher.add(hash_bytes(text));
  hasher.add(options.serialize());
  for (const ir::Check& c : layout.checks) {
    hasher.add(static_cast<uint64_t>(c.kind));
    hasher.add(c.message);
  }
  return hasher.finish();
}

void check_layout(const ir::Graph::Module& module, const ProgramLayout& layout) {
  const auto result = [&](int i) { return layout.results[static_cast<size_t>(i)]; };
  std::vector<ir::Type> parameters = layout.arrays;
  if (layout.words > 0) parameters.push_back({ir::DType::kS32, {layout.words}});
  for (const int d : layout.destinations) parameters.push_back(result(d));
  TPU_CHECK(module.parameters == parameters, "the layout describes the module's parameters");
  std::vector<ir::Type> results = layout.results;
  if (!layout.checks.empty()) results.push_back({ir::DType::kS64, {2}});
  TPU_CHECK(module.results == results, "the layout describes the module's results");
  for (const ir::Graph::Alias& a : layout.aliases) {
    TPU_CHECK(a.parameter >= 0 && static_cast<size_t>(a.parameter) < layout.arrays.size(),
              "only arrays are donated");
  }
}

// What a launch must know of a program beside its layout. On disk it precedes the plugin's own
// serialization of the executable.
struct Facts {
  uint64_t temp_bytes = 0;
  uint64_t may_fail = 0;

  void give(Program& program) const {
    program.temp_bytes = temp_bytes;
    program.may_fail = may_fail != 0;
  }
};

Facts learn_facts(const std::string& text, const pjrt::Executable& executable) {
  const auto use = executable.memory_use();
  return {use.ok() ? use->temp_bytes : 0, text.find("custom_call") != text.npos};
}

std::string pack(const Facts& facts, const std::string& executable) {
  std::string bytes(sizeof(facts), '\0');
  std::memcpy(bytes.data(), &facts, sizeof(facts));
  return bytes + executable;
}

// Leaves the executable in `bytes`.
Facts unpack(std::string& bytes) {
  Facts facts;
  std::memcpy(&facts, bytes.data(), sizeof(facts));
  bytes.erase(0, sizeof(facts));
  return facts;
}

// TORCH_TPU_DUMP names a folder for the text of every program that is not in memory.
void dump(const Compiler::Request& request, const Hash128& identity) {
  static const char* const folder = std::getenv("TORCH_TPU_DUMP");
  if (folder == nullptr || *folder == '\0') return;
  std::ofstream file(fmt::format("{}/{}.mlir", folder, identity.hex()));
  file << "// " << request.op << "(" << request.detail << ")\n" << request.module.text;
}

}  // namespace

struct Compiler::Impl {
  pjrt::Client& client;
  cache::Store& store;
  const bool cpu;
  const Hash128 machine;
  const Hash128 environment;
  OptionFilter filter;

  std::mutex lock;  // guards all below but the pool; not held while compiling, loading or storing
  cache::Lru<Hash128, ProgramRef, Hash128Hasher> programs{kProgramCacheBytes};
  cache::Lru<Hash128, std::string, Hash128Hasher> records{kRecordCacheBytes};
  std::unordered_map<Hash128, ProgramRef, Hash128Hasher> running;
  CacheStats stats;
  std::deque<CompileEvent> events;
  std::atomic<bool> abandoned = false;
  CompilePool pool;  // the last member: its threads use the others

  Impl(pjrt::Client& client, cache::Store& store)
      : client(client),
        store(store),
        cpu(computes_on_host(client)),
        machine(machine_identity(client)),
        environment(tagged(machine, build_identity(), "environment")),
        filter(client) {}

  ProgramRef in_memory(const Hash128& identity) {
    const std::lock_guard guard(lock);
    const ProgramRef* found = programs.find(identity);
    if (found == nullptr) return nullptr;
    ++stats.memory_hits;
    return *found;
  }

  // A forked child has no threads that would finish anything.
  void await_running() {
    if (!out_of_service()) pool.wait_idle();
  }
  // The program is complete: from now on it is found in memory.
  void keep(std::shared_ptr<Program> program, size_t bytes);
  // Whether the program was on disk. Completes it then.
  bool load(const std::shared_ptr<Program>& program);
  void build(const std::shared_ptr<Program>& program, const Request& request,
             const pjrt::CompileOptions& options);
  Status compile(const std::shared_ptr<Program>& program, const Request& request,
                 const pjrt::CompileOptions& options);
  void count_compile(const Request& request, double seconds);
};

void Compiler::Impl::keep(std::shared_ptr<Program> program, size_t bytes) {
  {
    const std::lock_guard guard(lock);
    programs.put(program->identity, program, bytes + kProgramOverhead);
    running.erase(program->identity);
  }
  program->finish({});
}

bool Compiler::Impl::load(const std::shared_ptr<Program>& program) {
  const Hash128 key = tagged(machine, program->identity, "program");
  auto bytes = store.get(key);
  if (!bytes || bytes->size() < sizeof(Facts)) return false;
  const Stopwatch watch;
  const Facts facts = unpack(*bytes);
  auto executable = client.deserialize(*bytes);
  const size_t results = program->layout.results.size() + !program->layout.checks.empty();
  const auto outputs = executable.ok() ? executable->output_count() : executable.status();
  const bool usable = outputs.ok() && outputs.value() == results;
  {
    const std::lock_guard guard(lock);
    if (usable) {
      ++stats.disk_hits;
      stats.load_seconds += watch.seconds();
    } else {
      ++stats.disk_errors;
    }
  }
  if (!usable) {
    store.remove(key);
    return false;
  }
  program->executable = std::move(executable).value();
  facts.give(*program);
  keep(program, bytes->size());
  return true;
}

Status Compiler::Impl::compile(const std::shared_ptr<Program>& program, const Request& request,
                               const pjrt::CompileOptions& options) {
  const Stopwatch watch;
  auto executable = filter.compile(request.module.text, options);
  if (!executable.ok()) {
    return executable.status().with_context(fmt::format("compiling {}", request.op));
  }
  count_compile(request, watch.seconds());
  program->executable = std::move(executable).value();
  const Facts facts = learn_facts(request.module.text, program->executable);
  facts.give(*program);
  keep(program, request.module.text.size());
  const auto serialized = program->executable.serialize();  // not every plugin can
  if (serialized.ok()) {
    store.put(tagged(machine, program->identity, "program"), pack(facts, serialized.value()));
  }
  return {};
}

void Compiler::Impl::build(const std::shared_ptr<Program>& program, const Request& request,
                           const pjrt::CompileOptions& options) {
  Status failure(Code::kCancelled, "the process ends");
  try {
    if (!abandoned && load(program)) return;
    if (!abandoned) failure = compile(program, request, options);
  } catch (const std::exception& e) {
    failure = {Code::kInternal, fmt::format("compiling {}: {}", request.op, e.what())};
  }
  if (failure.ok() || program->ready()) return;
  {
    const std::lock_guard guard(lock);
    running.erase(program->identity);
  }
  program->finish(std::move(failure));
}

void Compiler::Impl::count_compile(const Request& request, double seconds) {
  const std::lock_guard guard(lock);
  ++stats.compiles;
  stats.compile_seconds += seconds;
  events.push_back({request.op, request.reason, request.detail, seconds});
  if (events.size() > kMostEvents) events.pop_front();
}

Compiler::Compiler(pjrt::Client& client, cache::Store& store)
    : impl_(std::make_unique<Impl>(client, store)) {}
Compiler::~Compiler() = default;

Result<ProgramRef> Compiler::start(Request request) {
  if (out_of_service()) return out_of_service_status();
  check_layout(request.module, request.layout);
  const auto options = compile_options(request.options, impl_->cpu, request.module.text);
  const Hash128 identity =
      program_identity(impl_->machine, request.module.text, options, request.layout);
  if (ProgramRef found = impl_->in_memory(identity)) return found;
  std::shared_ptr<Program> program;
  {
    const std::lock_guard guard(impl_->lock);
    const auto [it, inserted] = impl_->running.try_emplace(identity);
    if (!inserted) return it->second;
    program = std::make_shared<Program>(identity, std::move(request.layout));
    it->second = program;
  }
  dump(request, identity);
  impl_->pool.add([impl = impl_.get(), program, request = std::move(request), options] {
    impl->build(program, request, options);
  });
  return ProgramRef(program);
}

Result<ProgramRef> Compiler::compile(Request request) {
  auto started = start(std::move(request));
  if (started.ok()) TPU_RETURN_IF_ERROR(started.value()->wait());
  return started;
}

ProgramRef Compiler::find(const Hash128& identity, const ProgramLayout& layout) {
  if (out_of_service()) return nullptr;
  if (ProgramRef found = impl_->in_memory(identity)) return found;
  const auto program = std::make_shared<Program>(identity, layout);
  return impl_->load(program) ? program : nullptr;
}

std::optional<std::string> Compiler::find_record(const Hash128& key) {
  const Hash128 full = tagged(impl_->environment, key, "record");
  {
    const std::lock_guard guard(impl_->lock);
    if (const std::string* found = impl_->records.find(full)) return *found;
  }
  auto stored = impl_->store.get(full);
  if (stored) {
    const std::lock_guard guard(impl_->lock);
    impl_->records.put(full, *stored, stored->size());
  }
  return stored;
}

void Compiler::store_record(const Hash128& key, std::string_view bytes) {
  const Hash128 full = tagged(impl_->environment, key, "record");
  {
    const std::lock_guard guard(impl_->lock);
    impl_->records.put(full, std::string(bytes), bytes.size());
  }
  impl_->store.put(full, bytes);
}

const Hash128& Compiler::environment() const { return impl_->environment; }

CacheStats Compiler::stats() const {
  impl_->await_running();
  const cache::StoreStats disk = impl_->store.stats();
  const std::lock_guard guard(impl_->lock);
  CacheStats stats = impl_->stats;
  stats.disk_bytes = disk.bytes;
  stats.disk_errors += disk.damaged;
  return stats;
}

std::vector<CompileEvent> Compiler::events() const {
  impl_->await_running();
  const std::lock_guard guard(impl_->lock);
  return {impl_->events.begin(), impl_->events.end()};
}

void Compiler::abandon() {
  impl_->abandoned = true;
  impl_->await_running();
}

void Compiler::clear_memory() {
  impl_->await_running();
  const std::lock_guard guard(impl_->lock);
  impl_->programs.clear();
  impl_->records.clear();
}

}  // namespace tpu::exec
