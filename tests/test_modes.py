# SPDX-License-Identifier: Apache-2.0
"""Strict and Debug: the switches, and the same values in both."""

import threading

import pytest
import torch
from support import check, run_python, same
from torch.tpu import EagerMode
from torch_tpu import _C

MODES = [EagerMode.DEFER_NEVER, EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING]


@pytest.fixture(autouse=True)
def strict():
    torch.tpu.eager_mode = EagerMode.DEFER_NEVER
    yield
    torch.tpu.eager_mode = EagerMode.DEFER_NEVER


def test_values_are_the_interface():
    assert [int(mode) for mode in EagerMode] == [0, 1, 2]
    assert EagerMode.STRICT is EagerMode.DEFER_NEVER
    assert EagerMode.DEBUG is EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING


def test_innermost_wins():
    with torch.tpu.set_eager_mode(EagerMode.DEBUG):
        assert torch.tpu.eager_mode == EagerMode.DEBUG
        with torch.tpu.set_eager_mode(EagerMode.STRICT):
            assert torch.tpu.eager_mode == EagerMode.STRICT
        torch.tpu.eager_mode = EagerMode.STRICT
        assert torch.tpu.eager_mode == EagerMode.DEBUG
    assert torch.tpu.eager_mode == EagerMode.STRICT


def test_override_is_the_threads_own():
    seen = []
    with torch.tpu.debug():
        thread = threading.Thread(target=lambda: seen.append(torch.tpu.eager_mode))
        thread.start()
        thread.join()
    assert seen == [EagerMode.STRICT]


def test_decorator_and_reuse():
    @torch.tpu.set_eager_mode(EagerMode.DEBUG)
    def inner():
        return torch.tpu.eager_mode

    assert inner() == inner() == EagerMode.DEBUG
    context = torch.tpu.set_eager_mode(EagerMode.DEBUG)
    with context, context:
        assert torch.tpu.eager_mode == EagerMode.DEBUG
    assert torch.tpu.eager_mode == EagerMode.STRICT


def test_unavailable_and_unknown_modes():
    with pytest.raises(NotImplementedError, match="DEFER_AND_FUSE is not available"):
        torch.tpu.eager_mode = EagerMode.DEFER_AND_FUSE
    with pytest.raises(NotImplementedError):
        torch.tpu.set_eager_mode(0)
    with pytest.raises(ValueError, match="17"):
        torch.tpu.eager_mode = 17


def test_private_name_of_the_interface():
    from torch_tpu._internal import execution_mode

    execution_mode.eager_mode = execution_mode.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    assert torch.tpu.eager_mode == EagerMode.DEBUG == execution_mode.eager_mode


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_same_values(mode):
    with torch.tpu.set_eager_mode(mode):
        check(lambda x: (x @ x.t()).softmax(1).sum(0), torch.randn(4, 5))
        check(lambda x: x.mul_(2).t()[1:].sub_(1), torch.randn(4, 5))


def test_debug_raises_at_the_line():
    table, index = torch.ones(3, 2, device="tpu"), torch.tensor([5], device="tpu")
    with torch.tpu.debug(), pytest.raises(IndexError):
        table[index]


def test_strict_raises_at_the_next_synchronization():
    table, index = torch.ones(3, 2, device="tpu"), torch.tensor([5], device="tpu")
    with pytest.raises(IndexError):
        torch.nn.functional.embedding(index, table).cpu()
        torch.tpu.synchronize()
    torch.tpu.synchronize()
    same(table + 1, torch.full((3, 2), 2.0))


def test_precision():
    previous = torch.get_float32_matmul_precision()
    with torch.tpu.precision(torch.tpu.Precision.HIGHEST):
        check(lambda x: x @ x, torch.randn(8, 8))
    assert torch.get_float32_matmul_precision() == previous == "highest"
    for name in ("medium", "high", "highest"):
        torch.set_float32_matmul_precision(name)
        check(lambda x: x @ x, torch.randn(8, 8), rtol=2e-2, atol=2e-2)


@pytest.fixture
def finite_checks():
    _C.set_finite_checks(True)
    yield
    _C.set_finite_checks(False)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.log(), r"aten::log: finite operands give -inf at \[1, 0\] of result 0"),
        (lambda x: x.t().log(), r"aten::log: finite operands give -inf at \[0, 1\]"),
        (lambda x: (x - 4).sqrt_(), r"aten::sqrt_: .* -?nan at \[0, 0\]"),
        (lambda x: x.mul_(3e38)[1:].mul_(9), r"aten::mul_.Tensor: .* inf at \[0, 1\]"),
        (lambda x: x.double() / 0, r"aten::div.Tensor: .* inf at \[0, 0\]"),
    ],
)
def test_finite_checks_name_op_element_and_line(finite_checks, function, text):
    x = torch.tensor([[2.0, 3.0], [0.0, 1.0]], device="tpu")
    if "mul_" in text:
        x = torch.tensor([[0.0, 0.0], [0.0, 1.0]], device="tpu")
    with torch.tpu.debug(), pytest.raises(RuntimeError, match=text + ".*" + __file__):
        function(x)


def test_finite_checks_blame_the_origin_only(finite_checks):
    x = torch.tensor([0.0, float("nan")], device="tpu")
    with torch.tpu.debug():
        x + 1  # the operand was not finite
        torch.ones(3, device="tpu").masked_fill(torch.ones(3, device="tpu") > 0, float("-inf"))
        torch.ones(3, dtype=torch.int64, device="tpu") * 2
    x[:1].log()  # Strict looks at nothing
    _C.set_finite_checks(False)
    with torch.tpu.debug():
        x[:1].log()


def test_finite_checks_by_environment():
    code = """
import torch
try:
    torch.zeros(2, device="tpu").log()
except RuntimeError as error:
    print(error)
"""
    out = run_python(code, TORCH_TPU_LAUNCH_BLOCKING="1", TORCH_TPU_ENABLE_DEBUG_CHECKS="1").stdout
    assert "finite operands give -inf at [0]" in out
