# SPDX-License-Identifier: Apache-2.0
"""``Precision`` and ``precision`` of ``torch.tpu``."""

from torch_tpu.device_module._modes import Precision, precision

__all__ = ["Precision", "precision"]
