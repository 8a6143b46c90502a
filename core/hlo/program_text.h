// SPDX-License-Identifier: Apache-2.0
// For tests: the operations of a program as text.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace tpu::hlo {

// The lines between the head of main and its return, without their indentation.
inline std::string body_text(const ir::Values& results) {
  const std::string text = results[0].graph().module(results).text;
  const size_t first = text.find('\n', text.find("@main")) + 1;
  const size_t last = text.find("    \"func.return\"");
  std::string body = text.substr(first, last - first);
  for (size_t at = 0; (at = body.find("    ", at)) != std::string::npos;) body.erase(at, 4);
  return body;
}

}  // namespace tpu::hlo
