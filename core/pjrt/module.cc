// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/module.h"

namespace tpu::pjrt {
namespace {

bool has_unbounded_dimension(std::string_view module) {
  for (size_t at = module.find('?'); at != module.npos; at = module.find('?', at + 1)) {
    const char before = at > 0 ? module[at - 1] : ' ';
    const char after = at + 1 < module.size() ? module[at + 1] : ' ';
    if ((before == '<' || before == 'x') && (after == 'x' || after == '>' || after == ',')) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<PJRT_Program> program_of(const std::string& module) {
  if (has_unbounded_dimension(module)) {
    return Status(Code::kInvalidArgument, "the program has a dimension of unknown size");
  }
  constexpr std::string_view kFormat = "mlir";
  auto program = make_args<PJRT_Program>();
  program.code = const_cast<char*>(module.data());  // the C API reads it only
  program.code_size = module.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  return program;
}

}  // namespace tpu::pjrt
