# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps, fused and foreach, against the CPU's; their numbers are run-time numbers."""

import pytest
import torch
from support import same

pytestmark = pytest.mark.usefixtures("no_fallback")

STEPS = {
    "adam": (torch.optim.Adam, {}),
    "adam_decay": (torch.optim.Adam, {"weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"amsgrad": True}),
    "sgd": (torch.optim.SGD, {"lr": 0.01}),
    "momentum": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "dampening": 0.3}),
    "nesterov": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    "adagrad": (torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
}


def train(device, optimizer, options):
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4), (5,), (), (2, 3, 2)]
    params = [torch.nn.Parameter(torch.randn(s, generator=generator).to(device)) for s in shapes]
    opt = optimizer(params, **options)
    for _ in range(3):
        for p in params:
            p.grad = torch.randn(p.shape, generator=generator).to(device)
        opt.step()
        opt.param_groups[0]["lr"] *= 0.5
    return [p.detach() for p in params], [list(opt.state[p].values()) for p in params]


@pytest.mark.parametrize("form", ["fused", "foreach"])
@pytest.mark.parametrize("name", STEPS)
def test_step(name, form):
    optimizer, options = STEPS[name]
    options = {**options, form: True}
    same(train("tpu", optimizer, options), train("cpu", optimizer, options), rtol=2e-5, atol=1e-6)


def test_a_schedule_compiles_nothing():
    p = torch.nn.Parameter(torch.ones(3, device="tpu"))
    opt = torch.optim.AdamW([p], fused=True)
    compiles = []
    for step in range(4):
        p.grad = torch.ones(3, device="tpu")
        opt.param_groups[0].update(lr=0.1 / (step + 1), weight_decay=0.01 * step)
        opt.step()
        compiles.append(torch.tpu.cache_stats()["compiles"])
    assert compiles[1] == compiles[-1]


@pytest.mark.parametrize("bad", [1.0, float("inf"), float("nan")])
def test_scaler_unscales_and_finds_overflow(bad):
    grads = [torch.tensor([2.0, 4.0], device="tpu"), torch.tensor([bad], device="tpu")]
    found = torch.zeros(1, device="tpu")
    torch._amp_foreach_non_finite_check_and_unscale_(
        grads, found, torch.tensor([0.5], device="tpu")
    )
    assert grads[0].tolist() == [1, 2]
    assert found.item() == (bad != 1)


def test_a_fused_step_is_skipped_after_overflow():
    p = torch.nn.Parameter(torch.ones(3, device="tpu"))
    opt = torch.optim.AdamW([p], lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("tpu", init_scale=4.0)
    p.grad = torch.tensor([1.0, float("inf"), 1.0], device="tpu")
    scaler.scale(torch.zeros((), device="tpu"))
    scaler.step(opt)
    scaler.update()
    assert p.tolist() == [1, 1, 1]
    assert scaler.get_scale() == 2
