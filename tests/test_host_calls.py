# SPDX-License-Identifier: Apache-2.0
"""PyTorch's CPU kernels inside programs: values, errors, counting, and the switch."""

import pytest
import torch
import torch_tpu._C
from support import check, check_error, run_python, same

pytestmark = pytest.mark.skipif(
    torch_tpu._C.platform() != "cpu", reason="host calls exist on the CPU plugin only"
)


@pytest.fixture(autouse=True)
def allowed():
    torch_tpu._C.set_fallback_policy("allow")
    torch.tpu.reset_fallback_counts()
    yield
    torch_tpu._C.set_fallback_policy("warn")
    torch_tpu._C.set_host_calls(True)


def launches():
    return torch.tpu.cache_stats()["launches"]


def square(n=5, dtype=torch.float32):
    return torch.randn(n, n, dtype=dtype)


def positive(n=5, dtype=torch.float32):
    x = square(n, dtype)
    return x @ x.mT.conj() + torch.eye(n, dtype=dtype)


# Operators without a rule; what they return is unique, or made so.
CALLS = {
    "eigvals": lambda x, s: torch.linalg.eigvals(x).abs().sort().values,
    "geqrf": lambda x, s: torch.geqrf(x),
    "eigh": lambda x, s: torch.linalg.eigh(s)[0],
    "svdvals": lambda x, s: torch.linalg.svdvals(x),
    "lu": lambda x, s: torch.linalg.lu_factor(x),
    "inv": lambda x, s: torch.linalg.inv(s),
    "solve": lambda x, s: torch.linalg.solve(s, x),
    "ldl": lambda x, s: torch.linalg.ldl_factor(s),
    "householder": lambda x, s: torch.linalg.householder_product(*torch.geqrf(x)),
    "lstsq": lambda x, s: torch.linalg.lstsq(s, x, driver="gelsd").solution,
    "ormqr": lambda x, s: torch.ormqr(*torch.geqrf(x), s, transpose=True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_values(name, dtype):
    for arguments in ((square(dtype=dtype), positive(dtype=dtype)),) * 2:
        # lstsq.out has no metadata in PyTorch, and its composite chooses the strides.
        check(CALLS[name], *arguments, strides=name != "lstsq", rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 4, 4), (0, 3, 3)])
def test_shapes(shape):
    check(lambda x: torch.linalg.eigvals(x).abs().sum(-1), torch.randn(shape), rtol=1e-4, atol=1e-4)


def test_views_and_out():
    big = torch.randn(8, 8)
    check(lambda x: torch.geqrf(x[1:6, ::2].t()), big)
    check(lambda x: torch.geqrf(x.t()), big)

    def into(x):
        values, vectors = (x.new_empty(0, dtype=torch.complex64) for _ in range(2))
        torch.linalg.eig(x, out=(values, vectors))
        return values.abs().sum(), (vectors @ torch.diag(values) @ vectors.inverse()).real

    check(into, big, strides=False, rtol=1e-3, atol=1e-4)


def test_kernels_that_leave_flags_on_their_results():
    """The CPU's lu_solve returns a conjugate view from the right-hand side."""
    x, y = square(dtype=torch.complex64), torch.randn(3, 5, dtype=torch.complex64)
    factors = torch.linalg.lu_factor(x)
    for adjoint in (False, True):
        check(
            lambda lu, p, y, a=adjoint: torch.linalg.lu_solve(lu, p, y, left=False, adjoint=a),
            *factors,
            y,
            rtol=1e-4,
            atol=1e-4,
        )


def test_in_place():
    def add_relu(x, y):
        torch.ops.aten._add_relu_.Tensor(x[1:, ::2], y)
        return x

    check(add_relu, torch.randn(3, 4), torch.randn(2, 2))
    torch_tpu._C.set_fallback_policy("allow")
    assert list(torch.tpu.fallback_counts()) == ["aten::_add_relu_.Tensor"]


def test_runs_in_a_program_and_is_counted():
    x = square().to("tpu")
    torch.geqrf(x)
    before = launches()
    torch.tpu.reset_fallback_counts()
    for _ in range(3):
        torch.geqrf(x)
    assert torch.tpu.fallback_counts() == {"aten::geqrf": 3}
    assert launches() == before + 3
    torch_tpu._C.set_host_calls(False)
    same(torch.geqrf(x), torch.geqrf(x.cpu()))
    assert torch.tpu.fallback_counts() == {"aten::geqrf": 4}


def test_forbidden_by_policy():
    x = square().to("tpu")
    torch.geqrf(x)
    torch_tpu._C.set_fallback_policy("error")
    with pytest.raises(NotImplementedError, match="aten::geqrf"):
        torch.geqrf(x)


