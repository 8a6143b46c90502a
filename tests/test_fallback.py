# SPDX-License-Identifier: Apache-2.0
"""Where operators come from: rules, composites, decompositions, and the visible way to the host."""

import warnings

import pytest
import torch
import torch_tpu._C
from support import check_error, run_python, same
from torch_tpu import _decompositions

# Operators that need LAPACK, which no PJRT program has.
HOST_ONLY = [
    lambda x: torch.linalg.eigvals(x).abs().sort().values,
    lambda x: torch.geqrf(x)[1],
]


@pytest.fixture(autouse=True)
def allowed():
    torch_tpu._C.set_fallback_policy("allow")
    torch.tpu.reset_fallback_counts()
    yield
    torch_tpu._C.set_fallback_policy("warn")


@pytest.mark.parametrize("function", HOST_ONLY)
def test_runs_on_the_host_and_is_counted(function):
    x = torch.randn(4, 4)
    same(function(x.to("tpu")), function(x), rtol=1e-4, atol=1e-5)
    counts = torch.tpu.fallback_counts()
    assert counts and all(n >= 1 for n in counts.values())
    assert all(name.startswith("aten::") for name in counts)
    torch.tpu.reset_fallback_counts()
    assert torch.tpu.fallback_counts() == {}


def test_warns_once():
    run_python(
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                torch.geqrf(torch.ones(3, 3, device="tpu"))
        ours = [str(w.message) for w in seen if "aten::geqrf" in str(w.message)]
        assert len(ours) == 1, ours
        """
    )


def test_can_be_an_error():
    torch_tpu._C.set_fallback_policy("error")
    with pytest.raises(NotImplementedError, match="aten::geqrf"):
        torch.geqrf(torch.ones(3, 3, device="tpu"))


def test_policy_from_the_environment():
    run_python(
        """
        import torch
        try:
            torch.geqrf(torch.ones(3, 3, device="tpu"))
        except NotImplementedError:
            pass
        else:
            raise AssertionError("no error")
        """,
        TORCH_TPU_FALLBACK="error",
    )


def test_common_operators_need_no_fallback(no_fallback):
    x = torch.randn(4, 6, device="tpu", requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = torch.nn.functional.layer_norm((x @ x.t()).relu().softmax(-1), (4,))
        (y.std() + x.sort(1).values.topk(2).values.mean() + x.cumsum(0).max()).backward()
    assert torch.tpu.fallback_counts() == {}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("aten::addcmul", True),
        ("aten::native_group_norm", True),
        ("aten::no_such_op.Tensor", False),
    ],
)
def test_decompositions_are_found_by_name(name, found):
    assert (_decompositions.lookup(name) is not None) == found


def test_decomposed_operator(no_fallback):
    x = torch.randn(3, 4)
    same(torch.ops.aten.logit(x.sigmoid().to("tpu")), x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(0,), (3, 3), (25,), (5, 5), (7, 7)], ids=str)
def test_decomposed_operator_resizes_its_out(shape):
    x = torch.rand(5, 5) + 3
    for _ in range(2):
        out = torch.full(shape, 7.0, device="tpu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.mvlgamma(x.to("tpu"), 2, out=out)
        same(out, torch.mvlgamma(x, 2), rtol=1e-4, atol=1e-5)


def test_sizes_that_depend_on_values():
    x = torch.tensor([0, 3, 0, 5, 3])
    for function in (
        torch.nonzero,
        lambda x: x[x > 0],
        lambda x: torch.unique(x, return_counts=True),
        lambda x: x.masked_select(x > 2),
        lambda x: x.repeat_interleave(x),
        lambda x: x[:0].masked_select(x[:0] > 0),
        torch.bincount,
        lambda x: torch.where(x > 0),
    ):
        same(function(x.to("tpu")), function(x))


def test_repeats_are_counted_on_the_device(no_fallback):
    repeats = torch.tensor([2, 0, 3])
    for make in (
        torch.repeat_interleave,
        lambda r: torch.repeat_interleave(r[:0]),
        lambda r: torch.repeat_interleave(r.int(), output_size=5),
        lambda r: torch.arange(6, device=r.device).view(3, 2).repeat_interleave(r, 0),
    ):
        same(make(repeats.to("tpu")), make(repeats))
    for mistaken in (repeats - 1, repeats[None], repeats.float()):
        check_error(torch.repeat_interleave, mistaken)
    check_error(lambda r: torch.repeat_interleave(r, output_size=4), repeats)


def test_factories_left_to_the_device(no_fallback):
    for make in (torch.tril_indices, torch.triu_indices):
        same(make(4, 5, 1, device="tpu"), make(4, 5, 1))
        same(make(3, 2, dtype=torch.int32, device="tpu"), make(3, 2, dtype=torch.int32))
