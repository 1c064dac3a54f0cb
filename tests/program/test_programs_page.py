"""docs/reference/programs.md: its code runs, what it prints is what is printed, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tenferro_ref import frontend
from tenferro_ref.program import Value, parse, print_program

pytestmark = pytest.mark.once


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "programs.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_code_runs_and_prints_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    for code in blocks("python"):
        exec(code, names)
    assert names["program"].name == "softmax"
    (text,) = blocks("text")
    assert print_program(names["rows"]) == text
    assert parse(text) == names["rows"]


def test_the_functions_and_methods_that_the_page_names_exist() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `frontend`"))
    functions = re.findall(r"`(\w+ [^`]+)`", row)[0].replace("...", "").split()
    assert all(callable(getattr(frontend, name)) for name in functions)
    row = next(line for line in PAGE.splitlines() if line.startswith("| operators"))
    methods = re.findall(r"\.([a-zT_]+)", row)
    assert len(methods) == 9
    assert all(hasattr(Value, name) for name in methods)
