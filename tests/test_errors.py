# SPDX-License-Identifier: Apache-2.0
"""Mistakes raise what the CPU raises, and leave everything else usable."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.nn.functional as F
from support import check, check_error, run_python, same

X, Y, INDEX = torch.ones(2, 3), torch.ones(4), torch.tensor([0, 1])
MISTAKES = {
    "broadcast": lambda x, y, i: x + y,
    "matmul": lambda x, y, i: x @ x,
    "matmul of vectors": lambda x, y, i: x @ y,
    "bmm": lambda x, y, i: torch.bmm(x, x),
    "cat": lambda x, y, i: torch.cat([x, y]),
    "stack": lambda x, y, i: torch.stack([x, y]),
    "dimension": lambda x, y, i: x.sum(5),
    "softmax dimension": lambda x, y, i: x.softmax(3),
    "view": lambda x, y, i: x.view(4, 2),
    "view of transposed": lambda x, y, i: x.t().view(6),
    "in-place broadcast": lambda x, y, i: y.add_(x.new_ones(2, 4)),
    "in-place cast": lambda x, y, i: i.add_(1.5),
    "out cast": lambda x, y, i: torch.add(
        y, y, out=torch.empty(4, dtype=torch.int64, device=y.device)
    ),
    "select": lambda x, y, i: x[7],
    "narrow": lambda x, y, i: x.narrow(1, 2, 5),
    "float index": lambda x, y, i: x[y],
    "gather dtype": lambda x, y, i: x.gather(0, x),
    "expand": lambda x, y, i: x.expand(5, 3),
    "permute": lambda x, y, i: x.permute(0, 0),
    "integer division kind": lambda x, y, i: torch.div(x, x, rounding_mode="up"),
    "negative integer power": lambda x, y, i: i.pow(-1),
    "fill overflow": lambda x, y, i: torch.empty(2, dtype=torch.uint8, device=x.device).fill_(999),
    "item": lambda x, y, i: x.item(),
    "truth": lambda x, y, i: bool(x),
    "int of float alpha": lambda x, y, i: torch.add(i, i, alpha=1.5),
    "dropout": lambda x, y, i: F.dropout(x, 2.0),
    "normal": lambda x, y, i: x.normal_(0, -1),
    "conv channels": lambda x, y, i: F.conv2d(x.new_ones(1, 3, 5, 5), x.new_ones(2, 4, 3, 3)),
    "layer norm": lambda x, y, i: F.layer_norm(x, (4,)),
    "bool subtraction": lambda x, y, i: (x > 0) - (x > 0),
    "resize of a leaf": lambda x, y, i: x.requires_grad_().resize_(4),
    "empty maximum": lambda x, y, i: x[:0].max(),
    "cross entropy": lambda x, y, i: F.cross_entropy(x, y.long()),
    "clamp": lambda x, y, i: x.clamp(),
    "arange": lambda x, y, i: torch.arange(0, 5, -1, device=x.device),
    "chunk": lambda x, y, i: x.chunk(0),
    "partial overlap": lambda x, y, i: y[1:].add_(y[:-1]),
    "floor of complex": lambda x, y, i: (x + 1j) // 2,
    "rounded complex quotient": lambda x, y, i: torch.div(x + 1j, 2, rounding_mode="trunc"),
    "remainder by complex": lambda x, y, i: torch.remainder(1j, x),
    "order of complex": lambda x, y, i: x > 1j,
    "shift by a fraction": lambda x, y, i: i << 1.5,
    "mixed convolution": lambda x, y, i: F.conv2d(
        x.new_ones(1, 3, 5, 5), x.new_ones(2, 3, 3, 3).double()
    ),
    "mixed transposed convolution": lambda x, y, i: F.conv_transpose1d(
        x.new_ones(1, 3, 5), x.new_ones(3, 2, 3).int()
    ),
    "convolution of bool": lambda x, y, i: F.conv2d(
        x.new_ones(1, 3, 5, 5).bool(), x.new_ones(2, 3, 3, 3).bool()
    ),
    "byte mask": lambda x, y, i: y.__setitem__((y > 0).byte(), 5),
    "index_put dtype": lambda x, y, i: y.index_put_((i,), y[:2].double()),
    "masked_scatter dtype": lambda x, y, i: y.masked_scatter(y > 0, y.double()),
    "random_ range": lambda x, y, i: i.to(torch.uint8).random_(500),
    "random_ from": lambda x, y, i: i.to(torch.uint8).random_(-5, 5),
    "uniform_ of integers": lambda x, y, i: i.uniform_(),
    "range of complex": lambda x, y, i: torch.arange(1j, 3, device=x.device),
    "long range": lambda x, y, i: torch.arange(1e300, 1e301, dtype=torch.int64, device=x.device),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name):
    check_error(MISTAKES[name], X, Y, INDEX)


M = torch.tensor([True, False, True])
FIRST = torch.tensor([0])
# The CPU's kernels convert a Python number to the tensor's dtype and refuse what overflows.
CONVERTING = {
    "fill_": lambda x, v: x.fill_(v),
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype, device=x.device),
    "new_full": lambda x, v: x.new_full((2,), v),
    "masked_fill": lambda x, v: x.masked_fill(M.to(x.device), v),
    "index_fill": lambda x, v: x.index_fill(0, FIRST.to(x.device), v),
    "scatter": lambda x, v: x.scatter(0, FIRST.to(x.device), v),
    "scatter reduce": lambda x, v: x.scatter(0, FIRST.to(x.device), v, reduce="add"),
    "setitem": lambda x, v: x.__setitem__(0, v),
    "setitem by mask": lambda x, v: x.__setitem__(M.to(x.device), v),
    "setitem by list": lambda x, v: x.__setitem__([0, 1], v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "clamp": lambda x, v: x.clamp(0, v),
    "clamp_max_": lambda x, v: x.clamp_max_(v),
    "pow": lambda x, v: x**v,
    "alpha": lambda x, v: torch.add(x, x, alpha=v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addmm": lambda x, v: torch.addmm(x.expand(3, 3), x.expand(3, 3), x.expand(3, 3), alpha=v),
    "addmv": lambda x, v: torch.addmv(x, x.expand(3, 3), x, beta=v),
    "addr": lambda x, v: torch.addr(x.expand(3, 3), x, x, beta=v),
    "threshold": lambda x, v: F.threshold(x, v, 0),
    "threshold value": lambda x, v: F.threshold(x, 0, v),
    "hardtanh": lambda x, v: F.hardtanh(x, 0, v),
    "where": lambda x, v: torch.where(M.to(x.device), x, v),
    "linspace": lambda x, v: torch.linspace(0, v, 3, dtype=x.dtype, device=x.device),
    "index_add": lambda x, v: x.index_add(0, FIRST.to(x.device), x[:1], alpha=v),
    "foreach": lambda x, v: torch._foreach_addcmul([x], [x], [x], v),
    "foreach pow": lambda x, v: torch._foreach_pow([x], v),
}
FLOATING = {
    "lerp": lambda x, v: torch.lerp(x, x, v),
    "leaky_relu": lambda x, v: F.leaky_relu(x, v),
    "elu": lambda x, v: F.elu(x, v),
    "softplus": lambda x, v: F.softplus(x, v),
    "hardshrink": lambda x, v: F.hardshrink(x, v),
    "logit": lambda x, v: torch.logit(x, v),
    "uniform_": lambda x, v: x.uniform_(0, v),
}
OVERFLOWS = [
    (torch.uint8, 999),
    (torch.uint8, -300),
    (torch.int8, 200),
    (torch.int32, 2**40),
    (torch.int64, 1e19),
    (torch.float32, 1e300),
    (torch.float16, 70000.0),
    (torch.bfloat16, -1e39),
    (torch.complex64, 1e300),
]


def raises_like_the_cpu(function, x, value):
    try:
        function(x.clone(), value)
    except Exception:
        check_error(lambda x: function(x, value), x)
    else:
        function(x.to("tpu"), value)


@pytest.mark.parametrize(("dtype", "value"), OVERFLOWS, ids=str)
@pytest.mark.parametrize("name", [*CONVERTING, *FLOATING])
def test_number_that_overflows(name, dtype, value):
    if name in FLOATING and not dtype.is_floating_point:
        return
    function = (CONVERTING | FLOATING)[name]
    x = torch.ones(3, dtype=dtype)
    raises_like_the_cpu(function, x, 1)  # the same program refuses one number and takes another
    raises_like_the_cpu(function, x, value)


def test_what_wraps_and_what_is_true():
    check(lambda x: x.fill_(-1), torch.ones(2, dtype=torch.uint8))
    for value in (0.5, 1e300, 1j, 0.0, -0.0, float("nan")):
        check(lambda x, v=value: x.fill_(v), torch.ones(2, dtype=torch.bool))
    check(lambda x: x / 999, torch.ones(2, dtype=torch.uint8))
    check(lambda x: torch.copysign(x, -300), torch.ones(2, dtype=torch.uint8))
    check(lambda x: x.fill_(float("inf")), torch.ones(2, dtype=torch.float16))


@pytest.mark.parametrize("mode", ["STRICT", "DEBUG"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: F.embedding(i, x),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x.scatter(0, i[:, None], 1.0),
        lambda x, i: x.index_add(0, i, x.new_ones(2, 3)),
        lambda x, i: F.nll_loss(x, i),
    ],
)
def test_index_out_of_range_raises(function, mode):
    x, index = torch.ones(2, 3, device="tpu"), torch.tensor([0, 9], device="tpu")
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode[mode]):
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)|index"):
            function(x, index)
            torch.tpu.synchronize()
        same(function(x, index.clamp(max=1)), function(x.cpu(), index.clamp(max=1).cpu()))


def test_mixed_devices():
    x = torch.ones(3)
    text = "Expected all tensors to be on the same device, but"
    with pytest.raises(RuntimeError, match=f"{text}.*(tpu:0.*cpu|cpu.*tpu:0)"):
        x.to("tpu") + x
    with pytest.raises(RuntimeError, match=f"{text}.*(tpu:0.*tpu:1|tpu:1.*tpu:0)"):
        x.to("tpu:0") + x.to("tpu:1")
    with pytest.raises(RuntimeError, match="same device|tpu"):
        torch.nn.Linear(3, 3)(x.to("tpu"))
    same(x.to("tpu") + torch.tensor(2.0), x + 2)


def test_a_failure_leaves_the_rest_usable():
    x, keep = torch.ones(2, 3, device="tpu"), torch.arange(3.0, device="tpu")
    derived = keep * 2
    for _ in range(3):
        with pytest.raises(RuntimeError):
            x @ x
    x.add_(keep)
    same(x, 1 + torch.arange(3.0).expand(2, 3))
    same(derived, torch.arange(3.0) * 2)


def test_a_failed_write_leaves_the_target_as_it_was():
    x = torch.arange(4.0, device="tpu")
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(3, device="tpu"))
    same(x, torch.arange(4.0))


def test_unsupported_dtype_is_named():
    with pytest.raises(
        (RuntimeError, TypeError, NotImplementedError), match="(?i)complex.?32|half"
    ):
        torch.ones(3, device="tpu", dtype=torch.complex32)


def test_interrupt():
    """Ctrl-C ends a long loop with KeyboardInterrupt, and the device still works."""
    code = """
