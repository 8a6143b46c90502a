// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/api.h"

#include <algorithm>
#include <cstring>

namespace tpu::pjrt {

Api::Api(const PJRT_Api& plugin_table) : table_{} {
  std::memcpy(&table_, &plugin_table, std::min(plugin_table.struct_size, sizeof(table_)));
}

Status Api::take(PJRT_Error* error) const {
  if (error == nullptr) return {};
  auto message = make_args<PJRT_Error_Message_Args>();
  message.error = error;
  table_.PJRT_Error_Message(&message);
  auto code = make_args<PJRT_Error_GetCode_Args>();
  code.error = error;
  const bool has_code = table_.PJRT_Error_GetCode(&code) == nullptr;
  Status status(has_code ? static_cast<Code>(code.code) : Code::kUnknown,
                std::string(message.message, message.message_size));
  auto destroy = make_args<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  table_.PJRT_Error_Destroy(&destroy);
  return status;
}

const PJRT_Extension_Base* Api::extension(PJRT_Extension_Type type) const {
  const PJRT_Extension_Base* e = table_.extension_start;
  while (e != nullptr && e->type != type) e = e->next;
  return e;
}

// `caller` is the pretty name of an instance of call(), which names the entry.
Status Api::missing(std::string_view caller) {
  constexpr std::string_view kTable = "PJRT_Api::";
  const size_t start = caller.rfind(kTable);
  std::string_view name = start == caller.npos ? caller : caller.substr(start + kTable.size());
  name = name.substr(0, name.find_first_of(";]), "));
  return {Code::kUnimplemented, fmt::format("this PJRT plugin has no {}", name)};
}

void abandon_handles() { handles_abandoned.store(true); }

}  // namespace tpu::pjrt
