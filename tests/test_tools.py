# SPDX-License-Identifier: Apache-2.0
"""The tree keeps its own rules, and the tools that check them find what they should."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import hygiene, layering  # noqa: E402


def test_layering_holds():
    assert layering.violations(ROOT) == []


def test_layering_finds(tmp_path):
    for name, text in {
        "core/ir/a.h": '#include "core/hlo/b.h"\n',
        "core/base/b.cc": "#include <torch/library.h>\n",
        "lower/c_test.cc": '#include "core/exec/d.h"\n',
        "lower/d.cc": '#include "core/exec/d.h"\n#include "core/ir/a.h"\n',
        "backend/e.cc": '#include <ATen/ATen.h>\n#include "lower/d.h"\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = layering.violations(tmp_path)
    assert [line.partition(":")[0] for line in found] == [
        "core/base/b.cc",
        "core/ir/a.h",
        "lower/d.cc",
    ]


def test_hygiene_holds():
    assert hygiene.violations(ROOT) == []
