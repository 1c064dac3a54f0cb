"""What decision 0034 says of the size of files and functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.once


@pytest.mark.parametrize("package", ["tenferro_ref", "oracle", "fuzz", "reports", "tools"])
def test_files_and_functions_can_be_read_at_a_sitting(package: str) -> None:
    files = {path: path.read_text("utf-8") for path in (ROOT / package).rglob("*.py")}
    assert files
    assert [str(path) for path, text in files.items() if text.count("\n") > 450] == []
    functions = (
        (path, node)
        for path, text in files.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [f"{path}: {f.name}" for path, f in functions if (f.end_lineno or 0) - f.lineno >= 60] == []
