# SPDX-License-Identifier: Apache-2.0
"""Streams and events. A device runs its work in launch order, so streams never overlap."""

from types import TracebackType
from typing import Any

import torch

from torch_tpu.device_module._utils import DeviceLike, _get_device_index


class Stream(torch.Stream):
    """A queue of a device. ``pinned`` is accepted for compatibility and changes nothing."""

    def __new__(
        cls,
        device: DeviceLike = None,
        priority: int = 0,
        stream_id: int | None = None,
        *,
        pinned: Any = None,
        **kwargs: Any,
    ) -> "Stream":
        if stream_id is not None:
            index = kwargs.get("device_index", _get_device_index(device, optional=True))
            kind = torch._C._autograd.DeviceType.PrivateUse1.value
            return super().__new__(cls, stream_id=stream_id, device_index=index, device_type=kind)
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, torch.device("tpu", index), priority=priority)

    def __repr__(self) -> str:
        return f"torch.tpu.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "tpu"


class Event(metaclass=_EventType):
    """A point in a device's queue: a :class:`torch.Event` of device ``tpu``.

    Makes plain torch events, since those measure only against their exact type.
    """

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        return torch.Event(
            "tpu", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that operations on ``device`` are launched on."""
    stream = torch._C._accelerator_getStream(_get_device_index(device, optional=True))
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index)


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream that ``device`` starts with."""
    return Stream(stream_id=0, device_index=_get_device_index(device, optional=True))


def set_stream(stream: torch.Stream | None) -> None:
    """Make ``stream`` current for its device; None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Makes ``stream`` and its device current inside the block; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self.stream.__enter__()
        return self.stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, value, trace)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager that makes ``stream`` current."""
    return StreamContext(stream)
