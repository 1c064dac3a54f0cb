"""`check` as its user sees it: every form of a program, odd programs, inputs that do not fit, and what a disagreement says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.cli import main
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView, Program, dumps, print_program
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import save_npz
from tests.e2e.command import assert_one_line_error, in_this_process
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


Inputs: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs `check`: exit status, lines of output, standard error."""

    def run(
        program: GraphProgram | str | bytes,
        inputs: Inputs | None = None,
        executors: str = "native-nopasses",
        *more: str,
    ) -> tuple[int, list[str], str]:
        file = tmp_path / "program"
        content = dumps(program) if isinstance(program, Program) else program
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        given = ["--seed", "1"]
        if inputs is not None:
            save_npz(tmp_path / "in.npz", dict(inputs))
            given = ["--inputs", str(tmp_path / "in.npz")]
        status = main(["check", str(file), *given, "--executors", executors, *more])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err

    return run


def logexp() -> GraphProgram:
    b = GraphBuilder()
    return b.build(b.apply(ops.Log(), b.apply(ops.Exp(), b.input("F64", (2,)))))


def bytecode(text: str) -> bytes:
    ir = module_or_skip("jaxlib.mlir.ir")
    stablehlo = module_or_skip("jaxlib.mlir.dialects.stablehlo")
    from tenferro_ref.stablehlo.loader import bindings

    with bindings.context():
        portable: bytes = stablehlo.serialize_portable_artifact(ir.Module.parse(text), stablehlo.get_current_version())
    return portable


@pytest.mark.parametrize("form", ["json", "text", "mlir", "bytecode"])
def test_every_form_of_a_program(check: Check, form: str) -> None:
    program = logexp()
    content: GraphProgram | str | bytes = program
    if form == "text":
        content = print_program(program)
    elif form != "json":
        module_or_skip("jaxlib.mlir.ir")  # StableHLO is read by its bindings
        text = lower_to_stablehlo(LoweringView.of(program))
        content = text if form == "mlir" else bytecode(text)
    status, lines, _ = check(content, {"in0": np.array([1.0, 2.0])}, "native-nopasses", "--json")
    assert status == 0
    rows = [json.loads(line) for line in lines]
    assert [(r["executor"], r["verdict"], r["worst_ulp"], r["decided"]) for r in rows] == [
        ("native", "pass", 0.0, 1.0), ("native-nopasses", "pass", 0.0, 1.0)
    ]  # fmt: skip
    assert all(r["seconds"] > 0 and r["reason"] == "" for r in rows)


def test_a_symbolic_program_says_which_sizes_were_drawn(check: Check) -> None:
    b = GraphBuilder()
    status, lines, _ = check(b.build(b.apply(ops.Exp(), b.input("F64", ("n", 3)))))
    assert status == 0
    assert lines[0] == "seed 1"
    assert " inputs F64[" in lines[1]
    assert lines[1].endswith(", 3]")


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "expected 1 inputs, got 0"),
        ({"in0": np.zeros(2), "in1": np.zeros(2)}, "expected 1 inputs, got 2"),
        ({"in0": np.zeros(3)}, "declared and given: shapes (2,) and (3,) do not fit together"),
        ({"in0": np.zeros(2, np.float32)}, "input 0 is F32[2], the program declares F64[2]"),
        ({"x": np.zeros(2)}, "has ['x'], expected the names ['in0']"),
        ({"in0": np.zeros(2), "in7": np.zeros(2)}, "has ['in0', 'in7'], expected the names ['in0']"),
    ],
)
def test_inputs_that_do_not_fit(check: Check, inputs: Inputs, words: str) -> None:
    status, lines, err = check(logexp(), inputs)
    assert (status, lines) == (2, [])
    assert words in err
    assert "invalid program" not in err
    assert err.count("\n") == 1


def quotient(**policy: Any) -> GraphProgram:
    b = GraphBuilder(**policy)
    return b.build(b.input("I32", (2,)) / b.input("I32", (2,)))


def inverse() -> GraphProgram:
    b = GraphBuilder()
    return b.build(linalg.cholesky(b.input("F64", (2, 2))))


FAULTY: Inputs = {"in0": np.ones(2, np.int32), "in1": np.array([1, 0], np.int32)}


