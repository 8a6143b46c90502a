# SPDX-License-Identifier: Apache-2.0
"""`import torch` alone brings the device, silently, quickly and without starting it."""

import re

import pytest
from support import run_python

QUIET = """
import sys, threading
before = threading.active_count()
{imports}
import torch
assert torch.device("tpu").type == "tpu"
assert torch.tpu.is_available() and torch.tpu.device_count() == 2
assert torch.accelerator.current_accelerator() == torch.device("tpu")
assert torch.accelerator.device_count() == 2
torch.manual_seed(3)
torch.ones(3).requires_grad_().sum().backward()
assert not torch.tpu.is_initialized(), "the device was started"
assert threading.active_count() == before
"""


@pytest.mark.parametrize(
    ("imports", "autoload"),
    [
        ("import torch", "1"),
        ("import torch_tpu", "1"),
        ("import torch_tpu", "0"),
        ("import torch_tpu.api", "1"),
        ("import torch; import torch_tpu", "1"),
        ("import torch; import torch_tpu._loader as l; l.load(); l.load()", "0"),
    ],
)
def test_import_is_silent_and_starts_nothing(imports, autoload):
    done = run_python(QUIET.format(imports=imports), TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert done.stdout == "" and done.stderr == ""


def test_autoload_can_be_turned_off():
    run_python("import torch; assert not hasattr(torch, 'tpu')", TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_import_cost():
    """Milliseconds of this package's own modules; half a second is the promise."""
    done = run_python(
        """
        import subprocess, sys
        code = [sys.executable, "-X", "importtime", "-c", "import torch"]
        print(subprocess.run(code, capture_output=True, text=True).stderr)
        """
    )
    lines = re.findall(r"(\d+) \|\s+\d+ \|\s+(torch_tpu\S*)", done.stdout)
    assert len(lines) > 5
    assert sum(int(microseconds) for microseconds, _ in lines) < 500_000


def test_accelerate_is_told():
    code = "import torch, os; print(os.environ['ACCELERATE_TORCH_DEVICE'])"
    assert run_python(code).stdout.strip() == "tpu:0"
    assert run_python(code, ACCELERATE_TORCH_DEVICE="cpu").stdout.strip() == "cpu"


def test_exit_with_live_tensors_and_running_work():
    done = run_python(
        """
        import torch
        x = torch.ones(1000, 1000, device="tpu")
        for _ in range(20):
            x = x @ x * 1e-3
        keep = [x, torch.tpu.current_stream().record_event(), torch.Generator(device="tpu")]
        """
    )
    assert done.stderr == ""


def test_exit_right_after_a_backward():
    """The engine's thread still holds Python objects of the graph, and gets no turn before."""
    done = run_python(
        """
        import sys, torch
        sys.setswitchinterval(1000)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).to("tpu")
        for _ in range(3):
            model(torch.ones(3, 4, device="tpu")).square().mean().backward()
        """
    )
    assert done.stderr == ""


def test_exception_at_exit_is_not_hidden():
    run_python(
        """
        import atexit, torch
        x = torch.ones(3, device="tpu")
        atexit.register(lambda: print((x + 1).sum().item()))
        """
    )
