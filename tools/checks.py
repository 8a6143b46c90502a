# SPDX-License-Identifier: Apache-2.0
"""What ``./dev check`` runs: every tool, then one list of what failed."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools import hygiene, layering
from tools.environment import PYTHON, ROOT, environment, run, say, status

CPP_FOLDERS = ("include", "core", "lower", "backend", "bindings")
PYTHON_FOLDERS = ("python", "tools", "tests", "examples", "benchmarks", "dev")
MAX_FUNCTION_LINES = 60
MAX_COMPLEXITY = 25


def run_all(full: bool) -> None:
    """Run every check; leaves with status 1 if one failed. ``full``: clang-tidy on all of core."""
    checks: dict[str, Callable[[], bool]] = {
        "layering": lambda: _report(layering.violations(ROOT)),
        "hygiene": lambda: _report(hygiene.violations(ROOT)),
        "clang-format": _clang_format,
        "ruff format": lambda: _tool("ruff", "format", "--check", *_existing(PYTHON_FOLDERS)),
        "ruff": lambda: _tool("ruff", "check", *_existing(PYTHON_FOLDERS)),
        "mypy": lambda: _tool(str(PYTHON), "-m", "mypy"),
        "function sizes": _lizard,
        "clang-tidy": lambda: _clang_tidy(full),
    }
    failed = []
    for name, check in checks.items():
        started = time.monotonic()
        passed = check()
        say(f"{'ok' if passed else 'FAILED':<8}{name} ({time.monotonic() - started:.1f} s)")
        if not passed:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def cpp_files(folders: tuple[str, ...] = CPP_FOLDERS) -> list[str]:
    """C++ files of the tree that git knows or would add, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *_existing(folders)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [f for f in listed if f.endswith((".cc", ".h")) and (ROOT / f).exists()]


def fix_layout() -> None:
    """Lay out the whole tree as the checks want it."""
    run("clang-format", "-i", *cpp_files())
    run("ruff", "check", "--quiet", "--fix", *_existing(PYTHON_FOLDERS))
    run("ruff", "format", "--quiet", *_existing(PYTHON_FOLDERS))


def _existing(folders: tuple[str, ...]) -> list[str]:
    return [folder for folder in folders if (ROOT / folder).exists()]


def _tool(*command: str) -> bool:
    result = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if result.returncode:
        print(result.stdout + result.stderr, end="", flush=True)
    return result.returncode == 0


def _report(problems: list[str]) -> bool:
    for problem in problems:
        print(problem, flush=True)
    return not problems


def _clang_format() -> bool:
    return _tool("clang-format", "--dry-run", "--Werror", *cpp_files())


def _lizard() -> bool:
    limits = ("--length", str(MAX_FUNCTION_LINES), "--CCN", str(MAX_COMPLEXITY), "--modified")
    folders = _existing((*CPP_FOLDERS, "python", "tools"))
    return _tool(str(PYTHON), "-m", "lizard", "--warnings_only", *limits, *folders)


def _clang_tidy(full: bool) -> bool:
    """On the sources of core and lower that differ from HEAD's parent, or on all of them."""
    sources = [f for f in cpp_files(("core", "lower")) if f.endswith(".cc")]
    files = [f for f in sources if not f.endswith("_test.cc")]
    if not full:
        changed = _changed()
        files = [f for f in files if f in changed]
    if not files:
        return True
    build = ROOT / "build" / "asan"
    configure = ("cmake", "--preset", "asan", f"-DPython3_EXECUTABLE={PYTHON}")
    if status(*configure, "--log-level=WARNING"):
        return False
    # Any C++ file of the database is compiled by gcc; clang does not know all of its warnings.
    command = ["clang-tidy", "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option"]
    halves = [files[0::2], files[1::2]]
    running = [
        subprocess.Popen([*command, *half], cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
        for half in halves
        if half
    ]
    statuses = [process.wait() for process in running]
    return not any(statuses)


def _changed() -> set[str]:
    base = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "HEAD~1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout.strip()
    if not base:
        return set()
    listed = subprocess.run(
        ["git", "diff", "--name-only", base], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {str(Path(line)) for line in listed.stdout.splitlines()}
