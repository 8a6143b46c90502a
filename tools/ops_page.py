# SPDX-License-Identifier: Apache-2.0
"""Writes docs/ops.md: what runs where, asked of the device itself. ``python -m tools.ops_page``.

Each operator of PyTorch's sample database runs its first samples in every dtype the CPU takes.
"""

import itertools
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch_tpu._C
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
SAMPLES = 3
SHORT = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
}
HEAD = """# Operators

Written by `python -m tools.ops_page`: every operator in PyTorch's sample database (`op_db`), run on
the device on the XLA:CPU plugin. **Host** names what runs PyTorch's CPU kernel, which is counted in
`torch.tpu.fallback_counts()`; where it is empty nothing does. Dtypes that the CPU takes and the
device does not are after "not". **By** is the most distant of: a rule, a composite of PyTorch over
rules, a recorded decomposition, the host. {summary} All programs were tried on the compilers of
TPUs (`./dev test --tpu`); what they refuse is in `tests/tpu/refused.txt`.

| operator | forward | backward | in-place, out | by | host |
|---|---|---|---|---|---|
"""


@dataclass
class Row:
    forward: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    backward: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    host: set[str] = field(default_factory=set)


class Recorder(TorchDispatchMode):
    """The ATen overloads that reach the device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def main() -> None:
    warnings.simplefilter("ignore")
    torch_tpu._C.set_fallback_policy("allow")
    lines = []
    on_device = 0
    for op in sorted(op_db, key=title):
        row = examine(op)
        on_device += bool(row.forward) and not row.host
        lines.append(line(op, row))
        print(lines[-1], file=sys.stderr, flush=True)
    summary = f"{on_device} of {len(lines)} run on the device alone."
    (ROOT / "docs" / "ops.md").write_text(HEAD.format(summary=summary) + "".join(lines))


def title(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def examine(op: OpInfo) -> Row:
    row = Row()
    for dtype, short in SHORT.items():
        if dtype not in op.dtypes:
            continue
        torch_tpu._C.reset_fallback_counts()
        (row.forward if runs(op, dtype, False, row.seen) else row.refused).append(short)
        if differentiable(op, dtype) and runs(op, dtype, True, set()):
            row.backward.append(short)
        row.host |= {name for name, count in torch_tpu._C.fallback_counts().items() if count}
    return row


def differentiable(op: OpInfo, dtype: torch.dtype) -> bool:
    real_numbers = dtype.is_floating_point or dtype.is_complex
    return op.supports_autograd and real_numbers and dtype in op.backward_dtypes


def runs(op: OpInfo, dtype: torch.dtype, backward: bool, seen: set[str]) -> bool:
    """Whether every sample that runs on the CPU runs on the device."""
    for args, kwargs in calls(op, dtype, backward):
        try:
            step(op, args, kwargs, backward)
        except Exception:
            continue
        moved_args, moved_kwargs = tree_map(to_tpu, (args, kwargs))
        try:
            with Recorder() as recorder:
                step(op, moved_args, moved_kwargs, backward)
            torch.accelerator.synchronize()
        except Exception:
            return False
        seen |= recorder.names
    return True


def calls(op: OpInfo, dtype: torch.dtype, backward: bool) -> Iterator[tuple[Args, Kwargs]]:
    inputs = op.sample_inputs("cpu", dtype, requires_grad=backward)
    for sample in itertools.islice(inputs, SAMPLES):
        yield (sample.input, *sample.args), sample.kwargs


def to_tpu(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().to("tpu").requires_grad_(value.requires_grad)
    return torch.device("tpu") if value in ("cpu", torch.device("cpu")) else value


def step(op: OpInfo, args: Args, kwargs: Kwargs, backward: bool) -> None:
    results = tree_leaves(op.op(*args, **kwargs))
    wanted = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    if not backward:
        return
    outputs = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
    leaves = [t for t in wanted if t.requires_grad]
    if outputs and leaves:
        totals = [(t.abs() if t.is_complex() else t).sum() for t in outputs]
        torch.autograd.grad(totals, leaves, allow_unused=True)


def how(row: Row) -> str:
    """What its ATen operators run by: rules, PyTorch's composites or decompositions, the host."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    kinds = {
        "rule"
        if has(name, "PrivateUse1")
        else "composite"
        if has(name, "CompositeExplicitAutograd")
        else "decomposed"
        for name in row.seen
    }
    if row.host:
        return "host"
    return next((kind for kind in ("decomposed", "composite") if kind in kinds), "rule")


def line(op: OpInfo, row: Row) -> str:
    refused = f", not {' '.join(row.refused)}" if row.refused else ""
    forms = " ".join(
        name
        for name, there in (("in-place", op.inplace_variant), ("out", op.supports_out))
        if there
    )
    host = ", ".join(f"`{name.removeprefix('aten::')}`" for name in sorted(row.host))
    cells = (
        f"`{title(op)}`",
        " ".join(row.forward) + refused,
        " ".join(row.backward),
        forms,
        how(row),
    )
    return f"| {' | '.join(cells)} | {host} |\n"


if __name__ == "__main__":
    main()
