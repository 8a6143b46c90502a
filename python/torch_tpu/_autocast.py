# SPDX-License-Identifier: Apache-2.0
"""bfloat16 as the autocast dtype of ``tpu`` on every thread.

PyTorch keeps the dtype in a thread-local table whose entry for out-of-tree devices starts as
float16, and offers no hook for new threads. Both Python entry points to the table are wrapped so
that a thread's first use puts bfloat16 there, unless that thread has set a dtype itself.
"""

import functools
import threading

import torch

_thread = threading.local()


def install() -> None:
    get, set_ = torch.get_autocast_dtype, torch.set_autocast_dtype

    @functools.wraps(get)
    def get_autocast_dtype(device_type: str) -> torch.dtype:
        if device_type == "tpu" and not hasattr(_thread, "ready"):
            set_autocast_dtype("tpu", torch.bfloat16)
        return get(device_type)

    @functools.wraps(set_)
    def set_autocast_dtype(device_type: str, dtype: torch.dtype) -> None:
        if device_type == "tpu":
            _thread.ready = True
        set_(device_type, dtype)

    torch.get_autocast_dtype = get_autocast_dtype
    torch.set_autocast_dtype = set_autocast_dtype
    set_autocast_dtype("tpu", torch.bfloat16)
