# SPDX-License-Identifier: Apache-2.0
"""Memory of a device, counted by this package: names and keys are those of ``torch.cuda.memory``.

Sizes are bytes. "Allocated" is what live tensors hold, "reserved" adds what the allocator keeps for
reuse. Asking starts no device: before first use everything is 0.
"""

import collections
from typing import Any

from torch_tpu import _C
from torch_tpu.device_module._utils import DeviceLike, _get_device_index

__all__ = [
    "empty_cache",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

_POOLS = ("all", "large_pool", "small_pool")
# The limit each device started with; set_per_process_memory_fraction takes its share of this.
_full_limit: dict[int, int] = {}


def _index(device: DeviceLike) -> int:
    return _get_device_index(device, optional=True)


def _raw(device: DeviceLike) -> collections.defaultdict[str, int]:
    values = _C.memory_stats(_index(device)) if _C.is_started() else {}
    return collections.defaultdict(int, values)


def _stat(current: int, peak: int, allocated: int, freed: int) -> dict[str, dict[str, int]]:
    """One statistic in CUDA's form. There is one pool, reported as "all" and as the large one."""
    values = {"current": current, "peak": peak, "allocated": allocated, "freed": freed}
    return {pool: dict.fromkeys(values, 0) if pool == "small_pool" else values for pool in _POOLS}


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """:func:`memory_stats` as nested dicts."""
    raw = _raw(device)
    live, peak = raw["live_bytes"], raw["peak_bytes"]
    reserved, peak_reserved = raw["reserved_bytes"], raw["peak_reserved_bytes"]
    allocated, freed = raw["total_allocated_bytes"], raw["total_freed_bytes"]
    count, arrays = raw["allocations"], raw["live_arrays"]
    in_use = _stat(live, peak, allocated, freed)
    blocks = _stat(arrays, arrays, count, max(count - arrays, 0))
    return {
        "allocated_bytes": in_use,
        "active_bytes": in_use,
        "requested_bytes": in_use,
        "reserved_bytes": _stat(reserved, peak_reserved, peak_reserved, peak_reserved - reserved),
        "inactive_split_bytes": _stat(0, 0, 0, 0),
        "allocation": blocks,
        "active": blocks,
        "segment": blocks,
        "inactive_split": _stat(0, 0, 0, 0),
        "num_alloc_retries": 0,
        "num_ooms": raw["out_of_memory"],
        "max_split_size": -1,
    }


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Statistics by CUDA's key names, such as ``allocated_bytes.all.current`` and ``num_ooms``."""
    flat: dict[str, int] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat[prefix] = value

    add("", memory_stats_as_nested_dict(device))
    return collections.OrderedDict(sorted(flat.items()))


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes held by live tensors."""
    return _raw(device)["live_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Largest :func:`memory_allocated` since the start or :func:`reset_peak_memory_stats`."""
    return _raw(device)["peak_bytes"]


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes held by live tensors or kept by the allocator for reuse."""
    return _raw(device)["reserved_bytes"]


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Largest :func:`memory_reserved` since the start or :func:`reset_peak_memory_stats`."""
    return _raw(device)["peak_reserved_bytes"]


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks start from what is in use now."""
    if _C.is_started():
        _C.reset_peak_memory(_index(device))


def reset_max_memory_allocated(device: DeviceLike = None) -> None:
    """The same as :func:`reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Set the totals (``allocated``, ``freed``, ``num_ooms``) to zero."""
    if _C.is_started():
        _C.reset_accumulated_memory(_index(device))


def empty_cache() -> None:
    """Give memory that no tensor uses back to the system, on every device."""
    if _C.is_started():
        for index in range(_C.device_count()):
            _C.empty_cache(index)


def _total(index: int) -> int:
    return _full_limit.get(index) or _C.memory_stats(index)["limit_bytes"]


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total) bytes; starts the device."""
    index = _index(device)
    stats = _C.memory_stats(index)
    return max(stats["limit_bytes"] - stats["live_bytes"], 0), _total(index)


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limit tensors to ``fraction`` (0 to 1) of the memory; beyond it allocation fails."""
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = _index(device)
    total = _full_limit.setdefault(index, _total(index))
    _C.set_memory_limit(index, max(int(total * fraction), 1))


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The share of the memory that tensors may use."""
    index = _index(device)
    return _C.memory_stats(index)["limit_bytes"] / _total(index)


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The main statistics as a table for people; ``abbreviated`` leaves the totals out."""
    index = _index(device)
    raw = _raw(index)
    rows = [
        ("in use by tensors", raw["live_bytes"]),
        ("peak in use", raw["peak_bytes"]),
        ("reserved", raw["reserved_bytes"]),
        ("peak reserved", raw["peak_reserved_bytes"]),
        ("limit", raw["limit_bytes"]),
    ]
    if not abbreviated:
        rows += [
            ("allocated in all", raw["total_allocated_bytes"]),
            ("freed in all", raw["total_freed_bytes"]),
        ]
    lines = [f"memory of tpu:{index}"]
    lines += [f"  {name:<18}{size / 2**20:>14,.1f} MiB" for name, size in rows]
    lines.append(f"  {'live arrays':<18}{raw['live_arrays']:>14,}")
    lines.append(f"  {'out of memory':<18}{raw['out_of_memory']:>14,} times")
    return "\n".join(lines)
