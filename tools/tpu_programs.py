# SPDX-License-Identifier: Apache-2.0
"""Whether TPUs take our programs, found out without one: ``./dev test --tpu``.

``tests/tpu/collect.py`` writes the programs of operators as TPUs get them; the compiler of the
installed libtpu then compiles each. Verdicts are kept in build/tpu by program and compiler.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.environment import PYTHON, ROOT, run_python, say

TOPOLOGIES = ("v6e:1x1", "tpu7x:1x1x1")
KEPT = ROOT / "build" / "tpu"
REFUSED = ROOT / "tests" / "tpu" / "refused.txt"


@dataclass(frozen=True)
class Verdict:
    topology: str
    program: str  # the operator and its arguments' types
    error: str  # empty: compiled


def run(sample: int) -> int:
    """Collect and compile; ``sample``: at most so many programs, 0 for all. The exit status."""
    compiler = _compiler()
    programs = KEPT / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    for old in programs.glob("*.mlir"):
        old.unlink()
    run_python(
        str(ROOT / "tests" / "tpu" / "collect.py"),
        *(("--sample", str(sample)) if sample else ()),
        TORCH_TPU_LOWER_FOR="tpu",
        TORCH_TPU_DUMP=str(programs),
        TORCH_TPU_CACHE_DIR="off",
        TORCH_TPU_FALLBACK="allow",
    )
    files = sorted(programs.glob("*.mlir"))
    if sample:
        files = files[:: max(1, len(files) // sample)][:sample]
    say(f"{len(files)} programs for {', '.join(TOPOLOGIES)}")
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = [v for t in TOPOLOGIES for v in _compile_all(pool, compiler, t, files)]
    return _report(verdicts)


def _compiler() -> str:
    found = subprocess.run(
        [str(PYTHON), "-c", "import libtpu; print(libtpu.get_library_path())"],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        sys.exit("./dev test --tpu needs libtpu in the environment")
    return found.stdout.strip()


def _compile_all(
    pool: ThreadPoolExecutor, compiler: str, topology: str, files: list[Path]
) -> list[Verdict]:
    kept = _Kept(compiler, topology)
    missing = [f for f in files if f not in kept]
    workers = os.cpu_count() or 1
    for answers in pool.map(
        lambda part: _compile(compiler, topology, part),
        [missing[i::workers] for i in range(workers)],
    ):
        kept.add(answers)
    kept.save()
    return [Verdict(topology, _title(f), kept.error(f)) for f in files]


def _compile(compiler: str, topology: str, files: list[Path]) -> dict[str, str]:
    """Errors by file name. A program that kills the compiler is blamed, and the rest goes on."""
    errors: dict[str, str] = {}
    left = list(files)
    while left:
        done = subprocess.run(
            [str(ROOT / "build" / "dev" / "compile_for"), compiler, topology],
            input="".join(f"{f}\n" for f in left),
            capture_output=True,
            text=True,
        )
        answers = done.stdout.splitlines()
        for file, answer in zip(left, answers, strict=False):
            errors[file.name] = answer.partition("\t")[2] if answer.startswith("error") else ""
        left = left[len(answers) :]
        if left:
            last = done.stderr.strip().splitlines()[-1:]
            errors[left[0].name] = f"the compiler died ({done.returncode}): {' '.join(last)}"
            left = left[1:]
    return errors


class _Kept:
    """Verdicts of earlier runs."""

    def __init__(self, compiler: str, topology: str) -> None:
        stamp = f"{Path(compiler).stat().st_size} {topology}"
        self._path = KEPT / f"{hashlib.sha256(stamp.encode()).hexdigest()[:16]}.json"
        self._errors = json.loads(self._path.read_text()) if self._path.exists() else {}

    def __contains__(self, file: Path) -> bool:
        return file.name in self._errors

    def add(self, errors: dict[str, str]) -> None:
        self._errors |= errors

    def error(self, file: Path) -> str:
        return str(self._errors[file.name])

    def save(self) -> None:
        self._path.write_text(json.dumps(self._errors, indent=0, sort_keys=True))


def _title(file: Path) -> str:
    return file.read_text().partition("\n")[0].removeprefix("// ")


def _report(verdicts: list[Verdict]) -> int:
    lines = REFUSED.read_text().splitlines() if REFUSED.exists() else []
    expected = {line.partition("  ")[0] for line in lines if line and not line.startswith("#")}
    refused = [v for v in verdicts if v.error]
    surprises = [v for v in refused if v.program.partition("(")[0] not in expected]
    for v in surprises:
        print(f"REFUSED {v.topology} {v.program}: {v.error[:300]}", flush=True)
    say(
        f"{len(verdicts) - len(refused)} of {len(verdicts)} compile; "
        f"{len(refused) - len(surprises)} refusals are known, {len(surprises)} are new"
    )
    return 1 if surprises else 0
