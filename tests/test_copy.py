# SPDX-License-Identifier: Apache-2.0
"""copy_ and to(): between devices and dtypes, broadcasting, strided, conjugated."""

import itertools

import pytest
import torch
from support import check, same

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
PLACES = ["cpu", "tpu:0", "tpu:1"]


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(PLACES, 2)))
@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_between_devices(source, target, layout):
    reference = torch.arange(24.0).view(4, 6)
    x = reference.to(source)
    if layout == "strided":
        x, reference = x.t()[::2], reference.t()[::2]
    moved = x.to(target)
    assert moved.device == torch.device(target)
    same(moved, reference)
    destination = torch.zeros(6, 8, device=target)
    destination[: x.shape[0], 1 : 1 + x.shape[1]].copy_(x)
    expected = torch.zeros(6, 8)
    expected[: x.shape[0], 1 : 1 + x.shape[1]] = reference
    same(destination, expected)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)))
def test_between_dtypes(source, target):
    x = torch.tensor([0.0, 1.0, 2.6, 100.0]).to(source)
    check(lambda x: x.to(target), x)
    check(lambda x: torch.zeros(4, dtype=target, device=x.device).copy_(x), x)
    same(torch.zeros(4, dtype=target, device="tpu").copy_(x), x.to(target))
    same(torch.zeros(4, dtype=target).copy_(x.to("tpu")), x.to(target))


def test_broadcast():
    check(lambda x, y: x.copy_(y), torch.zeros(3, 4), torch.arange(4.0))
    check(lambda x, y: x.copy_(y), torch.zeros(3, 4), torch.tensor(7))
    same(torch.zeros(3, 4, device="tpu").copy_(torch.arange(4.0)), torch.arange(4.0).expand(3, 4))


def test_onto_itself_and_overlapping():
    check(lambda x: x.copy_(x), torch.arange(4.0))
    check(lambda x: x.copy_(x.flip(0)), torch.arange(4.0))
    check(lambda x: x.t().copy_(x.clone()), torch.arange(9.0).view(3, 3))


def test_conjugate_and_negative_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    check(lambda z: z.conj() * 2, z, strides=False)
    check(lambda z: z.conj().clone(), z)
    check(lambda z: z.conj().imag.clone(), z)
    check(lambda z: torch.zeros_like(z).copy_(z.conj()), z)
    check(lambda z: z.conj().resolve_conj(), z)
    same(z.to("tpu").conj().cpu(), z.conj())
    same(z.to("tpu").copy_(z.conj()), z.conj())


def test_to_keeps_identity_and_options():
    x = torch.arange(3.0, device="tpu")
    assert x.to("tpu") is x and x.to("tpu:0") is x
    assert x.to("tpu", copy=True) is not x
    assert x.to(torch.float64).dtype == torch.float64
    assert x.to(torch.zeros(1, dtype=torch.int32)).dtype == torch.int32
    module = torch.nn.Linear(2, 3).to("tpu", torch.bfloat16)
    assert module.weight.is_tpu and module.weight.dtype == torch.bfloat16


def test_scalars_and_empties():
    for x in (torch.tensor(3.5), torch.empty(0), torch.empty(2, 0, 3), torch.tensor([])):
        same(x.to("tpu").cpu(), x)
    assert torch.tensor(3, device="tpu").item() == 3
    assert torch.tensor(2.5, device="tpu", dtype=torch.bfloat16).item() == 2.5
    assert bool(torch.tensor([True], device="tpu"))
    assert int(torch.tensor([7], device="tpu")) == 7
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        torch.ones(2, device="tpu").item()


def test_pinned_memory():
    x = torch.arange(4.0)
    if torch.accelerator.is_available():
        same(x.pin_memory().to("tpu", non_blocking=True), x)


def test_large():
    x = torch.arange(3_000_000.0)
    y = x.to("tpu")
    same(y.cpu(), x)
    same((y + 1)[-3:], x[-3:] + 1)


def test_factories():
    for make in (
        lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
        lambda d: torch.zeros(3, device=d),
        lambda d: torch.full((2, 2), 3.5, device=d),
        lambda d: torch.arange(2, 11, 3, device=d),
        lambda d: torch.linspace(0, 1, 5, device=d),
        lambda d: torch.eye(3, device=d),
        lambda d: torch.tril(torch.ones(3, 3, device=d)),
        lambda d: torch.zeros_like(torch.ones(2, 3, device=d).t()),
        lambda d: torch.empty_strided((2, 3), (1, 2), device=d).fill_(2),
        lambda d: torch.as_tensor([1.0], device=d),
        lambda d: torch.full((3,), True, device=d),
    ):
        same(make("tpu"), make("cpu"), strides=True)
