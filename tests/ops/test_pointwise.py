# SPDX-License-Identifier: Apache-2.0
"""Element by element arithmetic beyond PyTorch's samples: NaN, infinities, wrap-around, texts."""

import pytest
import torch
from support import check, same

INF, NAN = float("inf"), float("nan")
FLOATS = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.3, INF, -INF, NAN, 1e30, 1e-30])
INTS = torch.tensor([0, 1, -1, 2, 3, -7, 63, 100, 2**62, -(2**63) + 1])

UNARY = {
    "relu": torch.relu,
    "hardtanh": torch.nn.functional.hardtanh,
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp_crossed": lambda x: x.clamp(2, 1),
    "nan_to_num": lambda x: x.nan_to_num(neginf=3.0),
    "sign": torch.sign,
    "signbit": torch.signbit,
    "round": torch.round,
    "square": lambda x: x**2,
    "root": lambda x: x**0.5,
    "inverse": lambda x: x**-1,
}
BINARY = {
    "maximum": torch.maximum,
    "fmax": torch.fmax,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "hypot": torch.hypot,
    "copysign": torch.copysign,
    "logaddexp": torch.logaddexp,
    "xlogy": torch.xlogy,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "heaviside": torch.heaviside,
}


@pytest.mark.parametrize("op", UNARY.values(), ids=UNARY)
def test_special_values(op):
    check(op, FLOATS)


@pytest.mark.parametrize("op", BINARY.values(), ids=BINARY)
def test_pairs_of_special_values(op):
    a, b = torch.meshgrid(FLOATS, FLOATS, indexing="ij")
    check(op, a.contiguous(), b.contiguous())


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integer_powers_wrap(dtype):
    base, exponent = torch.meshgrid(INTS.to(dtype), INTS.abs().to(dtype), indexing="ij")
    check(torch.pow, base.contiguous(), exponent.contiguous())


@pytest.mark.parametrize("bounds", [(0, 10), (0, 1, 0.1), (5, -5, -0.7), (1.5, 1e6, 333.3)])
@pytest.mark.parametrize("dtype", [None, torch.int64, torch.float16])
def test_ranges(bounds, dtype):
    if dtype == torch.float16 and bounds[1] > 1e5:
        bounds = (0, 5, 0.5)
    if dtype == torch.int64 and len(bounds) == 3 and abs(bounds[2]) < 1:
        bounds = (*bounds[:2], 2 if bounds[2] > 0 else -2)
    expected = torch.arange(*bounds, dtype=dtype)
    torch.testing.assert_close(torch.arange(*bounds, dtype=dtype, device="tpu").cpu(), expected)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (5, 5), (0, 3), (1, 7)])
@pytest.mark.parametrize("offset", [-3, -1, 0, 2, 9])
def test_triangle_indices(sizes, offset):
    for function in (torch.tril_indices, torch.triu_indices):
        for dtype in (torch.int64, torch.int32):
            expected = function(*sizes, offset, dtype=dtype)
            actual = function(*sizes, offset, dtype=dtype, device="tpu:1")
            assert actual.device == torch.device("tpu:1")
            same(actual, expected, strides=True)


def layouts(device):
    make = torch.randn(120, generator=torch.Generator().manual_seed(1)).abs_().to(device)
    return [
        make[:6].view(2, 3),
        make[:6].view(3, 2).t(),
        make.view(2, 4, 5, 3).permute(0, 3, 1, 2),
        make[:24].view(4, 6)[:, ::2],
        make[:4],
    ]


FOREACH = {
    "add": lambda x: torch._foreach_add(x, 2.0),
    "list": lambda x: torch._foreach_mul(x, [t.contiguous() for t in x]),
    "sqrt": torch._foreach_sqrt,
    "scalars": lambda x: torch._foreach_sub(x, [1.0, 2.0, 3.0, 4.0, 5.0]),
    "addcdiv": lambda x: torch._foreach_addcdiv(x, x, x, 2.0),
    "packed": lambda x: torch._foreach_addcmul(x, x, x, torch.arange(5.0, device=x[0].device)),
    "lerp": lambda x: torch._foreach_lerp(x, x[::-1][::-1], 0.3),
    "pow": lambda x: torch._foreach_pow(x, 1.7),
    "clamp": lambda x: torch._foreach_clamp_max(x, 0.5),
    "norm": torch._foreach_norm,
}


@pytest.mark.parametrize("name", FOREACH)
def test_each_result_of_a_list_keeps_its_layout(name):
    actual, expected = (FOREACH[name](layouts(device)) for device in ("tpu", "cpu"))
    for one, other in zip(actual, expected, strict=True):
        same(one, other, strides=True)


TEXTS = [
    (lambda x: torch.frac(x.long()), "\"frac_cpu\" not implemented for 'Long'"),
    (lambda x: torch.erf(x.cfloat()), "\"erf_vml_cpu\" not implemented for 'ComplexFloat'"),
    (lambda x: x.masked_fill(x.int(), 1), "only supports boolean masks, but got mask with dtype"),
    (lambda x: torch.where(x.int(), x, x), "expected condition to be a boolean tensor"),
    (lambda x: torch.relu(x.bool()), "Boolean inputs not supported for relu"),
    (lambda x: torch.nn.functional.gelu(x, approximate="x"), "must be either none or tanh"),
    (lambda x: (x.long() // torch.zeros_like(x.long())).cpu(), "ZeroDivisionError"),
]


@pytest.mark.parametrize("call,text", TEXTS, ids=[t[1][:20] for t in TEXTS])
def test_errors_are_pytorchs(call, text):
    for device in ("cpu", "tpu"):
        with pytest.raises(RuntimeError) as error:
            call(torch.ones(3, device=device))
        assert text in str(error.value)
