# SPDX-License-Identifier: Apache-2.0
"""Carries ``torch.set_float32_matmul_precision`` to the device.

PyTorch keeps the setting for its own kernels and tells nobody, so its setter is wrapped.
"""

import functools

import torch

from torch_tpu import _C

# Precision of _C by PyTorch's name: bfloat16 passes per float32 product are one, three and six.
LEVELS = {"medium": 0, "high": 1, "highest": 2}


def install() -> None:
    set_ = torch.set_float32_matmul_precision

    @functools.wraps(set_)
    def set_float32_matmul_precision(precision: str) -> None:
        set_(precision)
        _C.set_matmul_precision(LEVELS[precision])

    torch.set_float32_matmul_precision = set_float32_matmul_precision
    _C.set_matmul_precision(LEVELS[torch.get_float32_matmul_precision()])
