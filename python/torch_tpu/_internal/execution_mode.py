# SPDX-License-Identifier: Apache-2.0
"""``EagerMode``, ``set_eager_mode`` and the assignable ``eager_mode`` of ``torch.tpu``.

``enable_cpu_fallback`` is assignable too: False makes a fallback to the host an error.
"""

import sys

from torch_tpu import _C
from torch_tpu.device_module._modes import EagerMode, EagerModeModule, set_eager_mode

__all__ = ["EagerMode", "set_eager_mode"]


class _ExecutionMode(EagerModeModule):
    @property
    def enable_cpu_fallback(self) -> bool:
        return bool(self.__dict__.get("_fallback", True))

    @enable_cpu_fallback.setter
    def enable_cpu_fallback(self, enabled: bool) -> None:
        self.__dict__["_fallback"] = bool(enabled)
        _C.set_fallback_policy("warn" if enabled else "error")


sys.modules[__name__].__class__ = _ExecutionMode
