# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, sorting and norms where PyTorch's samples do not look: NaN, ties, sizes."""

import pytest
import torch
from support import check, check_error, to_device

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor([[1.0, NAN, 3.0, -0.0, 0.0, NAN], [INF, 2.0, INF, -INF, 2.0, -INF]])
TIES = torch.tensor([[2.0, 3.0, 3.0, 1.0, 1.0, 3.0], [0.0, -0.0, 0.0, 0.0, -0.0, -0.0]])


@pytest.mark.parametrize("x", [SPECIAL, TIES], ids=["special", "ties"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "function",
    [torch.max, torch.min, torch.argmax, torch.argmin, torch.cummax, torch.cummin, torch.amax],
)
def test_first_of_equals_and_nan(function, x, dtype):
    check(lambda t: function(t, 1), x.to(dtype))


@pytest.mark.parametrize("x", [SPECIAL, TIES], ids=["special", "ties"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_sort_is_stable_and_puts_nan_last(x, descending, dim):
    check(lambda t: torch.sort(t, dim=dim, descending=descending, stable=True), x)


def test_sort_of_64_bits():
    x = torch.tensor([2**62, -(2**62), 5, 2**31, -(2**31) - 1, 2**32 + 5, -1, 0, 5])
    check(lambda t: torch.sort(t, stable=True), x)
    check(lambda t: torch.sort(t.double(), descending=True, stable=True), x)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 300])
@pytest.mark.parametrize("dim", [0, 1])
def test_top_of_long_rows(largest, k, dim):
    x = torch.randperm(4000).reshape(10, 400).float()
    x[3, 5], x[4, 6], x[5, 7] = NAN, INF, -INF
    x = x if dim else x.t().contiguous()
    check(lambda t: torch.topk(t, k, dim, largest), x)


@pytest.mark.parametrize("boundaries", [5, 500])
@pytest.mark.parametrize("right", [False, True])
def test_search(boundaries, right):
    edges = torch.randint(0, 100, (boundaries,)).float().sort()[0]
    x = torch.cat([torch.randint(-5, 105, (300,)).float(), torch.tensor([NAN, INF, -INF])])
    check(lambda e, v: torch.searchsorted(e, v, right=right), edges, x)


@pytest.mark.parametrize("function", [torch.median, torch.nanmedian])
def test_medians_of_nan(function):
    x = torch.tensor(
        [[NAN, 3.0, 1.0, 2.0, 5.0], [1.0, NAN, NAN, 7.0, 2.0], [4.0, 3.0, 2.0, 1.0, 0.0]]
    )
    check(function, x)
    check(lambda t: function(t, 1), x)


def test_mode_reports_the_last_position():
    check(lambda t: torch.mode(t, 1), torch.tensor([[3, 1, 3, 1, 2], [5, 4, 3, 2, 1]]))


@pytest.mark.parametrize(
    "shape,axes", [((3_000_001,), (0,)), ((70_000, 40), (0,)), ((30, 40, 40, 64), (0, 1, 2))]
)
def test_long_sums_are_accurate(shape, axes):
    x = torch.rand(shape)
    exact = x.double().sum(axes)
    torch.testing.assert_close(x.to("tpu").sum(axes).cpu().double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("function", [torch.cumsum, torch.logcumsumexp, torch.cumprod])
@pytest.mark.parametrize("dim", [0, 1])
def test_long_scans(function, dim):
    x = torch.rand(1000, 3) * 0.01 + (1 if function is torch.cumprod else 0)
    check(lambda t: function(t, dim), x, rtol=1e-4, atol=1e-4)


def test_log_cumsum_exp_keeps_small_beginnings():
    x = torch.tensor([-1000.0, -999.0, 0.0, -INF, 500.0, NAN, 1.0])
    check(lambda t: torch.logcumsumexp(t, 0), x)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("parameters", [torch.float32, torch.bfloat16])
def test_batch_norm_updates_running_statistics(training, parameters):
    x = torch.randn(4, 3, 5).to(parameters)
    weight, bias, mean = (torch.randn(3, dtype=parameters) for _ in range(3))
    variance = torch.rand(3).to(parameters)

    def run(x, weight, bias, mean, variance):
        mean, variance = mean.clone(), variance.clone()
        for momentum in (0.1, 0.3):
            y = torch.native_batch_norm(x, weight, bias, mean, variance, training, momentum, 1e-5)
        return *y, mean, variance

    tolerance = 1e-5 if parameters is torch.float32 else 2e-2
    check(run, x, weight, bias, mean, variance, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("statistics", [torch.float32, torch.bfloat16])
def test_narrow_inputs_keep_the_types_of_parameters(statistics):
    x, w = torch.randn(2, 6, 4, dtype=torch.bfloat16), torch.ones(6, dtype=statistics)
    check(
        lambda x, w: torch.native_group_norm(x, w, w, 2, 6, 4, 3, 1e-5), x, w, atol=2e-2, rtol=2e-2
    )
    y = x.transpose(1, 2).contiguous()
    check(lambda y, w: torch.native_layer_norm(y, [6], w, w, 1e-5), y, w, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(
    "function,shape",
    [
        (lambda x: torch.max(x), (0,)),
        (lambda x: torch.max(x, 0), (0, 2)),
        (lambda x: torch.sum(x, [0, 0]), (2, 2)),
        (lambda x: torch.sum(x, 3), (2, 2)),
        (lambda x: torch.trace(x), (3,)),
        (lambda x: torch.kthvalue(x, 4), (3,)),
        (lambda x: torch.mode(x), (0,)),
        (lambda x: torch.layer_norm(x, [3]), (3, 2)),
        (lambda x: torch.native_group_norm(x, None, None, 2, 6, 4, 4, 1e-5), (2, 6, 4)),
        (lambda x: torch.searchsorted(x, x[:1, :1].expand(3, 1)), (2, 3)),
        (lambda x: torch.softmax(x.long(), 0), (3,)),
        (lambda x: torch.var(x.long()), (3,)),
        (lambda x: torch.renorm(x, 2, 0, -1.0), (2, 2)),
    ],
)
def test_refusals_have_pytorchs_text(function, shape):
    check_error(function, torch.zeros(shape))


def test_empty_rows():
    x = torch.empty(0, 3)
    for function in (torch.sum, torch.mean, torch.prod, torch.any, torch.all, torch.logsumexp):
        check(lambda t, f=function: f(t, 0), x)
    device = to_device(x, "tpu")
    assert torch.softmax(device, 0).shape == (0, 3)
