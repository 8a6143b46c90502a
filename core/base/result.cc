// SPDX-License-Identifier: Apache-2.0
#include "core/base/result.h"

namespace tpu {

void throw_status(const Status& status) {
  switch (status.code()) {
    case Code::kResourceExhausted:
      throw Error(ErrorKind::kOutOfMemory, status.message());
    case Code::kUnimplemented:
      throw Error(ErrorKind::kNotImplemented, status.message());
    default:
      throw Error(ErrorKind::kRuntime, status.message());
  }
}

}  // namespace tpu
