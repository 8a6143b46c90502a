# SPDX-License-Identifier: Apache-2.0
"""Gradients: of modules, views, in-place writes, shared weights; hooks, checkpointing, threads."""

import copy

import pytest
import torch
import torch.nn.functional as F
from support import check, same
from torch import nn


def gradients(function, *args):
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    result = function(*args)
    return (result.detach(), *torch.autograd.grad(result.sum(), leaves))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x * y + x.sin()).sum(0),
        lambda x, y: x @ y.t(),
        lambda x, y: torch.cat([x, y]).t()[1:].exp(),
        lambda x, y: F.softmax(x, -1) * F.log_softmax(y, 0),
        lambda x, y: F.layer_norm(x, (4,)) + F.gelu(y),
        lambda x, y: x[:, ::2].pow(3) - y[:, 1::2].abs(),
        lambda x, y: torch.where(x > y, x, y * 2),
        lambda x, y: (x / (y.square() + 1)).clamp(-0.5, 0.5),
        lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None]),
        lambda x, y: x.gather(1, (y > 0).long()).mean(1, keepdim=True) * y,
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: x.std(1) * y.var(0)[:3],
    ],
)
def test_matches_the_cpu(function):
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    check(lambda x, y: gradients(function, x, y), x, y, strides=False, rtol=1e-4, atol=1e-5)


MODULES = {
    "linear": (lambda: nn.Linear(6, 4), (5, 6)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2), (2, 3, 8, 8)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4, dilation=2), (2, 4, 9, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1), (2, 3, 5, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 6)),
    "layer norm": (lambda: nn.LayerNorm(6), (3, 6)),
    "rms norm": (lambda: nn.RMSNorm(6), (3, 6)),
    "max pool": (lambda: nn.MaxPool2d(2), (2, 3, 6, 6)),
    "avg pool": (lambda: nn.AvgPool2d(3, stride=2, padding=1), (2, 3, 7, 7)),
    "avg pool 1d": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.AvgPool1d(2)), (2, 2, 9)),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(2), (2, 3, 7, 5)),
    "lstm": (lambda: nn.LSTM(4, 5, num_layers=2, batch_first=True), (2, 3, 4)),
    "gru": (lambda: nn.GRU(4, 5, bidirectional=True), (3, 2, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 4, 4)),
    "prelu": (lambda: nn.PReLU(3), (2, 3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    make, shape = MODULES[name]
    torch.manual_seed(1)
    on_cpu, x = make(), torch.randn(shape)
    on_tpu = copy.deepcopy(on_cpu).to("tpu")
    results = []
    for module, device in ((on_cpu, "cpu"), (on_tpu, "tpu")):
        leaf = x.to(device, copy=True).requires_grad_()
        output = module(leaf)
        output = output[0] if isinstance(output, tuple) else output
        output.square().mean().backward()
        parameters = [p.grad for p in module.parameters()]
        results.append([output, leaf.grad, *parameters, *module.buffers()])
    same(results[1], results[0], rtol=1e-3, atol=1e-5)


def test_tied_weights_move_together():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.embedding(x))

    on_cpu, tokens = Model(), torch.tensor([1, 5, 1])
    on_tpu = copy.deepcopy(on_cpu)
    optimizer = torch.optim.SGD(on_tpu.parameters(), lr=0.1)
    on_tpu.to("tpu")
    assert on_tpu.head.weight is on_tpu.embedding.weight
    assert len(list(on_tpu.parameters())) == 1
    on_cpu(tokens).square().sum().backward()
    on_tpu(tokens.to("tpu")).square().sum().backward()
    same(on_tpu.head.weight.grad, on_cpu.head.weight.grad, rtol=1e-4, atol=1e-5)
    before = on_tpu.head.weight.detach().clone()
    optimizer.step()
    assert not torch.equal(on_tpu.embedding.weight, before), "the optimizer lost its parameter"


def test_in_place_writes():
    def run(x):
        y = x * 2
        y[:, 0] = 0
        y.t()[1].mul_(3)
        y += x
        return gradients(lambda _: y, x)

    check(run, torch.randn(3, 4, requires_grad=True))


def test_saved_tensor_that_was_overwritten():
    for device in ("cpu", "tpu"):
        x = torch.ones(3, device=device, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_leaf_in_place_is_refused():
    x = torch.ones(3, device="tpu", requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x._version == 1


def test_donation_spares_saved_tensors():
    x = torch.full((1000,), 2.0, device="tpu", requires_grad=True)
    y = x * x
    with torch.no_grad():
        kept = x.detach().clone()
        y.detach().mul_(5)
    y.sum().backward()
    same(x.grad, kept * 2)


def test_checkpointing_replays_random_numbers():
    from torch.utils.checkpoint import checkpoint

    block = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5), nn.GELU()).to("tpu")
    x = torch.randn(8, 16, device="tpu")
    results = []
    for wrap in (
        block,
        lambda v: checkpoint(block, v, use_reentrant=False),
        lambda v: checkpoint(block, v, use_reentrant=True),
    ):
        torch.manual_seed(3)
        leaf = x.clone().requires_grad_()
        wrap(leaf).sum().backward()
        results.append(leaf.grad)
    same(results[1], results[0].cpu())
    same(results[2], results[0].cpu())


def test_hooks_and_accumulation():
    x = torch.ones(3, device="tpu", requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g) or g * 2)
    for _ in range(2):
        (x * 3).sum().backward()
    same(x.grad, torch.full((3,), 12.0))
    assert len(seen) == 2 and seen[0].is_tpu


