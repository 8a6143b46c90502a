# SPDX-License-Identifier: Apache-2.0
"""Accounting, limits, steady state and recovery from running out."""

import gc

import pytest
import torch
from support import same

KEYS = [
    f"{name}.all.{part}"
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes")
    for part in ("current", "peak", "allocated", "freed")
]


@pytest.fixture(autouse=True)
def settled():
    gc.collect()
    torch.tpu.synchronize()


def test_allocated_follows_tensors():
    before = torch.tpu.memory_allocated()
    x = torch.ones(1000, 1000, device="tpu")
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - before >= x.nbytes
    del x
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == before


def test_views_and_aliases_cost_nothing():
    x = torch.ones(1000, device="tpu") + 0
    before = torch.tpu.memory_allocated()
    keep = [x.view(10, 100), x[5:], x.detach(), x.expand(50, 1000)]
    assert len(keep) == 4 and torch.tpu.memory_allocated() == before


def test_peak():
    torch.tpu.reset_peak_memory_stats()
    start = torch.tpu.max_memory_allocated()
    x = torch.ones(1 << 20, device="tpu") + 1
    torch.tpu.synchronize()
    del x
    assert torch.tpu.max_memory_allocated() >= start + (4 << 20)
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() < start + (4 << 20)


def test_statistics_have_the_names_of_cuda():
    stats = torch.tpu.memory_stats()
    assert set(KEYS) <= set(stats) and {"num_ooms", "num_alloc_retries"} <= set(stats)
    assert stats["allocated_bytes.all.current"] == torch.tpu.memory_allocated()
    assert stats["reserved_bytes.all.peak"] == torch.tpu.max_memory_reserved()
    assert "peak in use" in torch.tpu.memory_summary()
    torch.tpu.reset_accumulated_memory_stats()


def test_accelerator_agrees():
    x = torch.ones(1000, device="tpu") + 1
    assert x.is_tpu
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated()
    assert torch.accelerator.max_memory_allocated() == torch.tpu.max_memory_allocated()
    assert torch.accelerator.get_memory_info() == torch.tpu.mem_get_info()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.empty_cache()


def test_info_and_cache():
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total
    x = torch.ones(1 << 22, device="tpu") + 1
    del x
    torch.tpu.synchronize()
    torch.tpu.empty_cache()
    assert torch.tpu.memory_reserved() >= torch.tpu.memory_allocated()


def test_in_place_on_a_whole_tensor_allocates_nothing():
    x = torch.ones(1 << 20, device="tpu")
    for _ in range(3):
        x.mul_(1.5).add_(1)
    torch.tpu.synchronize()
    torch.tpu.reset_peak_memory_stats()
    before = torch.tpu.memory_allocated()
    for _ in range(20):
        x.mul_(0.5).add_(1)
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == before
    assert torch.tpu.max_memory_allocated() - before < x.nbytes


@pytest.mark.parametrize("kind", ["for-loop", "foreach", "fused"])
def test_optimizer_steps_allocate_nothing_in_steady_state(kind):
    model = torch.nn.Linear(256, 256).to("tpu")
    options = {"foreach": kind == "foreach", "fused": kind == "fused"}
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    model(torch.ones(2, 256, device="tpu")).sum().backward()
    for _ in range(3):
        optimizer.step()
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    for _ in range(5):
        optimizer.step()
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() <= before


def test_out_of_memory_is_an_error_one_can_survive():
    keep = torch.arange(4.0, device="tpu")
    ooms = torch.tpu.memory_stats()["num_ooms"]
    torch.tpu.set_per_process_memory_fraction(0.001)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.ones(torch.tpu.mem_get_info()[1] // 8, device="tpu")
    finally:
        torch.tpu.set_per_process_memory_fraction(1.0)
    assert torch.tpu.memory_stats()["num_ooms"] > ooms
    same(keep + 1, torch.arange(4.0) + 1)
    assert torch.tpu.get_per_process_memory_fraction() == 1.0


def test_fraction_is_checked():
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        torch.tpu.set_per_process_memory_fraction(1.5)
    with pytest.raises(TypeError):
        torch.tpu.set_per_process_memory_fraction("half")


def test_no_growth_over_many_steps():
    x = torch.ones(1000, device="tpu")
    for step in range(300):
        x = x * 0.99 + step
        if step == 50:
            torch.tpu.synchronize()
            before = torch.tpu.memory_allocated()
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() <= before + 2 * x.nbytes
