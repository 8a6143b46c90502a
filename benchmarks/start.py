# SPDX-License-Identifier: Apache-2.0
"""Time to the end of the first training steps in a new process: empty cache, full cache, CPU."""

import json
import os
import subprocess
import sys
import tempfile

_STEPS = """
import time
started = time.perf_counter()
import json, torch
imported = time.perf_counter()
from benchmarks.cases import examples, mlp, train
work = train(mlp, examples(128, 784))("{device}")
times = [imported - started]
for _ in range(3):
    work()
    if "{device}" == "tpu":
        torch.tpu.synchronize()
    times.append(time.perf_counter() - imported)
print(json.dumps(times))
"""


def show_start() -> None:
    print(f"{'seconds in a new process':<28}{'import':>12}{'1st step':>12}{'3rd step':>12}")
    with tempfile.TemporaryDirectory() as cache:
        for name, device in (("cpu", "cpu"), ("empty cache", "tpu"), ("full cache", "tpu")):
            times = _run(device, cache)
            numbers = f"{times[0]:12.2f}{times[1]:12.2f}{times[3]:12.2f}"
            print(f"{name:<28}{numbers}", flush=True)


def _run(device: str, cache: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", _STEPS.format(device=device)],
        env=os.environ | {"TORCH_TPU_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return list(json.loads(done.stdout))
