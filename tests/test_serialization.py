# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: from any device to any device, and to machines that do not know this package."""

import io

import pytest
import torch
from support import run_python, same


def save_and_load(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_round_trip(dtype):
    x = torch.tensor([[0, 1, 5], [7, 0, 2]]).to(dtype)
    for tensor in (x, x.t(), x[:, 1:], x[0, 0]):
        moved = save_and_load(tensor.to("tpu"))
        assert moved.device == torch.device("tpu:0")
        same(moved, tensor)


@pytest.mark.parametrize("target", ["cpu", "tpu:0", "tpu:1", "meta"])
def test_map_location(target):
    x = torch.arange(6.0)
    for source in ("cpu", "tpu:0"):
        moved = save_and_load(x.to(source), map_location=target)
        assert moved.device == torch.device(target)
        if target != "meta":
            same(moved, x)


def test_shared_storages_stay_shared():
    x = torch.zeros(4, device="tpu")
    a, b = save_and_load([x, x[1:]])
    a.fill_(3)
    same(b, torch.full((3,), 3.0))


def test_legacy_format():
    buffer = io.BytesIO()
    torch.save(torch.arange(5.0, device="tpu")[1:], buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    same(torch.load(buffer), torch.arange(5.0)[1:])


def test_module_and_optimizer_state():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).to("tpu")
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 3, device="tpu")).sum().backward()
    optimizer.step()
    state = save_and_load({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).to("tpu")
    other.load_state_dict(state["model"])
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(state["optimizer"])
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        same(a, b.cpu())
    assert next(iter(again.state.values()))["exp_avg"].is_tpu


def test_opens_without_this_package(tmp_path):
    path = tmp_path / "checkpoint.pt"
    weight = torch.arange(6.0, device="tpu").view(2, 3)
    torch.save({"weight": weight.t(), "parameter": torch.nn.Parameter(weight)}, path)
    done = run_python(
        f"""
        import sys, torch
        state = torch.load({str(path)!r}, map_location="cpu")
        assert "torch_tpu" not in sys.modules
        print(state["weight"].tolist(), state["parameter"].requires_grad)
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert done.stdout.strip() == f"{weight.t().tolist()} True"


def test_checkpoint_of_the_cpu_opens_on_the_device(tmp_path):
    path = tmp_path / "checkpoint.pt"
    run_python(
        f"import torch; torch.save(torch.arange(5.0), {str(path)!r})",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    same(torch.load(path, map_location="tpu") * 2, torch.arange(5.0) * 2)
    same(torch.load(path, map_location="tpu", mmap=True), torch.arange(5.0))


def test_missing_device_index(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save(torch.ones(2, device="tpu:1"), path)
    run_python(
        f"""
        import torch
        try:
            torch.load({str(path)!r})
        except RuntimeError as error:
            assert "torch.tpu.device_count() is 1" in str(error), error
        else:
            raise AssertionError("no error")
        assert torch.load({str(path)!r}, map_location="tpu:0").tolist() == [1, 1]
        """,
        TORCH_TPU_DEVICES="1",
    )


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "weights.safetensors"
    x = torch.arange(6.0, device="tpu")
    safetensors.save_file({"x": x}, path)
    same(safetensors.load_file(path)["x"], x.cpu())
