"""The files in `programs`, natively and on other executors; and the run itself: it must see what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.checking.conformance import NATIVE, conform
from oracle.peers import Pool
from tests.e2e.command import in_this_process as tenferro_ref
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

module_or_skip("jaxlib")

PROGRAMS = Path(__file__).parent / "programs"
EXECUTORS = ("pjrt:xla081", "interpreter")
#: The interpreter each time; a plugin, which compiles for most of a minute, at night.
SOMEBODY = [
    pytest.param(EXECUTORS, marks=pytest.mark.nightly, id="all"),
    pytest.param(("interpreter",), id="interpreter"),
]
#: XLA folds a division of integer constants by zero with the machine's own instruction; the interpreter divides with it.
DIES = {("integers.mlir", name): "SIGFPE" for name in EXECUTORS}


@pytest.mark.parametrize("executors", SOMEBODY)
@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.mlir")), ids=lambda path: path.stem)
def test_the_programs_hold(path: Path, executors: tuple[str, ...], pool: Pool) -> None:
    if "pjrt:xla081" in executors:
        plugin_or_skip("xla081")
    found = list(conform([path], [pool.make(name) for name in executors], pool.reader))
    assert found
    for outcome in found:
        for name, reason in outcome.executors.items():
            assert DIES.get((outcome.name, name), "") in reason
            assert not reason or (outcome.name, name) in DIES, outcome
        assert outcome.executors.keys() | outcome.unsupported.keys() == {NATIVE, *executors}
        assert outcome.executors.keys() >= {NATIVE}
        assert path.stem == "dynamic" or "pjrt:xla081" not in outcome.unsupported


STATEMENT = """func.func @f() {{
  %x = stablehlo.constant dense<[1.0, {value}]> : tensor<2xf32>
  check.expect_{kind}_const %x, dense<[1.0, {expected}]> : tensor<2xf32>{options}
  func.return
}}
"""


@pytest.mark.parametrize(
    ("kind", "value", "expected", "options", "holds"),
    [
        ("eq", "0.0", "-0.0", "", True),
        ("eq", "1.0", "1.0000001", "", False),
        ("eq", "0x7FC00000", "0x7FC00001", "", True),
        ("almost_eq", "2.0", "2.0009", "", True),
        ("almost_eq", "2.0", "2.0011", "", False),
        ("almost_eq", "2.0", "2.0011", " {tolerance = 0.01 : f32}", True),
        ("almost_eq", "0x7F800000", "0xFF800000", "", False),
        ("close", "1.0", "1.0000003", "", True),
        ("close", "1.0", "1.0000005", "", False),
        ("close", "1.0", "1.0000005", " {max_ulp_difference = 4 : ui64}", True),
        ("close", "0x7FC00000", "1.0", "", False),
    ],
)
def test_a_statement_is_judged(
    tmp_path: Path, pool: Pool, kind: str, value: str, expected: str, options: str, holds: bool
) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(STATEMENT.format(kind=kind, value=value, expected=expected, options=options))
    (outcome,) = conform([file], [], pool.reader)
    assert outcome.read == ""
    assert outcome.holds == holds
    assert holds or kind in outcome.executors[NATIVE]


SEVERAL = """func.func @main() {
  %x = func.call @one() : () -> tensor<f32>
  check.expect_eq_const %x, dense<1.0> : tensor<f32>
  func.return
}
func.func private @one() -> tensor<f32> {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  func.return %x : tensor<f32>
}
func.func @calls_main_s_helper() {
  %x = func.call @one() : () -> tensor<f32>
  %y = stablehlo.add %x, %x : tensor<f32>
  %z = stablehlo.constant dense<2.0> : tensor<f32>
  stablehlo.custom_call @check.expect_eq(%y, %z) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
  func.return
}
"""


def test_each_function_of_a_file_runs_by_itself(tmp_path: Path, pool: Pool) -> None:
    (tmp_path / "f.mlir").write_text(SEVERAL)
    found = list(conform([tmp_path / "f.mlir"], [pool.make("interpreter")], pool.reader))
    assert [(o.name, o.executors) for o in found] == [
        ("f.mlir @main", {NATIVE: "", "interpreter": ""}),
        ("f.mlir @calls_main_s_helper", {NATIVE: "", "interpreter": ""}),
    ]


def test_the_command_counts_what_is_read_and_what_holds(tmp_path: Path) -> None:
    good = STATEMENT.format(kind="eq", value="2.0", expected="2.0", options="")
    wrong = STATEMENT.format(kind="eq", value="2.0", expected="3.0", options="")
    foreign = "func.func @main() {\n  %x = stablehlo.constant dense<1.0> : tensor<f32>\n"
    foreign += "  %0 = stablehlo.custom_call @nobody_has_it(%x) : (tensor<f32>) -> tensor<f32>\n"
    foreign += '  "check.expect_eq"(%0, %x) : (tensor<f32>, tensor<f32>) -> ()\n  return\n}\n'
    (tmp_path / "a.mlir").write_text(f"{good}// -----\n\n{wrong}")
    (tmp_path / "b.mlir").write_text(foreign)
    (tmp_path / "c.mlir").write_text("func.func @main() {")
    run = tenferro_ref("conformance", tmp_path, "--executors", "native,interpreter")
    assert run.status == 1
    lines = run.out.splitlines()
    assert lines[0] == "a.mlir (2): native: eq: element [1] is 2.0, expected 3.0"
    assert lines[1] == "a.mlir (2): interpreter: eq: element [1] is 2.0, expected 3.0"
    assert lines[2].startswith("b.mlir: read: UnsupportedOp")
    assert lines[3].startswith("c.mlir: read: FormatError: c.mlir:")
    assert lines[4] == "read as programs: 2 of 4"
    assert [line.split() for line in lines[-2:]] == [
        ["native", "1", "1", "0", "2"],
        ["interpreter", "1", "1", "1", "1"],
    ]
    (row, *_) = tenferro_ref("conformance", tmp_path / "a.mlir", "--json").rows
    assert (row["name"], row["holds"]) == ("a.mlir", True)


def test_a_folder_without_files_is_no_success(tmp_path: Path) -> None:
    assert tenferro_ref("conformance", tmp_path).status == 2
    assert "no such file or folder" in tenferro_ref("conformance", tmp_path / "none").err
    (tmp_path / "garbage.mlir").write_bytes(b"\xff\0")
    run = tenferro_ref("conformance", tmp_path)
    assert run.status == 2
    assert "none of 1 files could be run" in run.err
    assert tenferro_ref("conformance").status == 2
