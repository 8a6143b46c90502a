# SPDX-License-Identifier: Apache-2.0
"""Runs a sample of every covered operator, forward and backward, so that its programs are written.

Not a test: values are compared elsewhere. The environment says where programs go (TORCH_TPU_DUMP)
and that they take the forms of TPUs (TORCH_TPU_LOWER_FOR).
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path

import torch
from torch.testing._internal.common_methods_invocations import op_db

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

from covered import ROWS  # noqa: E402
from support import to_device  # noqa: E402
from test_op_db import OPERATORS, gradient  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16, torch.int32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=0, help="stop after so many operators")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = ROWS if not args.sample else ROWS[:: max(1, len(ROWS) // args.sample)]
    failed = 0
    for row in rows:
        operator = OPERATORS[row.name]
        for dtype in DTYPES:
            if dtype in operator.dtypes:
                failed += not run(operator, dtype)
    torch.tpu.synchronize()
    print(f"{len(rows)} of {len(op_db)} operators, {failed} did not run", flush=True)


def run(operator, dtype: torch.dtype) -> bool:
    differentiable = operator.supports_autograd and dtype.is_floating_point
    try:
        inputs = operator.sample_inputs("cpu", dtype, requires_grad=differentiable)
        for sample in itertools.islice(inputs, 1):
            moved = to_device((sample.input, sample.args, sample.kwargs), "tpu")
            first, rest, kwargs = moved
            kwargs = {k: torch.device("tpu") if k == "device" else v for k, v in kwargs.items()}
            operator.op(first, *rest, **kwargs)
            if differentiable:
                gradient(operator, first, *rest, **kwargs)
    except Exception as error:
        print(f"{operator.name} {dtype}: {str(error).splitlines()[0][:200]}", flush=True)
        return False
    return True


if __name__ == "__main__":
    main()
