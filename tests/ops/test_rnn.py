# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks on the device as on the CPU, with gradients."""

import copy

import pytest
import torch
from support import same

pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"bidirectional": True, "num_layers": 2}])
def test_layers(kind, options):
    layer = kind(4, 5, **options)
    x = torch.randn(3, 2, 4)
    results = []
    for device in ("cpu", "tpu"):
        moved = copy.deepcopy(layer).to(device)
        y, _ = moved(x.to(device))
        grads = torch.autograd.grad(y.square().sum(), list(moved.parameters()))
        results.append((y, *grads))
    same(results[1], results[0], atol=1e-5, rtol=1e-5)
