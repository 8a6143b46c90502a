# SPDX-License-Identifier: Apache-2.0
"""Names of older releases of the ``torch_tpu`` interface that scripts still import."""

import torch


def tpu_device(index: int = 0) -> torch.device:
    """``torch.device("tpu", index)``."""
    return torch.device("tpu", index)
