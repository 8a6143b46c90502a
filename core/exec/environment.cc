// SPDX-License-Identifier: Apache-2.0
#include "core/exec/environment.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "core/exec/hardware.h"

namespace tpu::exec {
namespace {

void add_file(Hasher& hasher, const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return;
  hasher.add(static_cast<uint64_t>(info.st_size));
  hasher.add(static_cast<uint64_t>(info.st_mtim.tv_sec));
  hasher.add(static_cast<uint64_t>(info.st_mtim.tv_nsec));
}

// The first value of every property in /proc/cpuinfo that names the model or its features.
void add_processor(Hasher& hasher) {
  std::ifstream file("/proc/cpuinfo");
  std::map<std::string, std::string> first;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    first.emplace(name, line.substr(colon + 1));
  }
  for (const char* name : {"vendor_id", "cpu family", "model", "model name", "stepping", "flags",
                           "CPU implementer", "CPU part", "Features"}) {
    hasher.add(std::string_view(first[name]));
  }
}

struct BuildId {
  uintptr_t inside;  // an address of the library looked for
  std::string id;
};

void read_notes(const char* at, const char* end, std::string& id) {
  constexpr size_t kAlign = 4;
  const auto padded = [](size_t n) { return (n + kAlign - 1) / kAlign * kAlign; };
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
    const char* description = at + sizeof(note) + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID) id.assign(description, note.n_descsz);
    at = description + padded(note.n_descsz);
  }
}

int visit_library(dl_phdr_info* info, size_t, void* argument) {
  auto& wanted = *static_cast<BuildId*>(argument);
  const auto start = [&](const ElfW(Phdr) & p) { return info->dlpi_addr + p.p_vaddr; };
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  bool found = false;
  for (const ElfW(Phdr) & p : headers) {
    found |=
        p.p_type == PT_LOAD && wanted.inside >= start(p) && wanted.inside < start(p) + p.p_memsz;
  }
  if (!found) return 0;
  for (const ElfW(Phdr) & p : headers) {
    const char* at = reinterpret_cast<const char*>(start(p));
    if (p.p_type == PT_NOTE) read_notes(at, at + p.p_memsz, wanted.id);
  }
  return 1;
}

}  // namespace

bool computes_on_host(const pjrt::Client& client) { return client.platform() == "cpu"; }

Hash128 machine_identity(const pjrt::Client& client) {
  Hasher hasher;
  add_file(hasher, client.plugin().path());
  hasher.add(client.platform());
  hasher.add(client.platform_version());
  if (computes_on_host(client)) {
    add_processor(hasher);
    hasher.add(usable_cores());
  } else if (!client.devices().empty()) {
    hasher.add(client.device_kind(client.devices()[0]));
  }
  return hasher.finish();
}

Hash128 build_identity() {
  BuildId wanted{reinterpret_cast<uintptr_t>(&build_identity), {}};
  dl_iterate_phdr(visit_library, &wanted);
  Hasher hasher;
  hasher.add(std::string_view(wanted.id));
  Dl_info info{};
  if (wanted.id.empty() && dladdr(reinterpret_cast<void*>(&build_identity), &info) != 0) {
    add_file(hasher, info.dli_fname);
  }
  return hasher.finish();
}

}  // namespace tpu::exec
