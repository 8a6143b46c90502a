# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of every covered operator, on the device as on the CPU."""

import itertools
import warnings
from functools import partial

import pytest
import torch
from covered import ROWS, Row
from support import same, to_device
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

SAMPLES = 2
OPERATORS = {
    f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db
}

pytestmark = pytest.mark.usefixtures("no_fallback")


def samples(row: Row, gradient: bool = False):
    operator = OPERATORS[row.name]
    dtype = next(d for d in (torch.float32, torch.int64, torch.bool) if d in operator.dtypes)
    gradient = gradient and operator.supports_autograd and dtype.is_floating_point
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = operator.sample_inputs("cpu", dtype, requires_grad=gradient)
        return operator, list(itertools.islice(inputs, SAMPLES))


def compare(row: Row, sample, function):
    """``function(input, *args, **kwargs)`` does on the device what it does on the CPU."""
    results = []
    for device in ("cpu", "tpu"):
        first, args, kwargs = to_device((sample.input, sample.args, sample.kwargs), device)
        kwargs = {k: torch.device(device) if k == "device" else v for k, v in kwargs.items()}
        results.append(function(first, *args, **kwargs))
    same(results[1], results[0], strides=row.strides, rtol=row.rtol, atol=row.atol)


def tensors(value, requires_grad: bool = False):
    found = [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]
    return [t for t in found if t.requires_grad] if requires_grad else found


def gradient(operator, *args, **kwargs):
    leaves = tensors((args, kwargs), requires_grad=True)
    outputs = tensors(operator.op(*args, **kwargs), requires_grad=True)
    if not outputs or not leaves:
        return ()
    total = sum((t.abs() if t.is_complex() else t).sum() for t in outputs)
    return torch.autograd.grad(total, leaves, allow_unused=True)


def in_place(operator, x, *args, **kwargs):
    operator.inplace_variant(x, *args, **kwargs)
    return x


def out(operator, like, *args, **kwargs):
    device = tensors((args, kwargs))[0].device
    target = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=device)
    return operator.op(*args, **kwargs, out=target)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_forward(row):
    operator, inputs = samples(row)
    for sample in inputs:
        compare(row, sample, operator.op)


@pytest.mark.parametrize("row", [row for row in ROWS if row.gradient], ids=str)
def test_gradient(row):
    operator, inputs = samples(row, gradient=True)
    for sample in inputs:
        compare(row, sample, partial(gradient, operator))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_in_place_and_out(row):
    operator, inputs = samples(row)
    for sample in inputs:
        expected = operator.op(sample.input, *sample.args, **sample.kwargs)
        if not isinstance(expected, torch.Tensor):
            continue
        if operator.inplace_variant and fits(sample.input, expected):
            compare(row, sample, partial(in_place, operator))
        if operator.supports_out and tensors((sample.input, sample.args)):
            compare(row, sample, partial(out, operator, expected))


def fits(x, result) -> bool:
    return isinstance(x, torch.Tensor) and (x.shape, x.dtype) == (result.shape, result.dtype)
