# SPDX-License-Identifier: Apache-2.0
"""The compilation cache: what compiles, what does not, and what damage does."""

import json
import os

import pytest
import torch
from support import run_python, same

WORK = """
import json, torch
x = torch.arange(12.0, device="tpu").view(3, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).to("tpu")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.tpu.synchronize()
print(json.dumps(torch.tpu.cache_stats()))
"""


def stats(**variables):
    return json.loads(run_python(WORK, **variables).stdout.splitlines()[-1])


def test_second_process_compiles_nothing(tmp_path):
    first = stats(TORCH_TPU_CACHE_DIR=str(tmp_path))
    second = stats(TORCH_TPU_CACHE_DIR=str(tmp_path))
    assert first["compiles"] > 5
    assert second["compiles"] == 0 and second["disk_hits"] > 5
    assert (tmp_path.stat().st_mode & 0o777) == 0o700 or any(tmp_path.iterdir())


def test_without_a_cache_directory():
    assert stats(TORCH_TPU_CACHE_DIR="off")["disk_hits"] == 0


def test_damaged_files_are_misses(tmp_path):
    stats(TORCH_TPU_CACHE_DIR=str(tmp_path))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for number, path in enumerate(files):
        content = path.read_bytes()
        if number % 3 == 0:
            path.write_bytes(content[: len(content) // 2])
        elif number % 3 == 1:
            middle = len(content) // 2
            path.write_bytes(content[:middle] + b"\xff\x00\xff" + content[middle + 3 :])
        else:
            path.write_bytes(b"")
    again = stats(TORCH_TPU_CACHE_DIR=str(tmp_path))
    assert again["compiles"] > 5 and again["disk_errors"] > 0
    assert stats(TORCH_TPU_CACHE_DIR=str(tmp_path))["compiles"] == 0


def test_directory_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    done = run_python(WORK, TORCH_TPU_CACHE_DIR=str(blocked / "cache"))
    assert json.loads(done.stdout.splitlines()[-1])["compiles"] > 5
    assert done.stderr.count(str(blocked)) <= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to somebody else")
def test_directory_of_somebody_else_is_not_trusted(tmp_path):
    foreign = tmp_path / "cache"
    foreign.mkdir(mode=0o777)
    os.chown(foreign, 12345, 12345)
    assert stats(TORCH_TPU_CACHE_DIR=str(foreign))["compiles"] > 5
    assert stats(TORCH_TPU_CACHE_DIR=str(foreign))["compiles"] > 5


def test_scalars_compile_nothing():
    x = torch.ones(9, device="tpu")
    (x + 0.5) * 2.5
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats()["compiles"]
    for value in range(10):
        (x + (value + 0.25)) * (3.5 + value)
        x.add_(x, alpha=value + 2)
    torch.tpu.synchronize()
    assert torch.tpu.cache_stats()["compiles"] - before <= 1


def test_filling_small_tensors_compiles_nothing():
    before = torch.tpu.cache_stats()["compiles"]
    for n in (1, 3, 700 + os.getpid() % 91):
        filled = torch.full((n, 2), 2.5, device="tpu")
        zeros, ones = torch.zeros(n, 3, device="tpu", dtype=torch.bfloat16), torch.ones_like(filled)
        assert torch.equal(filled.cpu(), torch.full((n, 2), 2.5))
        assert not zeros.cpu().any() and ones.cpu().all()
        filled.zero_()
        assert not filled.cpu().any()
    assert torch.tpu.cache_stats()["compiles"] == before


def test_a_view_is_filled_alone():
    x = torch.zeros(4, 5, device="tpu")
    x[1:3, ::2].fill_(7)
    x.t()[4].zero_()
    expected = torch.zeros(4, 5)
    expected[1:3, ::2] = 7
    expected[:, 4] = 0
    assert torch.equal(x.cpu(), expected)


def compiles_of(function, values):
    function(values[0])
    before = torch.tpu.cache_stats()["compiles"]
    for value in values[1:]:
        function(value)
    torch.tpu.synchronize()
    return torch.tpu.cache_stats()["compiles"] - before


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_bounds_of_a_range_do_not_recompile(dtype):
    def function(step):
        bounds = (step, step * 12, step)
        same(torch.arange(*bounds, dtype=dtype, device="tpu"), torch.arange(*bounds, dtype=dtype))

    assert compiles_of(function, [3, 5, 7, 11, -4, -9]) == 0


def test_exponents_do_not_recompile():
    x = torch.rand(7) + 0.5
    on_device = x.to("tpu")

    def function(exponent):
        same(on_device**exponent, x**exponent)

    assert compiles_of(function, [1.7, 2.1, 0.3, 11.5, 9.25]) == 0
    assert compiles_of(function, [9, 10, 11, 12]) == 0
    for special in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, -3, -1.5):
        function(special)


def test_events_and_explanation():
    torch.tpu._clear_cache()
    shape = 5 + os.getpid() % 991
    torch.ones(shape, device="tpu").atan().sum().item()
    events = torch.tpu.compile_events()
    for event in events:
        assert set(event) == {"op", "reason", "detail", "seconds"}
    text = torch.tpu.explain_recompiles()
    assert text.startswith("Nothing was compiled") or "compiled in" in text
    assert len(torch.tpu.explain_recompiles(limit=1).splitlines()) <= 5


def test_hits_are_counted():
    x = torch.ones(5, device="tpu")
    x + x
    before = torch.tpu._get_cache_stats()
    for _ in range(10):
        x + x
    after = torch.tpu._get_cache_stats()
    assert after.num_compilations == before.num_compilations
