# SPDX-License-Identifier: Apache-2.0
"""Distinct elements, counts per bin and reductions per segment."""

import pytest
import torch
from support import check, check_error, to_device

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = float("nan"), float("inf")


def check_data_error(function, *args):
    """What only the data shows is found on the device: the CPU's text, then where it was."""
    with pytest.raises(RuntimeError) as expected:
        function(*args)
    with pytest.raises(RuntimeError) as actual:
        function(*to_device(args))
        torch.tpu.synchronize()
    assert str(actual.value).startswith(str(expected.value).splitlines()[0])


SEQUENCES = {
    "floats": torch.tensor([3.0, NAN, 1.0, 3.0, NAN, -0.0, 0.0, INF, -INF, INF]),
    "integers": torch.tensor([[3, 1, 1, 2], [-4, 3, 3, 3]]),
    "one": torch.tensor(5),
    "empty": torch.empty(0, 3),
    "bool": torch.tensor([True, True, False, True]),
    "half": torch.tensor([1.0, 2.0, 1.0]).half(),
    "bytes": torch.tensor([200, 1, 200], dtype=torch.uint8),
    "many": torch.randint(0, 700, (5000,), generator=torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("wanted", [(False, False), (True, False), (False, True), (True, True)])
def test_unique_elements(name, wanted):
    x = SEQUENCES[name]
    ops = torch.ops.aten
    check(lambda x: ops._unique2(x, True, *wanted), x)
    check(lambda x: ops._unique2(x, False, *wanted), x)
    check(lambda x: ops._unique(x, True, wanted[0]), x)
    check(lambda x: ops.unique_consecutive(x, *wanted), x)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_unique_rows(dim, dtype):
    x = torch.randint(0, 2, (6, 3, 5), generator=torch.Generator().manual_seed(0)).to(dtype)
    x = torch.cat([x, x.flip(dim), x], dim)
    check(lambda x: torch.unique(x, True, True, True, dim), x)
    check(lambda x: torch.unique_consecutive(x, True, True, dim), x)
    check(lambda x: torch.unique_consecutive(x.repeat_interleave(2, dim), True, True, dim), x)
    check(lambda x: torch.unique(x, True, True, True, 0), x.new_empty(0, 3))


def test_unique_refuses():
    rows = torch.ops.aten.unique_dim
    check_error(lambda x: x.unique(), torch.ones(3, dtype=torch.complex64))
    check_error(lambda x: rows(x, 0), torch.ones(3, dtype=torch.complex64))
    check_error(lambda x: rows(x, 1), torch.empty(0, 3))
    check_error(lambda x: rows(x, 0), torch.empty(0, 0))
    check_error(lambda x: rows(x, 3), torch.ones(2, 2))
    check_error(lambda x: x.unique_consecutive(dim=0), torch.tensor(1))


def test_bincount():
    x = torch.tensor([3, 1, 3, 7])
    for weights in (None, torch.rand(4), torch.rand(4).double(), torch.tensor([1, 2, 3, 4])):
        check(lambda x, w: torch.bincount(x, w), x, weights)
        check(lambda x, w: torch.bincount(x.to(torch.uint8), w, minlength=9), x, weights)
    check(lambda x: torch.bincount(x[:0]), x)
    check(lambda x: torch.bincount(x[:0], minlength=3), x)


def test_bincount_refuses():
    x = torch.tensor([1, 2])
    check_error(torch.bincount, -x)
    check_error(torch.bincount, x.float())
    check_error(torch.bincount, x[None])
    check_error(lambda x: torch.bincount(x, minlength=-1), x)
    check_error(torch.bincount, x, torch.rand(3))


SAMPLE = torch.cat([torch.randn(200, generator=torch.Generator().manual_seed(0)), torch.zeros(3)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_histc(dtype):
    x = SAMPLE.to(dtype)
    exact = dtype != torch.bfloat16  # the CPU rounds each step of finding the bin
    for low, high in ((0, 0), (-1, 1), (-0.5, 2.5)):
        check(lambda x, low=low, high=high: x.histc(7, low, high), x.round() if not exact else x)
    check(lambda x: torch.cat([x, x.new_tensor([NAN, INF])]).histc(4, -2, 2), x.round())
    check(lambda x: x[:1].histc(3), x)
    check(lambda x: x[:0].histc(3), x)
    check(lambda x: x.sum().histc(3, -9, 99), x)


def test_histc_refuses():
    x = torch.tensor([1.0, 2.0])
    check_error(lambda x: x.histc(0), x)
    check_error(lambda x: x.histc(3, 2, 1), x)
    check_error(lambda x: x.histc(3, 0, INF), x)
    check_error(lambda x: x.long().histc(3), x)
    for bad in (NAN, INF):
        with pytest.raises(RuntimeError, match="range of .* is not finite"):
            torch.tensor([1.0, bad], device="tpu").histc(3).cpu()


def test_histogram():
    weight = SAMPLE.abs()
    edges = torch.tensor([-1.0, 0.0, 0.25, 2.0])
    for density in (False, True):
        options = {"density": density}
        check(lambda x, o=options: torch.histogram(x, 6, **o), SAMPLE, rtol=1e-5, atol=1e-5)
        check(
            lambda x, w, o=options: torch.histogram(x, 6, range=(-1.0, 2.0), weight=w, **o),
            *(SAMPLE, weight),
            **{"rtol": 1e-5, "atol": 1e-5},
        )
        check(
            lambda x, e, w, o=options: torch.histogram(x, e, weight=w, **o),
            *(SAMPLE, edges, weight),
            **{"rtol": 1e-5, "atol": 1e-5},
        )
    check(lambda x: torch.histogram(x[:0], 2), SAMPLE)


def test_histogram_refuses():
    x = torch.tensor([1.0, 2.0])
    check_error(lambda x: torch.histogram(x, 0), x)
    check_error(lambda x: torch.histogram(x, 2, range=(2.0, 1.0)), x)
    check_error(lambda x: torch.histogram(x, 2, range=(2.0, 1.0, 3.0)), x)
    check_error(lambda x: torch.histogram(x, 2, range=(0.0, NAN)), x)
    check_error(lambda x: torch.histogram(x, 2, weight=x[:1]), x)
    check_error(lambda x: torch.histogram(x.long(), 2), x)
    check_error(torch.histogram, x, torch.tensor([1, 2]))
    check_error(torch.histogram, x, torch.rand(2, 2))
    check_data_error(lambda x: torch.histogram(x, 2), torch.tensor([1.0, NAN]))
    check_error(lambda x: torch.histogramdd(x[None], [2]), x)
    check_error(lambda x: torch.histogramdd(x, [2]), x)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 2.5])
def test_segment_reduce(reduce, initial):
    def run(data, lengths, by_offsets=False, axis=0):
        data.requires_grad_()
        if by_offsets:
            zero = torch.zeros_like(lengths.narrow(-1, 0, 1))
            name, given = "offsets", torch.cat([zero, lengths.cumsum(-1)], -1)
        else:
            name, given = "lengths", lengths
        out = torch.segment_reduce(data, reduce, **{name: given}, axis=axis, initial=initial)
        scale = torch.arange(1.0, out.numel() + 1, device=out.device).view(out.shape)
        return out, torch.autograd.grad(out, data, scale)

    row = torch.tensor([1.0, 2.0, 2.0, 0.0, 5.0, 0.0, 0.0, NAN, 1.0])
    check(run, row, torch.tensor([3, 0, 2, 2, 2]), rtol=1e-5, atol=1e-5)
    check(lambda d, n: run(d, n, True), row, torch.tensor([3, 0, 2, 2, 2]), rtol=1e-5, atol=1e-5)
    rows, lengths = torch.arange(24.0).view(2, 4, 3), torch.tensor([[1, 3], [4, 0]])
    for by_offsets in (False, True):
        check(lambda d, n, b=by_offsets: run(d, n, b, 1), rows, lengths, rtol=1e-5, atol=1e-5)


def test_segment_reduce_refuses():
    data, reduce = torch.arange(5.0), torch.segment_reduce
    check_data_error(lambda d, n: reduce(d, "sum", lengths=n), data, torch.tensor([2, 4]))
    check_data_error(lambda d, n: reduce(d, "sum", lengths=n), data, torch.tensor([6, -1]))
    check_error(lambda d, n: reduce(d, "x", lengths=n), data, torch.tensor([5]))
    check_data_error(lambda d, n: reduce(d, "sum", offsets=n), data, torch.tensor([0, 3, 2, 5]))
    check_error(lambda d, n: reduce(d, "sum", lengths=n, axis=1), data, torch.tensor([5]))
    check_error(lambda d, n: reduce(d, "sum", lengths=n), data[None], torch.tensor([[1]]))
    check_error(lambda d, n: reduce(d, "sum", lengths=n), data.long(), torch.tensor([5]))
    check_error(lambda d: reduce(d, "sum"), data)
    check(lambda d, n: reduce(d, "sum", lengths=n, unsafe=True), data, torch.tensor([2, 1]))
