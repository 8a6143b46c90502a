// SPDX-License-Identifier: Apache-2.0
// Compiles StableHLO files for devices that need not exist:
//   compile_for <plugin.so> <topology>
// reads a path per line and answers a line each, tab-separated: "ok", seconds, temporary bytes and
// code bytes; or "error" and what the compiler said. A file that kills the compiler has no answer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/pjrt/topology.h"

namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

std::string answer(const tpu::pjrt::Topology& topology, const std::string& path) {
  std::ifstream file(path);
  if (!file) return "error\tcannot read " + path;
  std::ostringstream module;
  module << file.rdbuf();
  const auto start = std::chrono::steady_clock::now();
  const auto use = topology.compile(module.str(), {});
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  if (!use.ok()) return "error\t" + one_line(use.status().message());
  return fmt::format("ok\t{:.3f}\t{}\t{}", spent.count(), use->temp_bytes, use->code_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: compile_for <plugin.so> <topology>\n");
    return 2;
  }
  // No TPU is used: none is looked for in the cloud, and several processes may compile at once.
  setenv("TPU_SKIP_MDS_QUERY", "1", /*replace=*/0);
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", /*replace=*/0);
  const auto plugin = tpu::pjrt::Plugin::load(argv[1]);
  auto topology = plugin.ok() ? tpu::pjrt::Topology::create(*plugin.value(), argv[2])
                              : tpu::Result<std::unique_ptr<tpu::pjrt::Topology>>(plugin.status());
  if (!topology.ok()) {
    std::fprintf(stderr, "%s\n", topology.status().message().c_str());
    return 1;
  }
  for (std::string path; std::getline(std::cin, path);) {
    std::cout << answer(*topology.value(), path) << std::endl;
  }
  tpu::pjrt::abandon_handles();
  std::_Exit(0);  // the plugin's own teardown is not ours to wait for
}
