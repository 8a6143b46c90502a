// SPDX-License-Identifier: Apache-2.0
// CTC loss whose lengths are on the host: they travel as tensors, so that a batch of other lengths
// runs the same program, and concatenated targets become rows of a bucketed length.
#include "backend/clean_state.h"
#include "backend/dynamic_shapes.h"

namespace torch_tpu {
namespace {

constexpr const char* kChecking = " (while checking arguments for ctc_loss_allocate_outputs)";

void check_lengths(at::IntArrayRef lengths, const char* name, int64_t greatest) {
  for (const int64_t n : lengths) {
    TORCH_CHECK(n >= 0, "Expected ", name, " to have value at least 0, but got value ", n,
                kChecking);
    TORCH_CHECK(n <= greatest, "Expected ", name, " to have value at most ", greatest,
                ", but got value ", n, kChecking);
  }
}

int64_t longest(at::IntArrayRef lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

void check_targets(const at::Tensor& targets, at::IntArrayRef lengths) {
  if (targets.dim() == 1) {
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    TORCH_CHECK(targets.size(0) == total, "Expected tensor to have size ", total,
                " at dimension 0, but got size ", targets.size(0), " for argument #2 'targets'",
                kChecking);
    return;
  }
  TORCH_CHECK(targets.dim() == 2, "Expected 1 to 2 dimensions, but got ", targets.dim(),
              "-dimensional tensor for argument #2 'targets'", kChecking);
  const auto batch = static_cast<int64_t>(lengths.size());
  TORCH_CHECK(targets.size(0) == batch, "Expected tensor to have size ", batch,
              " at dimension 0, but got size ", targets.size(0), " for argument #2 'targets'",
              kChecking);
  TORCH_CHECK(targets.size(1) >= longest(lengths), "Expected tensor to have size at least ",
              longest(lengths), " at dimension 1, but got size ", targets.size(1),
              " for argument #2 'targets'", kChecking);
}

void check(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
           at::IntArrayRef target_lengths, int64_t blank) {
  TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  const at::ScalarType t = targets.scalar_type();
  TORCH_CHECK(t == at::kInt || t == at::kLong, "Expected tensor for argument #2 'targets' to have ",
              "scalar type Int; but got ", "torch.", t, "Tensor", " instead", kChecking);
  TORCH_CHECK(log_probs.dim() == 3, "Expected 3-dimensional tensor, but got ", log_probs.dim(),
              "-dimensional tensor for argument #1 'log_probs'", kChecking);
  TORCH_CHECK(0 <= blank && blank < log_probs.size(2), "blank must be in label range");
  const auto batch = static_cast<size_t>(log_probs.size(1));
  TORCH_CHECK(input_lengths.size() == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(target_lengths.size() == batch, "target_lengths must be of size batch_size");
  check_lengths(target_lengths, "target_lengths", std::numeric_limits<int64_t>::max());
  check_targets(targets, target_lengths);
  check_lengths(input_lengths, "input_lengths", log_probs.size(0));
}

at::Tensor on_device(at::IntArrayRef values, const at::Tensor& like) {
  return at::tensor(values, at::kLong).to(like.device(), /*non_blocking=*/true);
}

// [batch, at least 1].
at::Tensor rows_of(const at::Tensor& targets, at::IntArrayRef lengths, const at::Tensor& like) {
  const auto batch = static_cast<int64_t>(lengths.size());
  const at::Tensor own = targets.to(like.device());
  if (own.numel() == 0) return at::zeros({batch, 1}, own.options());
  if (own.dim() == 2) return own;
  const int64_t columns = bucket(longest(lengths));
  const at::Tensor positions = at::empty({batch, columns}, at::kLong);
  auto* position = positions.mutable_data_ptr<int64_t>();
  int64_t start = 0;
  for (const int64_t n : lengths) {
    for (int64_t i = 0; i < columns; ++i) {
      *position++ = std::min(start + i, own.size(0) - 1);
    }
    start += n;
  }
  return own.take(positions.to(like.device()));
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                            at::IntArrayRef input_lengths,
                                            at::IntArrayRef target_lengths, int64_t blank,
                                            bool zero_infinity) {
  check(log_probs, targets, input_lengths, target_lengths, blank);
  const CleanState clean;
  return at::_ctc_loss(log_probs, rows_of(targets, target_lengths, log_probs),
                       on_device(input_lengths, log_probs), on_device(target_lengths, log_probs),
                       blank, zero_infinity);
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs,
                             const at::Tensor& targets, at::IntArrayRef input_lengths,
                             at::IntArrayRef target_lengths, const at::Tensor& loss,
                             const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const CleanState clean;
  return at::_ctc_loss_backward(grad, log_probs, rows_of(targets, target_lengths, log_probs),
                                on_device(input_lengths, log_probs),
                                on_device(target_lengths, log_probs), loss, log_alpha, blank,
                                zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_ctc_loss", &ctc_loss);
  m.impl("_ctc_loss_backward", &ctc_loss_backward);
}

}  // namespace torch_tpu
