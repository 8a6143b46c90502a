# SPDX-License-Identifier: Apache-2.0
"""The specification of nearly every test is: what the CPU does."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only


def to_device(value: Any, device: str = "tpu") -> Any:
    """A copy of every tensor in a nested value; strides, offset and requires_grad are kept."""
    return tree_map_only(torch.Tensor, lambda t: _copy(t, device), value)


def _copy(tensor: torch.Tensor, device: str) -> torch.Tensor:
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    moved = tensor.detach()
    if moved.is_contiguous() and moved.numel() == elements:
        moved = moved.clone().to(device)
    else:
        base = moved.as_strided((elements,), (1,), 0).clone().to(device)
        moved = base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return moved.requires_grad_(tensor.requires_grad)


def same(actual: Any, expected: Any, *, strides: bool = False, **tolerances: float) -> None:
    """Equal in value, shape and dtype wherever they live; with ``strides`` in strides too."""
    if isinstance(expected, torch.Tensor):
        assert actual.shape == expected.shape
        if strides:
            assert actual.stride() == expected.stride()
        torch.testing.assert_close(
            actual.detach().cpu(), expected.detach().cpu(), equal_nan=True, **tolerances
        )
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e, strides=strides, **tolerances)
    else:
        assert actual == expected


def check(function: Callable[..., Any], *args: Any, strides: bool = True, **tolerances: Any) -> Any:
    """``function`` does on the device what it does on the CPU, to its arguments too."""
    cpu_args, tpu_args = to_device(args, "cpu"), to_device(args, "tpu")
    expected, actual = function(*cpu_args), function(*tpu_args)
    same(actual, expected, strides=strides, **tolerances)
    same(tpu_args, cpu_args, strides=strides, **tolerances)
    return actual


def check_error(function: Callable[..., Any], *args: Any) -> str:
    """``function`` raises the CPU's exception with the CPU's text on the device."""
    errors = []
    for device in ("cpu", "tpu"):
        try:
            function(*to_device(args, device))
            torch.tpu.synchronize()
        except Exception as error:
            errors.append(error)
        else:
            errors.append(None)
    expected, actual = errors
    assert expected is not None, "the CPU accepts this"
    assert type(actual) is type(expected), repr(actual)
    assert str(actual).splitlines()[0] == str(expected).splitlines()[0]
    return str(actual)


def run_python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a snippet in a new process; its failure is the test's."""
    env = os.environ | variables
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={name: value for name, value in env.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
