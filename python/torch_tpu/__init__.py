# SPDX-License-Identifier: Apache-2.0
"""Device ``tpu`` for PyTorch.

``import torch`` alone loads this package through the entry point ``torch.backends``; importing it
by name does the same and also works with ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. What users call is
``torch.tpu`` and PyTorch itself.
"""

# Importing torch may already run `load` through its autoloader, which then finds this package
# half imported: nothing below may be needed by it.
import torch  # noqa: F401

from torch_tpu._loader import load

__version__ = "0.1.0"

load()
