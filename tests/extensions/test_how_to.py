"""The page about extension families: its code runs, in a process of its own, since what it registers stays."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/add-an-extension-family.md"


def test_the_code_of_the_page_runs() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], cwd=PAGE.parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("sound", [True, False])
def test_a_family_that_a_distribution_declares_is_imported_when_a_program_names_it(tmp_path: Path, sound: bool) -> None:
    (record,) = re.findall(r"```python\n(import numpy.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (declared,) = re.findall(r"```toml\n\[.*?\]\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "acme_roll.py").write_text(record if sound else "import acme_that_is_not_there\n", "utf-8")
    info = tmp_path / "acme_roll-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-roll\nVersion: 1.0\n", "utf-8")
    lines = f"[tenferro_ref.extension_families]\n{declared.replace(chr(34), '')}"
    (info / "entry_points.txt").write_text(lines, "utf-8")
    code = f"""
import sys
sys.path.append({str(tmp_path)!r})
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder
b = GraphBuilder()
print(b.apply(ops.Extension.of("acme-roll.roll.v1", "Roll", {{}}), b.input("F64", (3, 2))).type)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=PAGE.parents[2], capture_output=True, text=True)
    if sound:
        assert done.stdout.strip() == "F64[3, 2]", done.stderr
    else:
        last = done.stderr.splitlines()[-1]
        assert "UnsupportedOp" in last
        assert "acme_roll:ROLL cannot be imported: No module named 'acme_that_is_not_there'" in last