ERRORS = {
    "singular": lambda x: torch.linalg.inv(x * 0),
    "not positive": lambda x: torch.linalg.cholesky(-x),
    "not finite": lambda x: torch.linalg.eig(x / 0),
    "no convergence": lambda x: torch.linalg.svd(x * float("nan")),
    "not square": lambda x: torch.linalg.eig(x[:2]),
    "integers": lambda x: torch.geqrf(x.long()),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    x = positive()
    same(torch.linalg.eigvals(x.to("tpu")).abs().sum(), torch.linalg.eigvals(x).abs().sum())
    for _ in range(2):
        check_error(ERRORS[name], x)
    check(lambda x: x + 1, x)


def test_a_warm_process_compiles_nothing(tmp_path):
    code = """
        import sys, torch, warnings
        warnings.simplefilter("ignore")
        x = torch.arange(9.0, device="tpu").reshape(3, 3)
        torch.geqrf(x)
        with warnings.catch_warnings():
            value = torch.linalg.eigvals(x + 1).abs().sum().item()
        assert abs(value - 17.234) < 0.01, value
        assert (torch.tpu.cache_stats()["compiles"] == 0) == WARM
        """
    for warm in (False, True):
        run_python(code.replace("WARM", str(warm)), TORCH_TPU_CACHE_DIR=str(tmp_path))


def test_switched_off_by_the_environment():
    run_python(
        """
        import torch, torch_tpu._C, warnings
        warnings.simplefilter("ignore")
        assert not torch_tpu._C.host_calls_enabled()
        x = torch.ones(3, 3, device="tpu")
        before = torch.tpu.cache_stats()["launches"]
        torch.geqrf(x)
        assert torch.tpu.cache_stats()["launches"] == before
        assert torch.tpu.fallback_counts() == {"aten::geqrf": 1}
        """,
        TORCH_TPU_HOST_CALLS="0",
    )


# [batch, channels, size], [out, channels / groups, kernel], stride, padding, dilation, groups.
CONVOLUTIONS = {
    "grouped": ((4, 64, 20, 20), (64, 8, 3, 3), 1, 1, 1, 8),
    "strided": ((4, 64, 21, 20), (128, 8, 3, 2), (2, 3), 1, 2, 8),
    "depthwise": ((4, 32, 30, 30), (32, 1, 5, 5), 1, 2, 1, 32),
    "two per channel": ((4, 32, 30, 30), (64, 1, 5, 5), 2, 2, 1, 32),
    "line": ((4, 64, 300), (64, 16, 5), 2, 3, 1, 4),
    "volume": ((2, 16, 8, 10, 10), (16, 4, 3, 3, 3), 1, 1, 1, 4),
    "patches": ((2, 3, 50, 49), (64, 3, 16, 16), 16, 0, 1, 1),
    "small patches": ((2, 3, 5, 4), (4, 3, 2, 2), 2, 0, 1, 1),
    "patches of a line": ((2, 3, 11), (4, 3, 4), 4, 0, 1, 1),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, on, no_fallback):
    torch_tpu._C.set_host_calls(on)
    size, kernel, *rest, groups = CONVOLUTIONS[name]
    stride, padding, dilation = (
        list(v) if isinstance(v, tuple) else [v] * (len(size) - 2) for v in rest
    )

    def forward(x, w):
        return torch.convolution(
            x, w, None, stride, padding, dilation, False, [0] * len(stride), groups
        )

    def gradients(x, w):
        return torch.autograd.grad(forward(x, w).square().sum(), (x, w))

    def transposed(y, w):
        extra = [s - 1 for s in stride]
        return torch.convolution(y, w, None, stride, padding, dilation, True, extra, groups)

    x, w = torch.randn(size, requires_grad=True), torch.randn(kernel, requires_grad=True)
    close = {"rtol": 1e-3, "atol": 1e-2, "strides": False}
    check(forward, x.detach(), w.detach(), **close)
    check(gradients, x, w, **close)
    check(transposed, forward(x, w).detach(), w.detach(), **close)
    if x.dim() == 4:
        last = x.detach().to(memory_format=torch.channels_last)
        check(forward, last, w.detach(), **(close | {"strides": True}))


def test_convolution_of_bfloat16(no_fallback):
    x, w = torch.randn(2, 64, 20, 20), torch.randn(64, 8, 3, 3)
    x, w = x.bfloat16(), w.bfloat16()
    check(lambda x, w: torch.nn.functional.conv2d(x, w, groups=8), x, w, rtol=0.02, atol=0.1)


@pytest.mark.parametrize("on", [True, False])
def test_products_of_bfloat16(on, no_fallback):
    torch_tpu._C.set_host_calls(on)
    functions = [
        lambda a, b, c: a @ b,
        lambda a, b, c: a @ b.t(),
        lambda a, b, c: (a.t() @ a, a[:1] @ b, a[:1] @ b.t(), b @ a[0], b.t() @ a[0]),
        lambda a, b, c: torch.addmm(c, a, b),
        lambda a, b, c: torch.nn.functional.linear(a, b, c),
        lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2),
        lambda a, b, c: torch.bmm(a.view(4, 16, 1024), b.view(4, 256, 1024).mT),
        lambda a, b, c: a[:, ::2] @ b[::2],
    ]
    a, b, c = torch.randn(64, 1024), torch.randn(1024, 1024), torch.randn(1024)
    for function in functions:
        check(function, *(t.bfloat16() for t in (a, b, c)), rtol=0.02, atol=0.3)
