# SPDX-License-Identifier: Apache-2.0
"""What the tree may not contain: long files, missing licences, local paths, vendored headers."""

import re
import subprocess
from pathlib import Path

MAX_FILE_LINES = 800
_SOURCES = (".cc", ".h", ".py", ".pyi")
_VENDORED = re.compile(r"(pjrt_c_api|xla/ffi/api|stablehlo/dialect)[\w/]*\.h$")
# Absolute paths of somebody's machine; /usr, /etc, /dev, /proc and /sys are everybody's.
_LOCAL_PATH = re.compile(r"(?<![\w.~}/-])/(home|root|work|tmp|mnt|opt)/\w")
_UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")


def violations(root: Path) -> list[str]:
    """One line per problem, over the files that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = []
    for name in listed:
        if _VENDORED.search(name):
            found.append(f"{name}: headers of other projects come from their packages")
        path = root / name
        if path.is_file() and (path.suffix in _SOURCES or name in ("dev", ".ci/run")):
            found += _violations_in(name, path.read_text())
    return found


def _violations_in(name: str, text: str) -> list[str]:
    found = []
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES:
        found.append(f"{name}: {len(lines)} lines, at most {MAX_FILE_LINES}")
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        found.append(f"{name}: the first line must name the licence (SPDX)")
    for number, line in enumerate(lines, 1):
        if _LOCAL_PATH.search(line):
            found.append(f"{name}:{number}: a path of one machine")
        if _UNFINISHED.search(line) and name != "tools/hygiene.py":
            found.append(f"{name}:{number}: unfinished work belongs into an issue")
    return found
