// SPDX-License-Identifier: Apache-2.0
// From StableHLO text to a Program, through memory and disk. Thread-safe; concurrent requests for
// one program compile once, on a pool of threads.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/cache/store.h"
#include "core/exec/program.h"
#include "core/pjrt/client.h"

namespace tpu::exec {

// Why a program had to be compiled, for explain_recompiles().
enum class CompileReason : uint8_t { kNewOp, kNewShape, kNewDtype, kNewAttribute };

struct CacheStats {
  uint64_t memory_hits = 0;  // programs found in memory by Compiler
  uint64_t disk_hits = 0;
  uint64_t compiles = 0;
  double compile_seconds = 0;
  double load_seconds = 0;
  uint64_t disk_bytes = 0;
  uint64_t disk_errors = 0;  // damaged or foreign files met, treated as misses
};

struct CompileEvent {
  std::string op;
  CompileReason reason;
  std::string detail;  // the arguments' types
  double seconds;
};

class Compiler {
 public:
  Compiler(pjrt::Client& client, cache::Store& store);

  struct Request {
    std::string op;  // for messages and events
    ir::Graph::Module module;
    ProgramLayout layout;
    OptionSet options = OptionSet::kFast;
    CompileReason reason = CompileReason::kNewOp;
    std::string detail;
  };
  // Returns at once; the program, or why there is none, is there when it is ready().
  Result<ProgramRef> start(Request request);
  // The same, but waits.
  Result<ProgramRef> compile(Request request);

  // The program stored under `identity`, from memory or disk; null if there is none.
  ProgramRef find(const Hash128& identity, const ProgramLayout& layout);

  // Small records beside the programs (a plan under its op key). Keys already contain whatever
  // decides their validity; environment() is mixed in here.
  std::optional<std::string> find_record(const Hash128& key);
  void store_record(const Hash128& key, std::string_view bytes);

  // Hash of all that a program's machine code or a record depends on beside its text: plugin file,
  // build id of this library, CPU model, features and visible cores.
  const Hash128& environment() const;

  // These wait for what is being compiled.
  CacheStats stats() const;
  std::vector<CompileEvent> events() const;  // the latest, at most 1,000
  void clear_memory();                       // programs in use stay alive with their users

  // For the end of the process: what is not being compiled yet never will be.
  void abandon();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;

 public:
  ~Compiler();
};

}  // namespace tpu::exec
