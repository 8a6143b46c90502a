# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's samples of matrix products leave out."""

import pytest
import torch
from support import check, check_error

pytestmark = pytest.mark.usefixtures("no_fallback")

SHAPES = {
    torch.addmm: ((2, 4), (2, 3), (3, 4)),
    torch.addmv: ((2,), (2, 3), (3,)),
    torch.addr: ((2, 4), (2,), (4,)),
    torch.baddbmm: ((5, 2, 4), (5, 2, 3), (5, 3, 4)),
    torch.addbmm: ((2, 4), (5, 2, 3), (5, 3, 4)),
}


@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
def test_beta_zero_does_not_read_self(function):
    first, *rest = SHAPES[function]
    operands = [torch.full(first, float("nan")), *(torch.randn(s) for s in rest)]
    check(lambda *a: function(*a, beta=0, alpha=1.5), *operands, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_integers_wrap(dtype):
    a, b = (torch.randint(0, 100, s).to(dtype) for s in ((7, 9), (9, 5)))
    check(torch.mm, a, b)


def test_bytes_into_ints():
    a, b = (torch.randint(-128, 128, s, dtype=torch.int8) for s in ((20, 32), (32, 16)))
    check(torch._int_mm, a, b)


@pytest.mark.parametrize("function", [torch.mm, torch.bmm, torch.mv, torch.dot])
def test_bool_is_refused(function):
    shape = {torch.bmm: (2, 2, 2), torch.dot: (2,)}.get(function, (2, 2))
    a = torch.ones(shape, dtype=torch.bool)
    b = torch.ones(2, dtype=torch.bool) if function is torch.mv else a
    check_error(function, a, b)