def test_double_backward_and_jvp():
    def second(x):
        (first,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    check(second, torch.randn(4, requires_grad=True))
    check(lambda x: torch.func.jvp(torch.sin, (x,), (x,)), torch.randn(4))
    check(
        lambda x: torch.func.vmap(torch.func.grad(lambda v: v.square().sum()))(x), torch.randn(3, 4)
    )


def test_across_devices():
    x = torch.ones(3, device="tpu", requires_grad=True)
    (x.cpu() * 2).to("tpu:1").sum().backward()
    same(x.grad, torch.full((3,), 2.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
        lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True, foreach=False),
        lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
        lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
        lambda p: torch.optim.AdamW(p, lr=0.1, maximize=True),
        lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
)
def test_optimizer_follows_the_cpu(make):
    torch.manual_seed(4)
    on_cpu = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
    on_tpu = copy.deepcopy(on_cpu).to("tpu")
    x = torch.randn(16, 5)
    for model in (on_cpu, on_tpu):
        optimizer = make(model.parameters())
        data = x.to(next(model.parameters()).device)
        for _ in range(5):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    for a, b in zip(on_tpu.parameters(), on_cpu.parameters(), strict=True):
        same(a, b, rtol=2e-3, atol=1e-4)


def test_learning_rate_and_scalars_compile_nothing():
    model = nn.Linear(8, 8).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    x = torch.ones(4, 8, device="tpu")

    def step(scale):
        (model(x) * scale).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()

    step(1.5), step(2.5)
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats()["compiles"]
    for i in range(5):
        step(3.5 + i)
    torch.tpu.synchronize()
    assert torch.tpu.cache_stats()["compiles"] == before, torch.tpu.explain_recompiles()


def test_anomaly_mode_and_inference_mode():
    with torch.autograd.detect_anomaly(check_nan=True):
        x = torch.ones(2, device="tpu", requires_grad=True)
        (x * 2).sum().backward()
    with torch.inference_mode():
        y = torch.ones(3, device="tpu") * 2
        y.add_(1)
    same(y, torch.full((3,), 3.0))


MASKS = [(True, False, False), (False, True, True), (True, True, False), (False, False, False)]


def layer_norm_backward(x, w, mask):
    _, mean, rstd = torch.native_layer_norm(x, [3], w[:3], None, 1e-5)
    return torch.ops.aten.native_layer_norm_backward(x, x, [3], mean, rstd, w[:3], w[:3], mask)


def group_norm_backward(x, w, mask):
    _, mean, rstd = torch.native_group_norm(x, w, w, 2, 4, 3, 2, 1e-5)
    return torch.ops.aten.native_group_norm_backward(x, x, mean, rstd, w, 2, 4, 3, 2, mask)


def batch_norm_backward(x, w, mask):
    _, mean, rstd = torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5)
    return torch.ops.aten.native_batch_norm_backward(
        x, x, w, None, None, mean, rstd, True, 1e-5, mask
    )


def convolution_backward(x, w, mask):
    kernel = w[:, None, None].expand(4, 4, 1)
    return torch.ops.aten.convolution_backward(
        x, x, kernel, [4], [1], [0], [1], False, [0], 1, mask
    )


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize(
    "backward",
    [layer_norm_backward, group_norm_backward, batch_norm_backward, convolution_backward],
)
def test_masked_out_gradients_are_none(backward, mask):
    x, w = torch.randn(2, 4, 3), torch.rand(4)
    results = backward(x.to("tpu"), w.to("tpu"), mask)
    assert [r is not None for r in results] == list(mask)
    expected = backward(x, w, (True, True, True))
    for result, wanted, asked in zip(results, expected, mask, strict=True):
        if asked:
            same(result, wanted, rtol=1e-4, atol=1e-5)
