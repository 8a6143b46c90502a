# SPDX-License-Identifier: Apache-2.0
"""Registers device ``tpu`` with torch: the entry point ``torch.backends`` calls :func:`load`.

Runs inside ``import torch``, so it stays light: no device is started and nothing is printed.
"""

import atexit
import os
import sys
import types
import warnings

import torch

_TORCH_VERSION = (2, 13)
_loaded = False


def load() -> None:
    """Make device ``tpu`` known to torch. Idempotent; starts no device.

    Raises ImportError if the installed torch is not the one this package was built for, and
    ValueError if an environment variable ``TORCH_TPU_*`` cannot be understood.
    """
    global _loaded
    if _loaded:
        return
    _check_torch_version()

    from torch_tpu import _C, _autocast, _config, _precision, device_module

    config = _config.from_environment(os.environ)
    _C.configure(
        config.plugin_path,
        config.tpu_plugin_path,
        config.cpu_plugin_path,
        config.device_count,
        config.cache_dir,
        config.cache_bytes,
        config.memory_limit,
    )
    _C.set_fallback_policy(config.fallback)
    _C.set_host_calls(config.host_calls)
    _set_eager_mode(config.eager_mode)
    _C.set_finite_checks(config.debug_checks)
    _register(device_module)
    _autocast.install()
    _precision.install()
    # Accelerate has no branch for this device; the variable is how it is told.
    os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "tpu:0")
    atexit.register(_C.shutdown)
    _loaded = True


def _check_torch_version() -> None:
    found = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if found != _TORCH_VERSION:
        wanted = ".".join(map(str, _TORCH_VERSION))
        raise ImportError(f"torch_tpu is built for torch {wanted}, found torch {torch.__version__}")


def _register(module: types.ModuleType) -> None:
    torch.utils.rename_privateuse1_backend("tpu")
    torch._register_device_module("tpu", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    # `import torch.tpu.memory` must find the module that `torch.tpu` already holds.
    for name in ("amp", "memory", "random"):
        sys.modules[f"torch.tpu.{name}"] = getattr(module, name)


def _set_eager_mode(mode: int) -> None:
    from torch_tpu import _C
    from torch_tpu.device_module._modes import AVAILABLE_MODES, EagerMode

    if mode not in AVAILABLE_MODES:
        warnings.warn(
            "TORCH_TPU_DEFER_AND_FUSE: DeferAndFuse is not available; running in Strict",
            stacklevel=3,
        )
        mode = EagerMode.DEFER_NEVER
    _C.set_eager_mode(int(mode))
