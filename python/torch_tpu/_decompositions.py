# SPDX-License-Identifier: Apache-2.0
"""PyTorch's Python decompositions, looked up by the C++ side for operators that have no rule."""

import functools
from collections.abc import Callable
from typing import Any

import torch


@functools.cache
def lookup(op_name: str) -> Callable[..., Any] | None:
    """The decomposition of an overload such as ``"aten::add.Tensor"``; None if there is none.

    The tables take about a second to import, which happens at the first call.
    """
    from torch._decomp import decomposition_table

    namespace, _, name = op_name.partition("::")
    base, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    op = getattr(packet, overload or "default", None)
    return decomposition_table.get(op) if op is not None else None
