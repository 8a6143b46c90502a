# SPDX-License-Identifier: Apache-2.0
"""The operators that must run on the device itself: a row each, named as in PyTorch's samples."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Tolerances are for float32. ``strides``: results have the CPU's strides."""

    name: str
    rtol: float = 1e-4
    atol: float = 1e-5
    gradient: bool = True
    variants: bool = True  # in-place and out= forms
    strides: bool = True

    def __str__(self) -> str:
        return self.name


_PLAIN = """
abs add addcdiv addcmul addmm addmv addr all amax amin any argmax argmin bmm cat clamp cos cumsum
div.no_rounding_mode eq exp gather ge gt index_add index_select le log lt masked_fill matmul
max.binary min.binary mm mul ne neg nn.functional.gelu nn.functional.relu pow prod reciprocal rsqrt
scatter scatter_add sigmoid sign sin softmax sqrt sub sum tanh topk where
"""

ROWS = [Row(name) for name in _PLAIN.split()]
