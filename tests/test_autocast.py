# SPDX-License-Identifier: Apache-2.0
"""Autocast: bfloat16 on every thread, PyTorch's lists, and gradient scaling."""

import threading

import pytest
import torch
from support import same


def in_a_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def product():
    x = torch.ones(4, 4, device="tpu")
    with torch.autocast("tpu"):
        return (x @ x).dtype


def test_default_dtype_on_every_thread():
    assert product() == in_a_thread(product) == torch.bfloat16
    assert in_a_thread(lambda: torch.get_autocast_dtype("tpu")) == torch.bfloat16


def test_a_threads_own_choice_stays():
    def choose():
        torch.set_autocast_dtype("tpu", torch.float16)
        return torch.get_autocast_dtype("tpu"), product()

    assert in_a_thread(choose) == (torch.float16, torch.float16)
    assert torch.get_autocast_dtype("tpu") == torch.bfloat16
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_explicit_dtype():
    x = torch.ones(4, 4, device="tpu")
    for dtype in torch.tpu.get_amp_supported_dtype():
        with torch.autocast("tpu", dtype=dtype):
            assert (x @ x).dtype == dtype
        with torch.tpu.amp.autocast(dtype=dtype):
            assert (x @ x).dtype == dtype
    assert torch.amp.is_autocast_available("tpu")


def test_lists():
    x = torch.randn(4, 4, device="tpu")
    weight, bias = torch.randn(4, 4, device="tpu"), torch.randn(4, device="tpu")
    image, kernel = torch.randn(1, 2, 5, 5, device="tpu"), torch.randn(3, 2, 3, 3, device="tpu")
    with torch.autocast("tpu"):
        low = x @ x
        assert torch.nn.functional.linear(x, weight, bias).dtype == torch.bfloat16
        assert torch.nn.functional.conv2d(image, kernel).dtype == torch.bfloat16
        assert torch.bmm(x[None], x[None]).dtype == torch.bfloat16
        assert low.softmax(-1).dtype == torch.float32
        assert low.exp().dtype == torch.float32
        assert low.sum().dtype == torch.float32
        assert torch.nn.functional.layer_norm(low, (4,)).dtype == torch.float32
        assert (low + x).dtype == torch.float32
        assert low.relu().dtype == torch.bfloat16
        assert low.copy_(x).dtype == torch.bfloat16
        with torch.autocast("tpu", enabled=False):
            assert (x @ x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32


def test_refused_loss():
    x = torch.rand(3, device="tpu")
    with torch.autocast("tpu"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(x, x)


def test_training_step_follows_float32():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    x = torch.randn(32, 8)
    expected = model(x).square().mean()
    expected.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.to("tpu")
    with torch.autocast("tpu"):
        loss = model(x.to("tpu")).square().mean()
    loss.backward()
    same(loss, expected, rtol=3e-2, atol=1e-3)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert parameter.grad.dtype == torch.float32
        same(parameter.grad, gradient, rtol=0.1, atol=1e-2)


def test_custom_function():
    class Square(torch.autograd.Function):
        @staticmethod
        @torch.tpu.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.tpu.amp.custom_bwd
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = torch.ones(3, dtype=torch.bfloat16, device="tpu", requires_grad=True)
    with torch.autocast("tpu"):
        y = Square.apply(x)
    assert y.dtype == torch.float32
    y.sum().backward()
    same(x.grad, torch.full((3,), 2.0, dtype=torch.bfloat16))


@pytest.mark.parametrize("bad", [False, True])
def test_grad_scaler(bad):
    p = torch.nn.Parameter(torch.ones(3, device="tpu"))
    optimizer = torch.optim.SGD([p], lr=0.5)
    scaler = torch.tpu.amp.GradScaler(init_scale=4.0)
    loss = (p * (float("inf") if bad else 1.0)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    same(p, torch.full((3,), 1.0 if bad else 0.5))
    assert scaler.get_scale() == (2.0 if bad else 4.0)


def test_grad_scaler_of_torch():
    assert torch.amp.GradScaler("tpu").is_enabled()
