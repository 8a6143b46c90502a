# SPDX-License-Identifier: Apache-2.0
"""Environment variables: names, units, precedence, and what happens to nonsense."""

from pathlib import Path

import pytest
import torch
from support import run_python
from torch_tpu import _config


@pytest.mark.parametrize(
    ("variables", "field", "value"),
    [
        ({"TORCH_TPU_LAUNCH_BLOCKING": "1"}, "eager_mode", 2),
        ({"TPU_LAUNCH_BLOCKING": "1"}, "eager_mode", 2),
        ({"TORCH_TPU_DEFER_AND_FUSE": "1"}, "eager_mode", 0),
        ({"TORCH_TPU_LAUNCH_BLOCKING": "1", "TORCH_TPU_DEFER_AND_FUSE": "1"}, "eager_mode", 2),
        ({"TORCH_TPU_LAUNCH_BLOCKING": "0"}, "eager_mode", 1),
        ({"TORCH_TPU_ENABLE_DEBUG_CHECKS": "1"}, "debug_checks", True),
        ({"TORCH_TPU_INTERNAL_ENABLE_DEBUG_CHECKS": "1"}, "debug_checks", True),
        ({"TORCH_TPU_DEVICES": "4"}, "device_count", 4),
        ({"TPU_LIBRARY_PATH": "a"}, "plugin_path", "a"),
        ({"TPU_LIBRARY_PATH": "a", "TORCH_TPU_PJRT_PLUGIN": "b"}, "plugin_path", "b"),
        ({"TORCH_TPU_MEMORY_LIMIT": "8GB"}, "memory_limit", 8 * 2**30),
        ({"TORCH_TPU_MEMORY_LIMIT": "1.5 GiB"}, "memory_limit", 3 * 2**29),
        ({"TORCH_TPU_MEMORY_LIMIT": "4096"}, "memory_limit", 4096),
        ({"TORCH_TPU_CACHE_DIR": "/c"}, "cache_dir", "/c"),
        ({"TORCH_TPU_CACHE_DIR": "off"}, "cache_dir", ""),
        ({"TORCH_TPU_CACHE_DIR": ""}, "cache_dir", ""),
        ({"XDG_CACHE_HOME": "/x"}, "cache_dir", "/x/torch_tpu"),
        ({"TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT": "/t"}, "cache_dir", "/t"),
        ({"TORCH_TPU_CACHE_BYTES": "1m"}, "cache_bytes", 2**20),
        ({"TORCH_TPU_FALLBACK": "error"}, "fallback", "error"),
    ],
)
def test_variable(variables, field, value):
    assert getattr(_config.from_environment(variables), field) == value


def test_defaults():
    config = _config.from_environment({})
    assert config.eager_mode == 1 and config.fallback == "warn" and config.device_count == 0
    assert config.cpu_plugin_path.endswith("xla_cpu_pjrt.so")
    assert config.cache_dir.endswith("torch_tpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCH_TPU_DEVICES", "0"),
        ("TORCH_TPU_DEVICES", "two"),
        ("TORCH_TPU_MEMORY_LIMIT", "much"),
        ("TORCH_TPU_FALLBACK", "maybe"),
        ("TORCH_TPU_LAUNCH_BLOCKING", "si"),
    ],
)
def test_nonsense_names_the_variable(name, value):
    with pytest.raises(ValueError, match=f"{name}: expected .* got '{value}'"):
        _config.from_environment({name: value})


def test_mode_from_environment_and_python_wins():
    run_python(
        """
        import torch
        assert torch.tpu.eager_mode == torch.tpu.EagerMode.DEBUG
        torch.tpu.eager_mode = torch.tpu.EagerMode.STRICT
        assert torch.tpu.eager_mode == torch.tpu.EagerMode.STRICT
        """,
        TORCH_TPU_LAUNCH_BLOCKING="1",
    )


def test_unavailable_mode_warns_and_runs_in_strict():
    done = run_python(
        "import torch; assert torch.tpu.eager_mode == 1", TORCH_TPU_DEFER_AND_FUSE="1"
    )
    assert "DeferAndFuse is not available" in done.stderr


def test_memory_limit_from_environment():
    run_python(
        """
        import torch
        assert torch.tpu.mem_get_info()[1] == 64 * 2**20
        try:
            torch.ones(32 * 2**20, device="tpu")
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("no limit")
        assert torch.ones(4, device="tpu").sum().item() == 4
        """,
        TORCH_TPU_MEMORY_LIMIT="64MB",
    )


def test_missing_plugin_is_named_at_first_use():
    run_python(
        """
        import torch
        assert torch.tpu.is_available()
        try:
            torch.ones(3, device="tpu")
        except RuntimeError as error:
            assert "/nowhere/plugin.so" in str(error), error
        else:
            raise AssertionError("no error")
        """,
        TORCH_TPU_PJRT_PLUGIN="/nowhere/plugin.so",
    )


def test_library_that_is_no_plugin_is_named():
    run_python(
        """
        import torch
        try:
            torch.ones(3, device="tpu")
        except RuntimeError as error:
            assert "libc10.so" in str(error) and "GetPjrtApi" in str(error), error
        else:
            raise AssertionError("no error")
        """,
        TORCH_TPU_PJRT_PLUGIN=str(Path(torch.__file__).parent / "lib" / "libc10.so"),
    )