@pytest.mark.parametrize(
    ("program", "inputs", "verdict", "kind"),
    [
        (quotient(), FAULTY, "error", "NumericalFailure"),
        (inverse(), {"in0": -np.eye(2)}, "undecided", "NumericalFailure"),
    ],
)
def test_that_all_refuse_the_values_is_no_disagreement(
    check: Check, program: GraphProgram, inputs: Inputs, verdict: str, kind: str
) -> None:
    status, lines, _ = check(program, inputs, "native-nopasses", "--json")
    native, other = map(json.loads, lines)
    assert (native["verdict"], native["error"]["kind"]) == (verdict, kind)
    assert (other["verdict"], other["reason"].split(":")[0]) == ("pass", "raises as the native executor does")
    assert status == 0


def test_a_policy_admits_them(check: Check) -> None:
    status, lines, _ = check(quotient(policy=STABLEHLO), FAULTY, "native-nopasses", "--json")
    assert status == 0
    assert {json.loads(line)["verdict"] for line in lines} == {"pass"}


def test_what_an_executor_cannot_say_is_a_typed_reason(check: Check) -> None:
    plugin_or_skip("xla081")
    b = GraphBuilder()
    x = b.input("F64", (4,))
    program = b.build(b.apply(ops.DynamicTruncate(0), x, b.input("I64", ())), fft.fft(x))
    status, lines, _ = check(program, {"in0": np.arange(4.0), "in1": np.array(2)}, "pjrt:xla081", "--json")
    native, plugin = map(json.loads, lines)
    assert (status, native["verdict"], plugin["verdict"]) == (0, "pass", "unsupported")
    assert plugin["reason"].startswith("NonStaticShape: DynamicTruncate: axis 0 of output 0")


def test_a_disagreement_says_which_build_was_the_first(check: Check) -> None:
    for name in ("xla081", "fas106", "lam115"):
        plugin_or_skip(name)
    overflow = {"in0": np.array([1.0, 1000.0])}
    status, lines, _ = check(logexp(), overflow, "pjrt:fas106", "--json")
    native, plugin = map(json.loads, lines)
    assert status == 1
    assert "builds" not in native
    assert [(b["name"], b["verdict"]) for b in plugin["builds"]] == [
        ("xla081", "mismatch"), ("fas106", "mismatch"), ("lam115", "pass")
    ]  # fmt: skip
    said = "lane parity: first bad build xla081 (PJRT API 0.81), the oldest asked: xla081 mismatch, fas106 mismatch, lam115 pass"
    assert plugin["first_bad"] == said  # the last line of the table form


def test_an_invalid_program_is_refused_alike(check: Check) -> None:
    """Only if it is asked for: else it is a wrong input."""
    bad = dumps(logexp()).replace('"inputs": [1]', '"inputs": [7]')
    command = f"external:{sys.executable} -c 'raise SystemExit(0)'"
    assert check(bad)[0] == 2
    status, lines, _ = check(bad, None, f"native,native-nopasses,{command}", "--invalid", "--json")
    rows = [json.loads(line) for line in lines]
    assert (status, [row["verdict"] for row in rows]) == (1, ["pass", "pass", "error"])
    assert "slot 7 out of range" in rows[0]["reason"]
    status, _, err = check(logexp(), None, "native", "--invalid")
    assert (status, "breaks no rule" in err) == (2, True)
    status, _, err = check(bad.replace("[2]", "[4611686018427387904]"), None, "native", "--invalid")
    assert (status, "$.inputs[0]" in err) == (2, True)


@pytest.mark.parametrize(("matrix", "status"), [([[2.0, 0.5], [0.5, 3.0]], 1), ([[1.0, 2.0], [2.0, 1.0]], 0)])
def test_a_matrix_that_the_reference_refuses_without_need_is_a_disagreement(
    matrix: list[list[float]], status: int, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(a: Any) -> Any:
        raise np.linalg.LinAlgError("it is not positive definite")

    monkeypatch.setitem(linalg.OPS, "Cholesky", replace(linalg.OPS["Cholesky"], kernel=refusing))
    b = GraphBuilder()
    program = b.build(linalg.cholesky(b.input("F64", (2, 2))))
    assert check(program, {"in0": np.array(matrix)})[0] == status


def test_options_that_do_not_go_together_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for options, words in (
        (("--inputs", tmp_path / "x.npz", "--save-inputs", tmp_path / "new"), "writes what is drawn"),
        (("--bundle", tmp_path / "file"), "not a folder"),
        (("--invalid", "--transform", "jvp"), "do not go together"),
    ):
        assert_one_line_error(in_this_process("check", tmp_path / "no-such-program.txt", *options), 2, words)
    assert not (tmp_path / "new").exists()
