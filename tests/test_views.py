# SPDX-License-Identifier: Apache-2.0
"""Reading and writing through every kind of view; a view launches nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import check, same

VIEWS = {
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(1, 2, 0),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:3],
    "steps": lambda x: x[::2, ::3],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "reshape": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (1, 5)),
    "expand": lambda x: x[:, :1].expand(-1, 4, -1),
    "diagonal": lambda x: x.diagonal(dim1=1, dim2=2),
    "movedim": lambda x: x.movedim(0, -1),
    "unfold": lambda x: x.unfold(2, 3, 1),
    "chunk": lambda x: x.chunk(2, dim=2)[1],
    "split": lambda x: x.split([1, 3], dim=1)[1],
    "as_strided": lambda x: x.as_strided((3, 2), (7, 2), 5),
    "overlapping": lambda x: x.as_strided((3, 3), (1, 1), 2),
    "chain": lambda x: x.transpose(0, 1)[1:].flatten(1)[:, 2::3],
    "transposed chain": lambda x: x.permute(2, 0, 1)[1:4:2, 1],
    "empty": lambda x: x[3:],
    "scalar": lambda x: x[1, 2, 3],
}
WRITABLE = [name for name in VIEWS if name not in ("expand", "unfold", "overlapping")]


def cube():
    return torch.arange(3 * 4 * 5, dtype=torch.float32).view(3, 4, 5)


@pytest.mark.parametrize("name", VIEWS)
def test_read(name):
    check(lambda x: VIEWS[name](x) * 2, cube())
    check(lambda x: VIEWS[name](x), cube())
    check(lambda x: VIEWS[name](x).contiguous(), cube())


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize(
    "write",
    [lambda v: v.fill_(-1), lambda v: v.mul_(3), lambda v: v.copy_(torch.full_like(v, 8))],
    ids=["fill", "mul", "copy"],
)
def test_write_reaches_the_base(name, write):
    def run(x):
        write(VIEWS[name](x))
        return x.clone()

    check(run, cube())


@pytest.mark.parametrize("name", WRITABLE)
def test_out_into_a_view(name):
    def run(x, a):
        view = VIEWS[name](x)
        torch.add(torch.ones_like(view), a, out=view)
        return x.clone()

    check(run, cube(), torch.tensor(2.0))


def test_views_launch_nothing():
    x = torch.ones(3, 4, 5, device="tpu") + 1
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats(), torch.tpu.memory_allocated()
    views = [view(x) for name, view in VIEWS.items() if name != "chain"]  # which copies
    assert len(views) == len(VIEWS) - 1
    assert (torch.tpu.cache_stats(), torch.tpu.memory_allocated()) == before


def test_moving_a_slice_compiles_a_few_programs():
    cache = torch.zeros(4, 64, device="tpu")
    for position in range(64):
        cache[:, position : position + 1] = position
        cache[:, position]
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats()["compiles"]
    other = torch.zeros(4, 64, device="tpu")
    for position in range(64):
        other[:, position : position + 1] = position
    assert torch.tpu.cache_stats()["compiles"] == before
    same(other, torch.arange(64.0).expand(4, 64))


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format])
def test_memory_formats(format):
    x = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)
    check(lambda x: x.to(memory_format=format), x)
    check(lambda x: x.to(memory_format=format) * 2, x)
    check(lambda x: torch.empty_like(x.to(memory_format=format)).fill_(1), x)
    check(lambda x: x.contiguous(memory_format=format).relu_(), x)


def test_indexed_assignment():
    def run(x):
        x[0] = 1
        x[1:, 2] = torch.arange(5.0)
        x[..., -1] += 2
        x[:, 1, 1:3] = torch.full((3, 2), 9.0)
        return x

    check(run, cube())


def test_overlapping_write_is_refused():
    for device in ("cpu", "tpu"):
        x = torch.zeros(3, device=device).expand(2, 3)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            x.add_(1)


@st.composite
def view_chains(draw):
    """A short random chain of view operations, as text and as a function."""
    steps = draw(
        st.lists(
            st.sampled_from(["t01", "t12", "s0", "s1", "step", "sel", "flat", "unsq", "exp"]),
            min_size=1,
            max_size=5,
        )
    )
    start = draw(st.integers(0, 2))
    return steps, start


def apply_chain(x, chain):
    steps, start = chain
    for step in steps:
        if step == "t01" and x.dim() >= 2:
            x = x.transpose(0, 1)
        elif step == "t12" and x.dim() >= 3:
            x = x.transpose(1, 2)
        elif step == "s0" and x.dim() >= 1:
            x = x[start:]
        elif step == "s1" and x.dim() >= 2:
            x = x[:, start:]
        elif step == "step" and x.dim() >= 1:
            x = x[start::2]
        elif step == "sel" and x.dim() >= 1 and x.shape[0] > start:
            x = x[start]
        elif step == "flat" and x.dim() >= 2 and x.is_contiguous():
            x = x.flatten(0, 1)
        elif step == "unsq":
            x = x.unsqueeze(0)
        elif step == "exp" and x.dim() >= 1 and x.shape[0] == 1:
            x = x.expand(2, *x.shape[1:])
    return x


@settings(max_examples=60, deadline=None, derandomize=True)
@given(view_chains())
def test_any_chain_reads_alike(chain):
    check(lambda x: apply_chain(x, chain) + 1, cube())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(view_chains())
def test_any_chain_writes_alike(chain):
    if "exp" in chain[0]:
        return

    def run(x):
        apply_chain(x, chain).add_(100)
        return x.clone()

    check(run, cube())
