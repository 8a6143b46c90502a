// SPDX-License-Identifier: Apache-2.0
// The explicit list of rule families; each is a file of this folder. A new family adds one
// declaration here and one line in families.cc.
#pragma once

#include "lower/rule.h"

namespace tpu::lower {

using Rules = std::vector<Rule>;

Rules activation_rules();
Rules activation_backward_rules();
Rules adaptive_pool_rules();
Rules attention_rules();
Rules batch_norm_rules();
Rules bessel_rules();
Rules bitwise_rules();
Rules class_loss_rules();
Rules compare_rules();
Rules conv_rules();
Rules ctc_rules();
Rules distance_rules();
Rules embedding_rules();
Rules embedding_bag_rules();
Rules factory_rules();
Rules fft_rules();
Rules foreach_rules();
Rules grid_sampler_rules();
Rules histogram_rules();
Rules im2col_rules();
Rules index_rules();
Rules linalg_rules();
Rules loss_rules();
Rules matmul_rules();
Rules norm_rules();
Rules optimizer_rules();
Rules order_rules();
Rules pad_rules();
Rules pointwise_rules();
Rules polynomial_rules();
Rules pool_rules();
Rules position_rules();
Rules quantize_rules();
Rules random_rules();
Rules reduce_rules();
Rules rnn_rules();
Rules sampling_rules();
Rules scan_rules();
Rules scatter_rules();
Rules sample_gradient_rules();
Rules segment_rules();
Rules shape_rules();
Rules softmax_rules();
Rules sort_rules();
Rules special_rules();
Rules statistics_rules();
Rules unary_rules();
Rules upsample_rules();
Rules view_write_rules();

Rules collect_families();
// Makes the rules of pointwise ops raise PyTorch's errors for types its CPU kernels do not take.
void refuse_unsupported_types(Rules& rules);

}  // namespace tpu::lower
