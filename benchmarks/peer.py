# SPDX-License-Identifier: Apache-2.0
"""The same work under another package that calls its device ``tpu``, in turns with ours.

The other one lives in an environment of its own: ``--peer`` is that environment's python,
``--peer-setup`` what must run in it before torch is imported.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import CASES

# Host time per step without waiting, the best of several batches, and a cold first training step.
_WORK = """
{setup}
import json, sys, time
import torch
import torch.nn.functional as F
sys.path.insert(0, {root!r})
from benchmarks.cases import CASES, examples, small_mlp, train
work = train(small_mlp, examples(32, 64))("tpu")
torch.accelerator.synchronize()
started = time.perf_counter()
work()
torch.accelerator.synchronize()
seconds = {{"first step of a small MLP": time.perf_counter() - started}}
for case in CASES:
    if case.name not in {names!r}:
        continue
    work, best = case.make("tpu"), 1e9
    for _ in range(8):
        started = time.perf_counter()
        work()
        torch.accelerator.synchronize()
        best = min(best, time.perf_counter() - started)
    seconds[case.name] = best / case.count
print(json.dumps(seconds))
"""


def show_peer(python: str, setup: str, words: list[str], rounds: int = 3) -> None:
    """Print seconds of both and their ratio, each the best of ``rounds`` processes."""
    names = [c.name for c in CASES if not words or any(word in c.name for word in words)]
    best: dict[str, dict[str, float]] = {"ours": {}, "peer": {}}
    for _ in range(rounds):
        for who, command, prelude in (("ours", sys.executable, ""), ("peer", python, setup)):
            for name, seconds in _run(command, prelude, names).items():
                best[who][name] = min(seconds, best[who].get(name, seconds))
    print(f"{'us per step, until done':<28}{'ours':>12}{'peer':>12}{'ratio':>9}")
    for name, ours in best["ours"].items():
        peer = best["peer"][name]
        print(f"{name:<28}{ours * 1e6:12,.1f}{peer * 1e6:12,.1f}{ours / peer:9.2f}", flush=True)


def _run(python: str, setup: str, names: list[str]) -> dict[str, float]:
    root = str(Path(__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory() as cache:
        variables = {"TORCH_TPU_CACHE_DIR": cache}
        if setup:  # which loads its device itself
            variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        done = subprocess.run(
            [python, "-c", _WORK.format(setup=setup, root=root, names=names)],
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        sys.exit(f"{python}: {done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
