# SPDX-License-Identifier: Apache-2.0
"""Which devices there are, which one is current, and what they are."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.device_module._utils import DeviceLike, _get_device_index

_DTYPES = (
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2),
)


def device_count() -> int:
    """Number of devices. Starts no device."""
    return _C.device_count()


def is_available() -> bool:
    """Whether there is a TPU, or the CPU plugin in its place. Starts no device."""
    return _C.device_count() > 0


def is_initialized() -> bool:
    """Whether this process has started the device."""
    return _C.is_started()


def init() -> None:
    """Start the device now instead of at first use."""
    _C.platform()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C.current_device()


def set_device(device: DeviceLike) -> None:
    """Make ``device`` this thread's current device; a negative index changes nothing."""
    index = _get_device_index(device, optional=True)
    if index >= 0:
        _C.set_device(index)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until everything launched on ``device`` has finished; raises errors found meanwhile."""
    _C.synchronize(_get_device_index(device, optional=True))


def _exchange_device(index: int) -> int:
    return _C.exchange_device(index) if index >= 0 else -1


class device:
    """Context manager that changes this thread's current device; None changes nothing."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> "device":
        self.prev_idx = _exchange_device(self.idx)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.idx = _exchange_device(self.prev_idx)


class device_of(device):
    """Context manager that makes the device of a tensor or storage current, if it is a ``tpu``."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "tpu" else None)


@dataclass(frozen=True)
class DeviceProperties:
    """What is known of a device. ``total_memory`` is in bytes."""

    name: str
    platform: str
    plugin: str
    total_memory: int
    multi_processor_count: int = 1


def get_device_name(device: DeviceLike = None) -> str:
    """What programs really run on, for example ``"TPU v6e"`` or ``"XLA:CPU (no TPU found)"``."""
    return _C.device_name(_get_device_index(device, optional=True))


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Properties of ``device``; starts it."""
    from torch_tpu.device_module.memory import mem_get_info

    index = _get_device_index(device, optional=True)
    return DeviceProperties(
        name=_C.device_name(index),
        platform=_C.platform(),
        plugin=_C.plugin_path(),
        total_memory=mem_get_info(index)[1],
    )


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """The platform's name, and the dtypes that tensors may have: ``supported_dtypes``, a set."""
    _get_device_index(device, optional=True)
    return {"platform": _C.platform(), "supported_dtypes": set(_DTYPES)}


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: every supported platform computes in bfloat16."""
    return True
