"""The page about extension families: its code runs, in a process of its own, since what it registers stays."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/add-an-extension-family.md"


def test_the_code_of_the_page_runs() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], cwd=PAGE.parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