import signal, torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
x = torch.ones(300, 300, device="tpu")
print("ready", flush=True)
try:
    while True:
        x = (x @ x).clamp(0, 1)
except KeyboardInterrupt:
    print(torch.ones(2, device="tpu").sum().item())
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert out == "2.0\n"


def test_fork_after_start_is_refused_clearly():
    run_python(
        """
        import os, torch
        x = torch.ones(3, device="tpu")
        x.sum().item()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(3, device="tpu")
            except RuntimeError as error:
                os._exit(0 if "Cannot re-initialize TPU in forked subprocess" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert x.sum().item() == 3
        """
    )


def test_fork_before_start_works():
    run_python(
        """
        import os, torch
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.ones(3, device="tpu").sum().item() == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert torch.ones(3, device="tpu").sum().item() == 3
        """
    )


OUT = {
    "cat": lambda x, o: torch.cat([x, x], out=o),
    "stack": lambda x, o: torch.stack([x, x], out=o),
    "add": lambda x, o: torch.add(x, x, out=o),
    "mean": lambda x, o: torch.mean(x, 0, out=o),
    "sum": lambda x, o: torch.sum(x, 0, out=o),
    "amax": lambda x, o: torch.amax(x, 0, out=o),
    "aminmax": lambda x, o: torch.aminmax(x, dim=0, out=(o, torch.empty(0, device=x.device))),
    "argmax": lambda x, o: torch.argmax(x, 0, out=o),
    "all": lambda x, o: torch.all(x, 0, out=o),
    "norm": lambda x, o: torch.linalg.vector_norm(x, 2, 0, out=o),
    "mm": lambda x, o: torch.mm(x, x.t(), out=o),
    "gather": lambda x, o: torch.gather(x, 0, x.long() * 0, out=o),
    "tril": lambda x, o: torch.tril(x, out=o),
    "clamp": lambda x, o: torch.clamp(x, 0, 1, out=o),
    "where": lambda x, o: torch.where(x > 0, x, x, out=o),
    "index_select": lambda x, o: torch.index_select(x, 0, x[0].long() * 0, out=o),
    "take": lambda x, o: torch.take(x, x[0].long() * 0, out=o),
    "cummax": lambda x, o: torch.cummax(
        x, 0, out=(o, torch.empty(0, dtype=torch.long, device=x.device))
    ),
    "isin": lambda x, o: torch.isin(x, x, out=o),
    "eq": lambda x, o: torch.eq(x, x, out=o),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize("name", OUT)
def test_dtype_of_out(name, dtype):
    def function(x):
        return OUT[name](x, torch.empty(0, dtype=dtype, device=x.device))

    try:
        function(X)
    except Exception:
        check_error(function, X)
    else:
        check(function, X)


@pytest.mark.parametrize("values", [[0, 9], [0, -9]])
@pytest.mark.parametrize("classes", [3, -1])
def test_one_hot_out_of_range(values, classes):
    index = torch.tensor(values)
    try:
        F.one_hot(index, classes)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)):
            F.one_hot(index.to("tpu"), classes)
            torch.tpu.synchronize()
    else:
        check(lambda i: F.one_hot(i, classes), index)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dims", [(2, 3), (2, 3, 1, 1)])
def test_target_out_of_range(dims, reduction):
    target = torch.tensor([0, 9], device="tpu").view(2, *dims[2:])
    with torch.tpu.debug(), pytest.raises(IndexError, match="Target 9 is out of bounds") as caught:
        F.nll_loss(torch.ones(dims, device="tpu"), target, reduction=reduction)
    assert __file__ in str(caught.value), "the line is the user's, not PyTorch's"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x.add_(1),
        lambda x: x.clone(),
        lambda x: x.cpu(),
        lambda x: x.copy_(torch.ones(3)),
        lambda x: x.sum().item(),
    ],
)
def test_freed_storage(function):
    x = torch.ones(3, device="tpu")
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        function(x)
    x.untyped_storage().resize_(12)
    same(x.fill_(2), torch.full((3,), 2.0))
