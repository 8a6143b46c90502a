# SPDX-License-Identifier: Apache-2.0
"""The device module: indices, names, properties, and torch.accelerator over the same devices."""

import pytest
import torch
from support import same


def test_names():
    assert str(torch.device("tpu")) == "tpu" and str(torch.device("tpu", 1)) == "tpu:1"
    assert torch.get_device_module("tpu") is torch.tpu
    assert torch.ones(2, device="tpu").device == torch.device("tpu", 0)
    assert torch.ones(2, device="tpu").is_tpu and not torch.ones(2).is_tpu


def test_counts():
    assert torch.tpu.is_available() and torch.accelerator.is_available()
    assert torch.tpu.device_count() == torch.accelerator.device_count() == 2
    assert torch.tpu.current_device() == torch.accelerator.current_device_index() == 0


def test_name_is_honest():
    name = torch.tpu.get_device_name()
    assert name.startswith("TPU") or "CPU" in name
    assert torch.tpu.get_device_name("tpu:0") == torch.tpu.get_device_name(torch.device("tpu"))


def test_properties():
    properties = torch.tpu.get_device_properties()
    assert properties.name == torch.tpu.get_device_name()
    assert properties.total_memory > 2**30
    assert properties.multi_processor_count == 1
    assert properties.plugin.endswith(".so")
    assert torch.float32 in torch.tpu.get_device_capability()["supported_dtypes"]
    held = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.complex64} <= set(held)
    assert torch.quint8 not in held
    assert torch.tpu.is_bf16_supported()


def test_second_device_is_a_device_of_its_own():
    x = torch.arange(4.0, device="tpu:1")
    assert x.device.index == 1 and (x + x).device.index == 1
    same(x.to("tpu:0") + 1, torch.arange(4.0) + 1)
    before = torch.tpu.memory_allocated(0)
    y = torch.ones(1000, device="tpu:1") + 1
    assert torch.tpu.memory_allocated(0) == before
    assert torch.tpu.memory_allocated(1) >= y.nbytes


@pytest.mark.parametrize("make", [lambda d: torch.ones(3, device=d), lambda d: torch.ones(3).to(d)])
def test_missing_index(make):
    with pytest.raises(RuntimeError, match="device index"):
        make("tpu:7")


def test_set_device():
    try:
        torch.tpu.set_device(1)
        assert torch.tpu.current_device() == torch.accelerator.current_device_index() == 1
        assert torch.ones(2, device="tpu").device.index == 1
        torch.accelerator.set_device_index(0)
        assert torch.tpu.current_device() == 0
        torch.tpu.set_device("tpu:1")
        assert torch.tpu.current_device() == 1
        torch.tpu.set_device(-1)
        assert torch.tpu.current_device() == 1
    finally:
        torch.tpu.set_device(0)
    with pytest.raises(RuntimeError):
        torch.tpu.set_device(2)
    with pytest.raises(ValueError, match="Expected a tpu device, but got: cpu"):
        torch.tpu.set_device("cpu")


def test_device_contexts():
    with torch.tpu.device(1):
        assert torch.tpu.current_device() == 1
        with torch.tpu.device(None):
            assert torch.tpu.current_device() == 1
        with torch.tpu.device_of(torch.ones(1, device="tpu:0")):
            assert torch.tpu.current_device() == 0
        with torch.tpu.device_of(torch.ones(1)):
            assert torch.tpu.current_device() == 1
    assert torch.tpu.current_device() == 0
    with torch.device("tpu:1"):
        assert torch.ones(2).device.index == 1


def test_methods_of_tensor_module_and_storage():
    x = torch.arange(3.0)
    assert x.tpu().device == torch.device("tpu:0") and x.tpu(1).device.index == 1
    assert x.tpu().tpu() is not x
    module = torch.nn.Linear(2, 2).tpu()
    assert next(module.parameters()).is_tpu
    assert x.untyped_storage().tpu().device.type == "tpu"
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 3)]).tpu()
    assert packed.is_tpu


def test_synchronize():
    x = torch.ones(100, 100, device="tpu") @ torch.ones(100, 100, device="tpu")
    torch.tpu.synchronize()
    torch.tpu.synchronize("tpu:1")
    torch.accelerator.synchronize()
    assert x[0, 0].item() == 100


def test_dtypes_round_trip():
    for dtype in (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
        *(torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64),
        *(torch.float8_e4m3fn, torch.float8_e5m2),
    ):
        x = torch.tensor([0, 1, 3]).to(dtype)
        assert torch.equal(x.to("tpu").cpu().view(torch.uint8), x.view(torch.uint8)), dtype


def test_upstream_names():
    from torch_tpu import api
    from torch_tpu._internal import execution_mode, precision, sync
    from torch_tpu._internal.utils import hardware

    assert api.tpu_device() == torch.device("tpu:0")
    assert hardware.get_tpu_device_name() == torch.tpu.get_device_name()
    assert execution_mode.EagerMode is torch.tpu.EagerMode
    assert precision.Precision is torch.tpu.Precision
    sync.synchronize([torch.ones(1, device="tpu")], wait=True)
    sync.synchronize()
    assert torch.tpu._get_cache_stats().num_cache_reqs >= 0
