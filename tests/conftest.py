# SPDX-License-Identifier: Apache-2.0
"""Two devices and a cache of the tests' own, chosen before torch is imported."""

import os
from pathlib import Path

os.environ.setdefault("TORCH_TPU_DEVICES", "2")
os.environ.setdefault(
    "TORCH_TPU_CACHE_DIR", str(Path(__file__).resolve().parent.parent / "build" / "test-cache")
)

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def no_fallback():
    """Makes the CPU fallback an error while a test runs."""
    import torch_tpu._C

    torch_tpu._C.set_fallback_policy("error")
    yield
    torch_tpu._C.set_fallback_policy("warn")
