# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling where PyTorch's samples do not reach: groups, layouts, NaN, ties."""

import pytest
import torch
import torch.nn.functional as F
from support import check

pytestmark = pytest.mark.usefixtures("no_fallback")

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


def gradients(function, *tensors):
    leaves = [t.requires_grad_() for t in tensors]
    y = function(*leaves)
    y = y[0] if isinstance(y, tuple) else y
    return y.detach(), torch.autograd.grad((y * y).sum(), leaves)


CONVOLUTIONS = {
    "depthwise": (F.conv2d, (2, 6, 9, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    "depthwise_multiple": (F.conv2d, (2, 3, 9, 8), (6, 1, 3, 2), {"stride": 2, "groups": 3}),
    "depthwise_large": (F.conv2d, (1, 4, 12, 12), (4, 1, 9, 9), {"padding": 4, "groups": 4}),
    "depthwise_dilated": (F.conv2d, (1, 4, 12, 12), (4, 1, 3, 3), {"dilation": 3, "groups": 4}),
    "grouped": (F.conv2d, (2, 6, 9, 8), (4, 3, 3, 3), {"padding": 2, "stride": 2, "groups": 2}),
    "volume": (F.conv3d, (2, 3, 5, 6, 7), (4, 3, 2, 3, 3), {"stride": 2, "padding": 1}),
    "grouped_volume": (F.conv3d, (2, 4, 5, 6, 7), (4, 2, 2, 3, 3), {"groups": 2}),
    "signal": (F.conv1d, (2, 4, 11), (6, 4, 3), {"padding": 2, "dilation": 2}),
    "transposed": (F.conv_transpose2d, (2, 4, 5, 6), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    "transposed_groups": (
        F.conv_transpose2d,
        (2, 4, 5, 6),
        (4, 3, 3, 3),
        {"groups": 2, "stride": 3, "output_padding": 2},
    ),
    "transposed_depthwise": (
        F.conv_transpose2d,
        (2, 4, 5, 6),
        (4, 2, 3, 3),
        {"groups": 4, "stride": 2},
    ),
    "transposed_volume": (
        F.conv_transpose3d,
        (1, 2, 3, 4, 5),
        (2, 3, 2, 3, 2),
        {"stride": 2, "output_padding": 1},
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    function, x, w, options = CONVOLUTIONS[name]
    check(
        lambda x, w: gradients(lambda a, b: function(a, b, **options), x, w),
        torch.randn(x),
        torch.randn(w),
        strides=False,
        **CLOSE,
    )


def test_convolution_keeps_channels_last():
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    check(lambda x, w, b: F.conv2d(x, w, b), x, torch.randn(4, 3, 3, 3), torch.randn(4), **CLOSE)


def special(kind):
    x = torch.randint(0, 3, (2, 3, 9, 10)).float()  # many ties
    if kind == "nan":
        x[torch.rand_like(x) > 0.8] = float("nan")
    if kind == "lowest":
        x.fill_(float("-inf"))
    return x


@pytest.mark.parametrize("kind", ["ties", "nan", "lowest"])
@pytest.mark.parametrize(
    "window", [(2,), (3, 2, 1), (3, 1, 1), ((3, 2), (2, 1), (1, 0), (2, 3)), (9, 1, 4)]
)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_max_pool_picks_the_same_elements(kind, window, ceil_mode):
    def run(x):
        return F.max_pool2d(x, *window, ceil_mode=ceil_mode, return_indices=True)

    check(run, special(kind))
    if kind == "ties":
        check(lambda x: gradients(run, x), special(kind))


@pytest.mark.parametrize("size", [1, 3, (4, 7), (9, 10), (11, 13)])
@pytest.mark.parametrize("function", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
def test_adaptive_pools_of_any_size(function, size):
    check(lambda x: gradients(lambda a: function(a, size), x), special("ties"), **CLOSE)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("divisor", [None, 5])
def test_average_pool_divisors(ceil_mode, count_include_pad, divisor):
    def run(x):
        return F.avg_pool2d(x, 3, 2, 1, ceil_mode, count_include_pad, divisor)

    check(lambda x: gradients(run, x), torch.randn(2, 3, 9, 10), **CLOSE)


def test_unpooling_refuses_positions_outside():
    x = torch.ones(1, 1, 2, 2, device="tpu")
    index = torch.full((1, 1, 2, 2), 16, device="tpu")
    with pytest.raises(RuntimeError, match="Found an invalid max index: 16"):
        F.max_unpool2d(x, index, 2).cpu()


@pytest.mark.parametrize("batch", [(2,), ()])
@pytest.mark.parametrize("sides", [2, 3])
def test_fractional_pools(sides, batch):
    function = (F.fractional_max_pool2d, F.fractional_max_pool3d)[sides - 2]
    kernel, size = (4, 2, 3)[:sides], (10, 3, 2)[:sides]
    samples = torch.rand(2, 4, sides)  # a plane without a batch takes the first

    def pool(x, samples):
        return function(x, kernel, size, _random_samples=samples, return_indices=True)

    check(pool, torch.randn(*batch, 4, *(16, 7, 5)[:sides]), samples)
