// SPDX-License-Identifier: Apache-2.0
// PyTorch's error texts about element types. Pure functions.
#pragma once

#include <string_view>

#include "lower/rule.h"

namespace tpu::lower {

std::string_view scalar_type_name(DType t);  // "Float", "Char", "BFloat16", "ComplexDouble"
// The C++ type's name as PyTorch prints a dtype: "float", "long int", "c10::Half".
std::string_view cpp_name(DType t);

// NotImplementedError `"kernel" not implemented for 'Bool'` unless `supported`.
void require_dtype(bool supported, std::string_view kernel, DType t);
// The usual case: every number type, but not bool, f8 and the wide unsigned ones.
void require_number(std::string_view kernel, DType t);
// Real floating point types of 16 bits and more.
void require_float(std::string_view kernel, DType t);

}  // namespace tpu::lower
