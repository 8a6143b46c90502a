# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_demo():
    pytest.importorskip("transformers")
    pytest.importorskip("all_minilm_l6_v2")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), "--steps", "40", "--length", "20"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A cheetah chases its prey" in done.stdout
    assert "fallbacks    none" in done.stdout
