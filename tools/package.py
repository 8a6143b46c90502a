# SPDX-License-Identifier: Apache-2.0
"""The wheel, and how large it may be."""

import sys

from tools.environment import PYTHON, ROOT, run, say

MAX_WHEEL_BYTES = 15 * 2**20


def build_wheel() -> None:
    """Build the wheel into dist/ with the environment's tools; fails if it is too large."""
    for old in (ROOT / "dist").glob("*.whl"):
        old.unlink()
    pip = (str(PYTHON), "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-build-isolation", "--no-deps", "--wheel-dir", "dist", ".")
    wheel = next((ROOT / "dist").glob("*.whl"))
    size = wheel.stat().st_size
    say(f"{wheel.name}: {size / 2**20:.1f} MiB of at most {MAX_WHEEL_BYTES // 2**20}")
    if size > MAX_WHEEL_BYTES:
        sys.exit("the wheel is too large")
