# SPDX-License-Identifier: Apache-2.0
"""``synchronize``, with the signature clients call."""

from collections.abc import Iterable

import torch

from torch_tpu import _C


def synchronize(tensors: Iterable[torch.Tensor] | None = None, wait: bool = False) -> None:
    """Launch what is pending; with ``wait``, wait for the devices of ``tensors`` (default: all).

    In the Strict and Debug modes nothing is ever pending.
    """
    if not wait:
        return
    devices = (t.device.index for t in tensors) if tensors is not None else range(_C.device_count())
    for index in sorted(set(devices)):
        _C.synchronize(index)
