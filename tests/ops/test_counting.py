# SPDX-License-Identifier: Apache-2.0
"""Distinct elements, counts per bin and reductions per segment."""

import pytest
import torch
from support import check, check_error

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = float("nan"), float("inf")
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
