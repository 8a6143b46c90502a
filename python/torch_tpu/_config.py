# SPDX-License-Identifier: Apache-2.0
"""What the environment says, read once at load. A setting made from Python later wins."""

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFER_AND_FUSE, STRICT, DEBUG = 0, 1, 2
_FALLBACK_POLICIES = ("warn", "error", "allow")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


@dataclass(frozen=True)
class Config:
    """One field per setting; sizes are in bytes, 0 or an empty string means "the default"."""

    plugin_path: str  # explicit choice, wins over both below
    tpu_plugin_path: str  # libtpu.so of the installed package
    cpu_plugin_path: str  # the XLA:CPU plugin of the installed package
    device_count: int
    cache_dir: str  # empty: no disk cache
    cache_bytes: int
    memory_limit: int
    fallback: str  # one of warn, error, allow
    eager_mode: int
    host_calls: bool
    debug_checks: bool


def from_environment(env: Mapping[str, str]) -> Config:
    """Read every ``TORCH_TPU_*`` variable; ValueError names the one that cannot be understood."""
    return Config(
        plugin_path=env.get("TORCH_TPU_PJRT_PLUGIN") or env.get("TPU_LIBRARY_PATH", ""),
        tpu_plugin_path=_library("libtpu", "libtpu.so"),
        cpu_plugin_path=_library("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
        device_count=_count(env, "TORCH_TPU_DEVICES"),
        cache_dir=_cache_dir(env),
        cache_bytes=_size(env, "TORCH_TPU_CACHE_BYTES", 4 * 2**30),
        memory_limit=_size(env, "TORCH_TPU_MEMORY_LIMIT", 0),
        fallback=_choice(env, "TORCH_TPU_FALLBACK", _FALLBACK_POLICIES),
        eager_mode=_eager_mode(env),
        host_calls=_flag(env, "TORCH_TPU_HOST_CALLS", default="1"),
        debug_checks=_flag(
            env, "TORCH_TPU_ENABLE_DEBUG_CHECKS", "TORCH_TPU_INTERNAL_ENABLE_DEBUG_CHECKS"
        ),
    )


def _library(package: str, file: str) -> str:
    """Path of `file` in an installed package, without importing it; empty if there is none."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return ""
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, file)
        if path.exists():
            return str(path)
    return ""


def _cache_dir(env: Mapping[str, str]) -> str:
    value = env.get("TORCH_TPU_CACHE_DIR")
    if value is None:
        root = env.get("TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT", "")
        if root and "://" not in root:
            return root
        base = env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return os.path.join(base, "torch_tpu")
    if value.lower() in ("", "0", "off"):
        return ""
    return os.path.expanduser(value)


def _eager_mode(env: Mapping[str, str]) -> int:
    if _flag(env, "TORCH_TPU_LAUNCH_BLOCKING", "TPU_LAUNCH_BLOCKING"):
        return DEBUG
    if _flag(env, "TORCH_TPU_DEFER_AND_FUSE", "TPU_DEFER_AND_FUSE"):
        return DEFER_AND_FUSE
    return STRICT


def _flag(env: Mapping[str, str], name: str, old_name: str = "", default: str = "0") -> bool:
    value = env.get(name, env.get(old_name, default)).lower()
    if value not in ("0", "1", "true", "false", ""):
        raise ValueError(f"{name}: expected 0 or 1, got {value!r}")
    return value in ("1", "true")


def _count(env: Mapping[str, str], name: str) -> int:
    value = env.get(name, "")
    if not value:
        return 0
    if not value.isdecimal() or int(value) == 0:
        raise ValueError(f"{name}: expected a positive number of devices, got {value!r}")
    return int(value)


def _size(env: Mapping[str, str], name: str, default: int) -> int:
    value = env.get(name, "")
    if not value:
        return default
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", value.strip().lower())
    if not match:
        raise ValueError(f"{name}: expected a size such as 8GB or 1073741824, got {value!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def _choice(env: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = env.get(name, choices[0]).lower()
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    return value
