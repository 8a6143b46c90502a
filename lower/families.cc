// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"

namespace tpu::lower {
namespace {

constexpr Rules (*kFamilies[])() = {
    activation_backward_rules,
    activation_rules,
    adaptive_pool_rules,
    attention_rules,
    batch_norm_rules,
    bessel_rules,
    bitwise_rules,
    class_loss_rules,
    compare_rules,
    conv_rules,
    ctc_rules,
    distance_rules,
    embedding_bag_rules,
    embedding_rules,
    factory_rules,
    fft_rules,
    foreach_rules,
    grid_sampler_rules,
    histogram_rules,
    im2col_rules,
    index_rules,
    linalg_rules,
    loss_rules,
    matmul_rules,
    norm_rules,
    optimizer_rules,
    order_rules,
    pad_rules,
    pointwise_rules,
    polynomial_rules,
    pool_rules,
    position_rules,
    quantize_rules,
    random_rules,
    reduce_rules,
    rnn_rules,
    sample_gradient_rules,
    sampling_rules,
    scan_rules,
    scatter_rules,
    segment_rules,
    shape_rules,
    softmax_rules,
    sort_rules,
    special_rules,
    statistics_rules,
    unary_rules,
    upsample_rules,
    view_write_rules,
};

}  // namespace

Rules collect_families() {
  Rules all;
  for (auto* family : kFamilies) {
    Rules rules = family();
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  refuse_unsupported_types(all);
  return all;
}

}  // namespace tpu::lower
