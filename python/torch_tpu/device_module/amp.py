# SPDX-License-Identifier: Apache-2.0
"""``torch.amp`` for device ``tpu``: bfloat16 unless told otherwise, so scaling is rarely needed."""

import functools
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="tpu")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="tpu")


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast may cast to."""
    return [torch.bfloat16, torch.float16, torch.float32]


class autocast(torch.amp.autocast_mode.autocast):
    """``torch.autocast("tpu", ...)``."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype | None = None,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__("tpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler("tpu", ...)``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("tpu", **kwargs)
