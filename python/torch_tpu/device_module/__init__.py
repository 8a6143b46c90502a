# SPDX-License-Identifier: Apache-2.0
"""``torch.tpu``: what ``torch.cuda`` offers, for device ``tpu``, and what only this device has."""

import sys

import torch

from torch_tpu import _C
from torch_tpu.device_module import _utils, amp, memory, random
from torch_tpu.device_module._devices import (
    DeviceProperties,
    _exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from torch_tpu.device_module._modes import (
    EagerMode,
    EagerModeModule,
    Precision,
    debug,
    precision,
    set_eager_mode,
)
from torch_tpu.device_module._report import (
    _clear_cache,
    _get_cache_stats,
    cache_stats,
    compile_events,
    explain_recompiles,
    fallback_counts,
    reset_fallback_counts,
)
from torch_tpu.device_module._streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from torch_tpu.device_module.amp import get_amp_supported_dtype
from torch_tpu.device_module.memory import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_tpu.device_module.random import (
    _generators,
    _get_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

_is_in_bad_fork = _C.in_bad_fork
_lazy_init = init
_maybe_exchange_device = _exchange_device
_shutdown_runtime = _C.shutdown


# Checkpointing saves random states only if this is set. Ours exist before the device is started.
_initialized = True


class _TpuModule(EagerModeModule):
    @property
    def default_generators(self) -> tuple[torch.Generator, ...]:
        """One generator per device, always the same objects."""
        return _generators()


sys.modules[__name__].__class__ = _TpuModule

__all__ = [
    "DeviceProperties",
    "EagerMode",
    "Event",
    "Precision",
    "Stream",
    "StreamContext",
    "amp",
    "cache_stats",
    "compile_events",
    "current_device",
    "current_stream",
    "debug",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "explain_recompiles",
    "fallback_counts",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "precision",
    "random",
    "reset_accumulated_memory_stats",
    "reset_fallback_counts",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_eager_mode",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
