# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks [WORD ...]: time per step on ``tpu`` against torch's CPU device.

With ``--peer`` against another package for TPUs, which has an environment of its own.
"""

import argparse

import torch

from benchmarks.cases import CASES
from benchmarks.harness import Result, measure
from benchmarks.peer import show_peer
from benchmarks.start import show_start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only the benchmarks whose name contains one")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peer", help="python of another tpu package's environment")
    parser.add_argument("--peer-setup", default="", help="what it runs before importing torch")
    args = parser.parse_args()
    if args.peer:
        show_peer(args.peer, args.peer_setup, args.words)
        return
    print(f"{torch.tpu.get_device_name()}, {torch.get_num_threads()} CPU threads")
    print(f"{'us per step':<28}{'cpu':>12}{'host':>12}{'total':>12}{'ratio':>9}")
    for case in CASES:
        if not args.words or any(word in case.name for word in args.words):
            show(measure(case, args.rounds))
    if not args.words or "start" in args.words:
        show_start()
    cache = torch.tpu.cache_stats()
    print(f"{cache['compiles']} compiles in {cache['compile_seconds']:.1f} s")


def show(result: Result) -> None:
    micro = [f"{seconds * 1e6:12,.1f}" for seconds in (result.cpu, result.host, result.total)]
    limit = result.case.limit
    verdict = "" if limit is None else f"  (at most {limit})" + " !" * (result.ratio > limit)
    print(f"{result.case.name:<28}{''.join(micro)}{result.ratio:9.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
