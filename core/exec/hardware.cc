// SPDX-License-Identifier: Apache-2.0
#include "core/exec/hardware.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tpu::exec {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kGoogleVendor = "0x1ae0";

std::string first_word(const fs::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

template <class Predicate>
int count_entries(const fs::path& directory, Predicate predicate) {
  std::error_code error;
  int count = 0;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    count += predicate(it->path());
  }
  return count;
}

}  // namespace

int tpu_chips_below(const std::string& root) {
  const int devices = count_entries(fs::path(root) / "sys/bus/pci/devices", [](const fs::path& p) {
    return first_word(p / "vendor") == kGoogleVendor;
  });
  if (devices == 0) return 0;
  // Other devices of the same vendor (network cards of cloud machines) have neither node.
  const int accelerators = count_entries(fs::path(root) / "dev", [](const fs::path& p) {
    return p.filename().string().starts_with("accel");
  });
  const int groups = count_entries(fs::path(root) / "dev/vfio",
                                   [](const fs::path& p) { return p.filename() != "vfio"; });
  return std::min(devices, std::max(accelerators, groups));
}

int tpu_chips() {
  static const int chips = tpu_chips_below("/");
  return chips;
}

size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
}

size_t machine_memory() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::string limit = first_word(file);
    if (!limit.empty() && limit.find_first_not_of("0123456789") == limit.npos) {
      bytes = std::min<size_t>(bytes, std::strtoull(limit.c_str(), nullptr, 10));
    }
  }
  return bytes;
}

}  // namespace tpu::exec
