// SPDX-License-Identifier: Apache-2.0
#include "core/exec/buffer_type.h"

#include <array>

#include "core/base/error.h"

namespace tpu::exec {
namespace {

// In order of ir::DType.
constexpr std::array<PJRT_Buffer_Type, ir::kDTypeCount> kTypes = {
    PJRT_Buffer_Type_PRED,       PJRT_Buffer_Type_S8,        PJRT_Buffer_Type_S16,
    PJRT_Buffer_Type_S32,        PJRT_Buffer_Type_S64,       PJRT_Buffer_Type_U8,
    PJRT_Buffer_Type_U16,        PJRT_Buffer_Type_U32,       PJRT_Buffer_Type_U64,
    PJRT_Buffer_Type_F8E4M3FN,   PJRT_Buffer_Type_F8E5M2,    PJRT_Buffer_Type_F8E4M3FNUZ,
    PJRT_Buffer_Type_F8E5M2FNUZ, PJRT_Buffer_Type_F8E8M0FNU, PJRT_Buffer_Type_F16,
    PJRT_Buffer_Type_BF16,       PJRT_Buffer_Type_F32,       PJRT_Buffer_Type_F64,
    PJRT_Buffer_Type_C64,        PJRT_Buffer_Type_C128,
};

}  // namespace

PJRT_Buffer_Type buffer_type(ir::DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  TPU_CHECK(i < kTypes.size(), "a DType is one of the enumerators");
  return kTypes[i];
}

}  // namespace tpu::exec
