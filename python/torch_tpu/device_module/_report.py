# SPDX-License-Identifier: Apache-2.0
"""What the compilation cache and the CPU fallback have done, for programs and for people."""

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

from torch_tpu import _C


def cache_stats() -> dict[str, Any]:
    """Launches, hits in memory and on disk, compiles, seconds, bytes, since the device started."""
    return dict(_C.cache_stats())


def compile_events() -> list[dict[str, Any]]:
    """The latest compiles, oldest first: dicts of ``op``, ``reason``, ``detail``, ``seconds``."""
    return list(_C.compile_events())


def fallback_counts() -> dict[str, int]:
    """How often each operator ran on the host because the device has no form of it."""
    return {op: count for op, count in _C.fallback_counts().items() if count}


def reset_fallback_counts() -> None:
    """Start counting fallbacks from zero."""
    _C.reset_fallback_counts()


def explain_recompiles(limit: int = 20) -> str:
    """A text for people: which operators were compiled, how often, why and what it cost.

    ``limit`` is the number of operators listed, the costliest first.
    """
    events = compile_events()
    if not events:
        return "Nothing was compiled: every program came from the cache, or none was needed."
    by_op: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        by_op[event["op"]].append(event)
    costliest = sorted(by_op.values(), key=lambda group: -_seconds(group))
    lines = [f"{_programs(len(events))} compiled in {_seconds(events):.2f} s:"]
    for group in costliest[:limit]:
        lines.extend(_explain(group))
    if len(costliest) > limit:
        lines.append(f"  and {len(costliest) - limit} more operators")
    return "\n".join(lines)


def _explain(group: list[dict[str, Any]]) -> list[str]:
    reasons = Counter(str(event["reason"]) for event in group)
    why = ", ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    lines = [f"  {group[0]['op']}: {_programs(len(group))}, {_seconds(group):.2f} s ({why})"]
    lines.append(f"      latest: {group[-1]['detail']}")
    if reasons["new shape"] >= 8:
        lines.append("      its shapes keep changing: pad or bucket the inputs to a few sizes")
    return lines


def _programs(count: int) -> str:
    return f"{count} program" if count == 1 else f"{count} programs"


def _seconds(events: list[dict[str, Any]]) -> float:
    return float(sum(event["seconds"] for event in events))


def _get_cache_stats() -> SimpleNamespace:
    """The counters under the names that clients of the ``torch_tpu`` interface read."""
    stats = _C.cache_stats()
    return SimpleNamespace(
        num_cache_reqs=stats["launches"],
        num_cache_hits=stats["launches"] - stats["compiles"],
        num_compilations=stats["compiles"],
    )


def _clear_cache() -> None:
    _C.clear_cache()
