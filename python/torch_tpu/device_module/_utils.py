# SPDX-License-Identifier: Apache-2.0
"""Device arguments as users write them, turned into an index. ``torch.load`` looks here too."""

import torch

from torch_tpu import _C

DeviceLike = torch.device | str | int | None


def _get_device_index(device: DeviceLike = None, optional: bool = False) -> int:
    """Index of ``device``: an int, ``"tpu"``, ``"tpu:1"``, a torch.device.

    None or a device without an index is the current device if ``optional``, else ValueError.
    """
    if isinstance(device, int):
        return device
    index = None
    if device is not None:
        device = torch.device(device)
        if device.type != "tpu":
            raise ValueError(f"Expected a tpu device, but got: {device}")
        index = device.index
    if index is not None:
        return index
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return _C.current_device()
