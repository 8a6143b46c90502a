# SPDX-License-Identifier: Apache-2.0
"""What the machine has."""

from torch_tpu import _C


def get_tpu_device_name() -> str:
    """Name of the first device, as ``torch.tpu.get_device_name()`` gives it."""
    return _C.device_name(0)


def get_tpu_device_count() -> int:
    """Number of TPU devices in this machine; 0 where the CPU plugin stands in for one."""
    return _C.device_count() if _C.tpu_present() else 0
