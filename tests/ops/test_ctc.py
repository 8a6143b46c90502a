# SPDX-License-Identifier: Apache-2.0
"""CTC loss: both forms of targets and lengths, impossible sequences, and mistakes."""

import pytest
import torch
import torch.nn.functional as F
from support import check, check_error

pytestmark = pytest.mark.usefixtures("no_fallback")

LOGITS = torch.randn(9, 3, 5, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([[1, 2, 2, 4], [1, 1, 1, 1], [3, 0, 0, 0]])
INPUTS, LENGTHS = (9, 7, 4), (4, 3, 1)


def loss(logits, targets, inputs=INPUTS, lengths=LENGTHS, **options):
    logits.requires_grad_()
    out = F.ctc_loss(logits.log_softmax(2), targets, inputs, lengths, **options)
    weight = torch.arange(1.0, out.numel() + 1, device=out.device).view(out.shape)
    return out, torch.autograd.grad(out, logits, weight)


def concatenated():
    return torch.cat([row[:n] for row, n in zip(TARGETS, LENGTHS, strict=True)])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_values_and_gradients(reduction):
    for targets in (TARGETS, concatenated(), TARGETS.int()):
        check(lambda x, t: loss(x, t, reduction=reduction), LOGITS, targets, rtol=1e-4, atol=1e-5)
    check(lambda x, t: loss(x, t), LOGITS.double(), TARGETS)


def test_blank_and_lengths_as_tensors():
    targets = TARGETS.clamp(max=3) + 1 - (TARGETS == 0).long()
    inputs, lengths = torch.tensor(INPUTS), torch.tensor(LENGTHS)
    check(lambda x, t: loss(x, t % 4, blank=4), LOGITS, targets, rtol=1e-4, atol=1e-5)
    check(loss, LOGITS, TARGETS, inputs, lengths, rtol=1e-4, atol=1e-5)
    check(
        lambda x, *rest: torch.ops.aten._ctc_loss(x.log_softmax(2), *rest)[0],
        *(LOGITS, TARGETS, inputs, lengths),
        **{"rtol": 1e-4, "atol": 1e-5},
    )


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_more_labels_than_time(zero_infinity):
    def run(x, t):
        return loss(x, t, (3, 0, 0), (4, 2, 0), reduction="none", zero_infinity=zero_infinity)

    check(run, LOGITS, TARGETS, rtol=1e-4, atol=1e-5)


def test_refuses():
    def mistake(targets=TARGETS, inputs=INPUTS, lengths=LENGTHS, logits=LOGITS, **options):
        check_error(
            lambda x, t: F.ctc_loss(x.log_softmax(2), t, inputs, lengths, **options),
            *(logits, targets),
        )

    mistake(inputs=(10, 7, 4))
    mistake(inputs=(-1, 7, 4))
    mistake(inputs=(9, 7))
    mistake(lengths=(5, 3, 1))
    mistake(lengths=(-1, 3, 1))
    mistake(lengths=(4, 3))
    mistake(targets=TARGETS[:2])
    mistake(targets=concatenated()[1:])
    check_error(
        lambda x, t: torch.ops.aten._ctc_loss(x, t, INPUTS, LENGTHS),
        *(LOGITS, TARGETS.float()),
    )
    mistake(blank=5)
    mistake(logits=LOGITS[:0])
