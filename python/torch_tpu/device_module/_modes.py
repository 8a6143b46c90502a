# SPDX-License-Identifier: Apache-2.0
"""When operations run (``EagerMode``) and in which precision matrices are multiplied."""

import contextlib
import enum
import types
from collections.abc import Iterator

import torch

from torch_tpu import _C
from torch_tpu._precision import LEVELS


class EagerMode(enum.IntEnum):
    """When an operation runs.

    ``DEFER_NEVER`` (Strict, the default): at once and asynchronously, as on other accelerators.
    ``DEFER_NEVER_AND_LAUNCH_BLOCKING`` (Debug): the host waits for each operation, so an error is
    raised at the line that caused it.
    ``DEFER_AND_FUSE``: recorded, and run as one program at the next point that needs a value.
    """

    DEFER_AND_FUSE = 0
    DEFER_NEVER = 1
    DEFER_NEVER_AND_LAUNCH_BLOCKING = 2
    STRICT = 1
    DEBUG = 2

    __str__ = enum.Enum.__str__


AVAILABLE_MODES = (EagerMode.DEFER_NEVER, EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING)


def _checked(mode: EagerMode | int) -> int:
    mode = EagerMode(mode)
    if mode not in AVAILABLE_MODES:
        raise NotImplementedError(
            f"EagerMode.{mode.name} is not available; use EagerMode.DEFER_NEVER (Strict) or "
            "EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING (Debug)"
        )
    return int(mode)


class EagerModeModule(types.ModuleType):
    """A module with the assignable attribute ``eager_mode``."""

    @property
    def eager_mode(self) -> EagerMode:
        """The mode in force here; assigning changes it for the whole process."""
        return EagerMode(_C.get_eager_mode())

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode | int) -> None:
        _C.set_eager_mode(_checked(mode))


class set_eager_mode(contextlib.ContextDecorator):
    """Context manager and decorator: this thread's operations run in ``mode``; innermost wins."""

    def __init__(self, mode: EagerMode | int) -> None:
        self.mode = EagerMode(_checked(mode))
        self._previous: list[int] = []

    def _recreate_cm(self) -> "set_eager_mode":
        return type(self)(self.mode)

    def __enter__(self) -> "set_eager_mode":
        self._previous.append(_C.exchange_thread_eager_mode(int(self.mode)))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C.exchange_thread_eager_mode(self._previous.pop())


def debug() -> set_eager_mode:
    """``with torch.tpu.debug():`` runs the block in Debug mode, to find the line of an error."""
    return set_eager_mode(EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING)


class Precision(enum.IntEnum):
    """How float32 matrix products and convolutions are computed on a TPU: with one, three or six
    bfloat16 passes. The CPU plugin always computes in float32."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    __str__ = enum.Enum.__str__


@contextlib.contextmanager
def precision(value: Precision | int) -> Iterator[None]:
    """Context manager and decorator: the precision of float32 matrix products inside the block.

    The same process-wide setting as ``torch.set_float32_matmul_precision``, put back at the end.
    """
    names = {level: name for name, level in LEVELS.items()}
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(names[Precision(value)])
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(previous)
