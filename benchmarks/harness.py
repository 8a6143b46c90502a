# SPDX-License-Identifier: Apache-2.0
"""The same work on the CPU device and on ``tpu``, interleaved so that load hits both alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """``make(device)`` returns the work of one sample: ``count`` equal steps without waiting."""

    name: str
    make: Callable[[str], Work]
    count: int = 1
    limit: float | None = None  # largest acceptable ratio to the CPU device


@dataclass(frozen=True)
class Result:
    """Median seconds per step; ``host`` is until the call returns, ``total`` until it is done."""

    case: Case
    cpu: float
    host: float
    total: float

    @property
    def ratio(self) -> float:
        """The host's time for steps that are too small to wait for, else the whole."""
        return (self.host if self.case.count > 1 else self.total) / self.cpu


def measure(case: Case, rounds: int) -> Result:
    cpu, tpu = case.make("cpu"), case.make("tpu")
    for work in (cpu, tpu, cpu, tpu):
        work()
    torch.tpu.synchronize()
    samples: dict[str, list[float]] = {"cpu": [], "host": [], "total": []}
    for _ in range(rounds):
        started = time.perf_counter()
        cpu()
        samples["cpu"].append(time.perf_counter() - started)
        started = time.perf_counter()
        tpu()
        samples["host"].append(time.perf_counter() - started)
        torch.tpu.synchronize()
        samples["total"].append(time.perf_counter() - started)
    median = {name: statistics.median(values) / case.count for name, values in samples.items()}
    return Result(case, **median)
