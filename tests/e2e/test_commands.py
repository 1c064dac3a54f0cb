"""The commands as a user runs them: real programs, a real plugin, a real browser."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import records
from tenferro_ref import __version__, ops
from tenferro_ref.compiler import DEFAULT_PIPELINE, compile_std_to_exec
from tenferro_ref.escape import markdown
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.program import GraphBuilder, GraphProgram, dumps, parse, print_program, to_exec
from tenferro_ref.runtime import segment_exec_program
from tests.browser import chromium_or_skip
from tests.e2e.command import Run, assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.e2e.command import tenferro_ref as in_a_process
from tests.plugins import plugin_or_skip


@pytest.fixture
def program() -> GraphProgram:
    b = GraphBuilder("tour")
    x, w = b.input("F64", (2, 3)), b.input("F64", (4, 3))
    return b.build((x @ w.T).reshape(4, 2) * 2.0, x.sum([0]))


@pytest.fixture
def files(tmp_path: Path, program: GraphProgram) -> tuple[Path, Path]:
    """The program, and inputs for it, one of them row-major."""
    (tmp_path / "p.json").write_text(dumps(program))
    np.savez(tmp_path / "in.npz", in0=np.arange(6.0).reshape(2, 3), in1=np.ones((4, 3), order="F"))
    return tmp_path / "p.json", tmp_path / "in.npz"


def expected() -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(6.0).reshape(2, 3)
    return (x @ np.ones((3, 4))).reshape((4, 2), order="F") * 2.0, x.sum(0)


def assert_outputs(path: Path) -> None:
    with np.load(path) as outputs:
        assert sorted(outputs.files) == ["out0", "out1"]
        for name, want in zip(("out0", "out1"), expected(), strict=True):
            assert np.array_equal(outputs[name], want)
            assert outputs[name].flags.f_contiguous


class TestExec:
    @pytest.mark.parametrize(
        "options", [[], ["--path", "unsegmented"], ["--passes", "none"], ["--passes", "DotDecomposer"]]
    )
    def test_named_files(self, files: tuple[Path, Path], tmp_path: Path, options: list[str]) -> None:
        program, inputs = files
        run = tenferro_ref("exec", program, "--inputs", inputs, "--out", tmp_path / "out.npz", *options)
        assert run == Run(0, "", "")
        assert_outputs(tmp_path / "out.npz")

    def test_as_an_external_executable_under_test(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        assert in_a_process("exec", *files, tmp_path / "out.npz").status == 0
        assert_outputs(tmp_path / "out.npz")

    def test_a_typed_refusal_is_status_3_and_one_json_line(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        x, y = b.input("I32", (1,)), b.input("I32", (1,))
        (tmp_path / "p.json").write_text(dumps(b.build(x / y)))
        np.savez(tmp_path / "in.npz", in0=np.ones(1, np.int32), in1=np.zeros(1, np.int32))
        run = tenferro_ref("exec", tmp_path / "p.json", tmp_path / "in.npz", tmp_path / "out.npz")
        assert run.status == 3
        (line,) = run.err.splitlines()
        error = json.loads(line)["error"]
        assert (error["kind"], error["op"]) == ("NumericalFailure", "Divide")
        assert not (tmp_path / "out.npz").exists()

    def test_values_are_printed_where_no_file_is_named(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        run = tenferro_ref("exec", files[0], "--inputs", files[1])
        assert (run.status, run.err) == (0, "")
        assert run.out.splitlines()[-2:] == ["out1: F64[3]", "[3. 5. 7.]"]
        assert_one_line_error(tenferro_ref("exec", files[0]), 2, "2 inputs", "--inputs NPZ")
        b = GraphBuilder()
        (tmp_path / "c.json").write_text(dumps(b.build(b.constant(0.1) + 0.2)))
        assert tenferro_ref("exec", tmp_path / "c.json").out == "out0: F64[]\n0.30000000000000004\n"

    def test_in_another_algebra(self, tmp_path: Path) -> None:
        """Two steps along the edges of a triangle: shortest, and whether there is one."""
        b = GraphBuilder()
        x = b.input("F64", (3, 3))
        (tmp_path / "p.json").write_text(dumps(b.build(x @ x)))
        inf = np.inf
        np.savez(tmp_path / "in.npz", in0=np.array([[0, 1, 9], [inf, 0, 2], [inf, inf, 0]]))
        arguments = tmp_path / "p.json", tmp_path / "in.npz", tmp_path / "out.npz"
        for options in ([], ["--passes", "none"], ["--path", "unsegmented"]):
            assert tenferro_ref("exec", *arguments, "--algebra", "min-plus", *options) == Run(0, "", "")
            with np.load(tmp_path / "out.npz") as outputs:
                assert outputs["out0"].tolist() == [[0, 1, 3], [inf, 0, 2], [inf, inf, 0]]
        refused = tenferro_ref("exec", *arguments, "--algebra", "boolean")
        assert (refused.status, json.loads(refused.err)["error"]["kind"]) == (3, "Unsupported")

    def test_an_exec_program_in_text_form(
        self, program: GraphProgram, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        (tmp_path / "p.txt").write_text(print_program(to_exec(program)))
        assert tenferro_ref("exec", tmp_path / "p.txt", files[1], tmp_path / "out.npz").status == 0
        assert_outputs(tmp_path / "out.npz")


class TestShowAndEmit:
    def test_a_symbolic_program_is_emitted_at_sizes(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        x, y = b.input("F64", ("n", 2)), b.input("F64", (2, "n"))
        (tmp_path / "p.json").write_text(dumps(b.build(x @ y, x.reshape(-1))))
        run = tenferro_ref("emit", tmp_path / "p.json", "--sizes", "n=3")
        assert (run.status, run.err) == (0, "")
        assert "(%arg0: tensor<3x2xf64>, %arg1: tensor<2x3xf64>) -> (tensor<3x3xf64>, tensor<6xf64>" in run.out
        for sizes, words in (
            ("m=3", "its symbols are n"), ("n", "NAME=SIZE"), ("n=-1", "n is -1, not a number"), (f"n={'1' * 5000}", "not a number from 0"),
            ("n=2,n=3", "n has two sizes"), ("n=2,m=3", "its symbols are n"),
        ):  # fmt: skip
            assert_one_line_error(tenferro_ref("emit", tmp_path / "p.json", "--sizes", sizes), 2, words)

    def test_what_show_prints_is_the_program(self, program: GraphProgram, files: tuple[Path, Path]) -> None:
        assert parse(tenferro_ref("show", files[0]).out) == program

    def test_after_a_pass_with_segments(self, files: tuple[Path, Path]) -> None:
        run = tenferro_ref("show", files[0], "--after", "TransposeFolding", "--segments")
        assert run.status == 0
        assert "// TransposeFolding: slot 3: rhs reads slot 1, not its transpose in 2" in run.out
        assert "// segment 1: ffi: DotGeneral (%0, %1) -> (%3)" in run.out

    def test_what_a_pass_changed_is_a_diff(self, program: GraphProgram, files: tuple[Path, Path]) -> None:
        run = tenferro_ref("show", files[0], "--after", "DeadCodeElimination")
        before, after = (compile_std_to_exec(program, DEFAULT_PIPELINE[:n]) for n in (-1, None))
        assert parse(run.out) == after
        lines = run.out.splitlines()
        gone, come = ([line[4:] for line in lines if line.startswith(f"// {sign}")] for sign in "-+")
        texts = [print_program(p).splitlines() for p in (before, after)]
        assert [line for line in texts[0] if line not in texts[1]] == gone != []
        assert [line for line in texts[1] if line not in texts[0]] == come
        assert any("Transpose" in line for line in gone)

    def test_a_pass_that_is_not_in_the_pipeline_runs_behind_it(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        (tmp_path / "p.json").write_text(dumps(b.build(b.input("F64", (3, 2)).T @ b.input("F64", (3, 4)))))
        run = tenferro_ref("show", tmp_path / "p.json", "--after", "DotDecomposer")
        assert run.status == 0
        assert "Transpose removed, nothing reads it" in run.out
        assert [i.op.name for i in parse(run.out).instructions] == ["Transpose", "DotGeneral"]

    def test_shape_guards_are_shown_with_segments(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        x, y = b.input("F64", ("n",)), b.input("F64", ("m",))
        compiled = compile_std_to_exec(b.build(einsum("i,i->i", x, y)))
        assert compiled.shape_guards
        (tmp_path / "p.txt").write_text(print_program(compiled))
        assert parse(tenferro_ref("show", tmp_path / "p.txt", "--segments").out) == compiled

    def test_segments_are_drawn_around_their_instructions(
        self, program: GraphProgram, files: tuple[Path, Path]
    ) -> None:
        run = tenferro_ref("show", files[0], "--segments")
        compiled = compile_std_to_exec(program)
        assert parse(run.out) == compiled
        lines = [line.strip() for line in run.out.splitlines()]
        drawn = lines[lines.index(print_program(compiled).splitlines()[0]) + 1 : -1]
        instructions = iter(print_program(compiled).splitlines()[1:-1])
        expected = []
        for number, segment in enumerate(segment_exec_program(compiled)):
            expected += [
                f"// segment {number}: {segment.kind}: ",
                *(next(instructions).strip() for _ in segment.instructions),
            ]
        assert [line for line, want in zip(drawn, expected, strict=True) if not line.startswith(want)] == []

    def test_emitted_text_is_what_the_plugin_runs(self, files: tuple[Path, Path]) -> None:
        run = tenferro_ref("emit", files[0])
        assert run.status == 0
        assert run.out.startswith("module {\n  func.func @main(%arg0: tensor<2x3xf64>")

    def test_phase_1_refuses_what_the_engine_refuses(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        x = b.input("I32", (1,))
        (tmp_path / "p.json").write_text(dumps(b.build(x + x)))
        assert tenferro_ref("emit", tmp_path / "p.json").status == 0
        run = tenferro_ref("emit", "--phase1-only", tmp_path / "p.json")
        assert (run.status, run.err) == (2, "error: type I32 is not supported as program input\n")


MODULE = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


#: An engine that has no op, and dies of one.
REFUSES_EXP = """#!/bin/sh
if grep -q Exp "$1"; then exit 5; fi
echo '{"error": {"kind": "UnsupportedOp"}}' >&2
exit 3
"""


@pytest.mark.once
class TestCheck:
    def test_a_verdict_a_line(self, files: tuple[Path, Path]) -> None:
        plugin_or_skip("xla081")
        run = tenferro_ref(
            "check", files[0], "--inputs", files[1], "--executors", "native-unsegmented,pjrt:xla-cpu-pjrt", "--json"
        )
        assert run.status == 0, run.err
        assert [row["executor"] for row in run.rows] == ["native", "native-unsegmented", "pjrt:xla-cpu-pjrt"]
        for row in run.rows:
            assert {"program", "executor", "verdict", "worst_ulp", "decided", "seconds", "reason"} <= row.keys()
            assert (row["verdict"], row["decided"]) == ("pass", 1.0)

    def test_a_disagreement_is_status_1(self, tmp_path: Path) -> None:
        plugin_or_skip("xla081")
        b = GraphBuilder()
        (tmp_path / "p.json").write_text(dumps(b.build(b.apply(ops.Log(), b.apply(ops.Exp(), b.input("F64", (1,)))))))
        np.savez(tmp_path / "in.npz", in0=np.array([1000.0]))
        run = tenferro_ref("check", tmp_path / "p.json", "--inputs", tmp_path / "in.npz", "--executors", "pjrt:xla081")
        assert run.status == 1
        assert "expected inf, got finite" in run.out
        row = next(line for line in run.out.splitlines() if " mismatch " in line)
        assert row.split()[3] == "100%", "no distance in ULPs of the elements that are right"
        assert "known finding, docs/findings/0003-algsimp-log-of-exp.md" in run.out

    def test_a_disagreement_on_a_program_is_reduced_to_a_bundle(self, tmp_path: Path) -> None:
        b = GraphBuilder()
        x = b.input("F64", (3,))
        (tmp_path / "p.json").write_text(dumps(b.build(b.apply(ops.Exp(), b.apply(ops.Abs(), x)))))
        engine = tmp_path / "engine"
        engine.write_text(REFUSES_EXP)
        engine.chmod(0o755)
        other = tmp_path / "other"
        other.write_text(REFUSES_EXP)
        other.chmod(0o755)
        executors = f"external:{engine},external:{other}"
        run = tenferro_ref("check", tmp_path / "p.json", "--executors", executors, "--bundle", tmp_path / "bundles")
        (bundle,) = (tmp_path / "bundles").iterdir()
        assert (run.status, run.err.count("bundle:"), f"bundle: {bundle}" in run.err) == (1, 1, True)
        readme = (bundle / "README.md").read_text().splitlines()
        assert f"* seen on: {markdown(f'external:{engine}, external:{other}')}" in readme
        assert "* reduced from 2 to 1 instructions" in readme
        assert [ins.op.name for ins in parse((bundle / "program.txt").read_text()).instructions] == ["Exp"]
        assert_one_line_error(tenferro_ref("fuzz", "replay", bundle), 2, "--allow-commands")

    def test_the_plugin_of_the_environment(self, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        plugin = plugin_or_skip("xla081")
        monkeypatch.setenv("TENFERRO_PJRT_PLUGIN", plugin.path)
        run = tenferro_ref("check", files[0], "--inputs", files[1], "--executors", "pjrt", "--json")
        assert [(row["executor"], row["verdict"]) for row in run.rows] == [("native", "pass"), ("pjrt", "pass")]

    def test_inputs_are_drawn_from_the_seed(self, files: tuple[Path, Path]) -> None:
        def verdicts() -> list[Any]:
            run = tenferro_ref("check", files[0], "--executors", "native-unsegmented", "--seed", 5, "--json")
            return [{k: v for k, v in row.items() if k not in ("seconds", "phases")} for row in run.rows]

        assert verdicts() == verdicts()
        assert {row["seed"] for row in verdicts()} == {5}

    def test_inputs_that_were_drawn_can_be_saved_and_given_again(self, tmp_path: Path) -> None:
        (tmp_path / "f.mlir").write_text(MODULE)
        (tmp_path / "p.txt").write_text("graph (%0: F32[n]) -> (%1) slots 2 {\n  %1 = Exp(%0) : F32[n]\n}\n")
        both = (tmp_path / "f.mlir", tmp_path / "p.txt", "--executors", "native-nopasses")
        run = tenferro_ref("check", *both, "--save-inputs", tmp_path / "saved", "--seed", 5, "--json")
        assert run.status == 0, run
        saved = {path.name: path for path in (tmp_path / "saved").iterdir()}
        assert set(saved) == {"f-0-ordinary.npz", "f-0-special.npz", "p-1.npz"}
        again = tenferro_ref("check", *both[1:], "--inputs", saved["p-1.npz"], "--json")
        assert [row["seed"] for row in (*run.rows, *again.rows)] == [5, 5, 5, 5, None, None]
        assert again.rows[1]["comparison"] == run.rows[3]["comparison"]


@pytest.mark.once
def test_plugins_lists_what_is_installed() -> None:
    plugin_or_skip("xla081")
    run = tenferro_ref("plugins", "--probe", "--json")
    (rows,) = run.rows
    found = {row["name"]: row for row in rows}
    assert found["xla081"]["works"]
    assert found["xla081"]["facts"]["PJRT API"] == "0.81"


@pytest.mark.once
def test_the_main_job_writes_a_report_that_a_browser_opens(tmp_path: Path) -> None:
    """Same seed, same programs; the matrix counted from the DOM is the campaign's."""
    plugin_or_skip("xla081")
    arguments = ["--programs", 24, "--seed", 11, "--executors", "native-nopasses,pjrt:xla081,pjrt:xla081@defaults"]
    run = tenferro_ref("parity", *arguments, "--out", tmp_path / "a", "--json")
    assert run.status in (0, 1), run.err
    (summary,) = run.rows
    assert (summary["seed"], summary["programs"]) == (11, 24)
    assert bool(summary["new"]) == (run.status == 1)
    campaign = records.load(tmp_path / "a" / "campaign.json")
    for totals in campaign.totals:
        assert sum(totals.verdicts.values()) == 24
        assert totals.unexplained == 0
    alone = [*arguments[:4], "--executors", "native-nopasses"]
    again = tenferro_ref("parity", *alone, "--out", tmp_path / "b")
    assert again.out.splitlines()[0] == "seed 11"
    assert records.load(tmp_path / "b" / "campaign.json").generator == campaign.generator
    forms = {"campaign.json", "findings.sarif", "index.html", "junit.xml", "matrix.csv", "summary.md"}
    assert forms <= {p.name for p in (tmp_path / "a").iterdir()}
    with chromium_or_skip() as browser:
        browser.open(tmp_path / "a" / "index.html")
        counted: Counter[str] = Counter()
        for executor, programs in browser.script(
            "return [...document.querySelectorAll('#support .c')].map(c => [c.dataset.executor, +c.dataset.programs])"
        ):
            counted[executor] += programs
        assert browser.console_errors() == []
    recorded: Counter[str] = Counter()
    for cell in campaign.cells:
        recorded[cell.executor] += sum(cell.verdicts.values())
    assert +counted == +recorded


@pytest.mark.once
def test_a_report_is_made_again_from_its_record(tmp_path: Path) -> None:
    run = tenferro_ref(
        "parity", "--programs", 3, "--seed", 1, "--executors", "native-nopasses", "--out", tmp_path / "a"
    )
    assert run.status == 0, run
    assert tenferro_ref("report", tmp_path / "a", "--out", tmp_path / "b").status == 0
    assert (tmp_path / "b" / "index.html").read_bytes() == (tmp_path / "a" / "index.html").read_bytes()


def test_version() -> None:
    assert in_a_process("--version").out == f"tenferro-ref, version {__version__}\n"
