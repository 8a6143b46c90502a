# SPDX-License-Identifier: Apache-2.0
"""Which part of the C++ code may include which; docs/architecture.md draws the same picture."""

import re
from pathlib import Path

# A part may include itself and the parts listed, with all that those may include.
_USES = {
    "core/base": (),
    "core/pjrt": ("core/base", "core/ir"),
    "core/ir": ("core/base",),
    "core/hlo": ("core/ir",),
    "core/cache": ("core/ir", "core/pjrt"),
    "core/exec": ("core/cache", "core/pjrt"),
    "lower": ("core/hlo",),
    "backend": ("lower", "core/exec", "include"),
    "bindings": ("backend",),
    "include": ("core/base",),
}
# Tests of the lowerings run what they emit.
_TESTS_USE = {"lower": ("core/exec",)}
_FOREIGN = re.compile(r"^(torch|ATen|c10|pybind11|Python\.h)")
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def violations(root: Path) -> list[str]:
    """One line per include that the layering forbids."""
    found = []
    for part in _USES:
        allowed = _reachable(part)
        for path in sorted((root / part).rglob("*")) if (root / part).exists() else ():
            if path.suffix in (".cc", ".h"):
                extra = _TESTS_USE.get(part, ()) if _is_test(path) else ()
                tests = set().union(*(_reachable(used) for used in extra)) if extra else set()
                found += _violations_in(path, root, allowed | tests)
    return found


def _is_test(path: Path) -> bool:
    return path.stem.startswith("test_") or path.stem.endswith("_test")


def _reachable(part: str) -> set[str]:
    return {part}.union(*(_reachable(used) for used in _USES[part]))


def _violations_in(path: Path, root: Path, allowed: set[str]) -> list[str]:
    name = path.relative_to(root)
    found = []
    for include in _INCLUDE.findall(path.read_text()):
        target = next((part for part in _USES if include.startswith(f"{part}/")), None)
        if target and target not in allowed:
            found.append(f"{name}: may not include {include}")
        if "backend" not in allowed and _FOREIGN.match(include):
            found.append(f"{name}: only backend/ and bindings/ include torch or Python ({include})")
    return found
