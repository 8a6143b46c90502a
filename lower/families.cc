// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"

namespace tpu::lower {

Rules collect_families() {
  Rules all;
  for (auto* family : {
           activation_backward_rules,
           activation_rules,
           bitwise_rules,
           compare_rules,
           factory_rules,
           pointwise_rules,
           unary_rules,
       }) {
    Rules rules = family();
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tpu::lower
