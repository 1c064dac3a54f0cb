"""`--transform`: derivatives from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tenferro_ref.cli import main
from tenferro_ref.program import parse

SQUARE = """graph (%0: F64[2]) -> (%1) slots 2 {
  %1 = Multiply(%0, %0) : F64[2]
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "square.txt"
    path.write_text(SQUARE)
    return str(path)


@pytest.mark.parametrize("transform", ["jvp", "vjp"])
def test_a_derivative_is_shown_as_a_program(file: str, transform: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--transform", transform]) == 0
    program = parse(capsys.readouterr().out)
    assert [i.op.name for i in program.instructions] == ["Multiply", "Multiply", "Add"]
    assert len(program.input_slots) == 2


def test_a_derivative_is_checked_on_inputs_and_seeds(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = str(tmp_path / "in.npz")
    np.savez(inputs, in0=np.array([1.0, 2.0]), in1=np.array([0.5, 1.0]))
    executors = "native-unsegmented,derivative-adjoint"
    command = ["check", file, "--transform", "vjp", "--executors", executors, "--inputs", inputs, "--json"]
    assert main(command) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["executor"]: row["verdict"] for row in rows} == {
        "native": "pass", "native-unsegmented": "pass", "derivative-adjoint": "pass",
    }  # fmt: skip


def test_what_breaks_a_rule_has_no_derivative(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", file, "--transform", "jvp", "--invalid"]) == 2
    assert "do not go together" in capsys.readouterr().err
