// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/plugin.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace tpu::pjrt {
namespace {

using GetPjrtApi = const PJRT_Api* (*)();

Result<const PJRT_Api*> open_table(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return Status(Code::kNotFound, fmt::format("PJRT plugin {} is not a readable file", path));
  }
  // Read by the plugin as it is loaded; without it every client writes to stderr.
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*replace=*/0);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(Code::kInvalidArgument,
                  fmt::format("cannot load PJRT plugin {}: {}", path, dlerror()));
  }
  const auto entry = reinterpret_cast<GetPjrtApi>(dlsym(library, "GetPjrtApi"));
  const PJRT_Api* table = entry != nullptr ? entry() : nullptr;
  if (table == nullptr) {
    dlclose(library);
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is not a PJRT plugin: {}", path,
                              entry ? "GetPjrtApi returned nothing" : "no symbol GetPjrtApi"));
  }
  return table;
}

std::string attribute_text(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return std::to_string(value.int64_value);
    case PJRT_NamedValue_kInt64List:
      return fmt::format("{}",
                         fmt::join(std::span(value.int64_array_value, value.value_size), "."));
    case PJRT_NamedValue_kFloat:
      return fmt::format("{}", value.float_value);
    case PJRT_NamedValue_kBool:
      return value.bool_value ? "true" : "false";
  }
  return {};
}

}  // namespace

Plugin::Plugin(std::string path, const PJRT_Api& table) : path_(std::move(path)), api_(table) {}

Result<const Plugin*> Plugin::load(const std::string& path) {
  static std::mutex lock;  // guards `loaded`, and one initialization per plugin
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Plugin>>;
  const std::lock_guard guard(lock);
  if (const auto it = loaded.find(path); it != loaded.end()) return it->second.get();

  auto table = open_table(path);
  if (!table.ok()) return table.status();
  std::unique_ptr<const Plugin> plugin(new Plugin(path, *table.value()));
  if (plugin->api_.major_version() != PJRT_API_MAJOR) {
    return Status(Code::kInvalidArgument,
                  fmt::format("PJRT plugin {} speaks version {} of the PJRT interface, this build "
                              "speaks {}.{}",
                              path, plugin->version(), PJRT_API_MAJOR, PJRT_API_MINOR));
  }
  auto args = make_args<PJRT_Plugin_Initialize_Args>();
  if (Status s = plugin->api_.call<&PJRT_Api::PJRT_Plugin_Initialize>(args); !s.ok()) {
    return s.with_context(fmt::format("initializing PJRT plugin {}", path));
  }
  return loaded.emplace(path, std::move(plugin)).first->second.get();
}

std::string Plugin::version() const {
  return fmt::format("{}.{}", api_.major_version(), api_.minor_version());
}

std::optional<std::string> Plugin::attribute(std::string_view name) const {
  auto args = make_args<PJRT_Plugin_Attributes_Args>();
  if (!api_.call<&PJRT_Api::PJRT_Plugin_Attributes>(args).ok()) return std::nullopt;
  for (const PJRT_NamedValue& value : std::span(args.attributes, args.num_attributes)) {
    if (name == std::string_view(value.name, value.name_size)) return attribute_text(value);
  }
  return std::nullopt;
}

}  // namespace tpu::pjrt
