"""The files in `programs`, natively and on a plugin; and the run itself: it must see what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle.peers import Executor, NativeExecutor, Pool
from tests.conformance.__main__ import main
from tests.conformance.run import outcomes
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

module_or_skip("jaxlib")

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def executors() -> Iterator[list[Executor]]:
    plugin_or_skip("xla081")
    pool = Pool()
    yield [NativeExecutor(), pool.make("pjrt:xla081")]
    pool.close()


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.mlir")), ids=lambda path: path.stem)
def test_the_programs_hold(path: Path, executors: list[Executor]) -> None:
    found = list(outcomes(path, executors))
    assert found
    for outcome in found:
        assert outcome.holds, outcome
        assert set(outcome.executors) == {e.name for e in executors}


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
def test_a_statement_is_judged(tmp_path: Path, kind: str, value: str, expected: str, options: str, holds: bool) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(STATEMENT.format(kind=kind, value=value, expected=expected, options=options))
    (outcome,) = outcomes(file, [NativeExecutor()])
    assert outcome.read == ""
    assert outcome.holds == holds
    assert holds or kind in outcome.executors["native"]


def test_the_score_counts_what_is_read_and_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = STATEMENT.format(kind="eq", value="2.0", expected="2.0", options="")
    wrong = STATEMENT.format(kind="eq", value="2.0", expected="3.0", options="")
    foreign = "func.func @main() {\n  %x = stablehlo.constant dense<1> : tensor<ui8>\n"
    foreign += '  "check.expect_eq"(%x, %x) : (tensor<ui8>, tensor<ui8>) -> ()\n  return\n}\n'
    (tmp_path / "a.mlir").write_text(f"{good}// -----\n\n{wrong}")
    (tmp_path / "b.mlir").write_text(foreign)
    (tmp_path / "c.mlir").write_text("func.func @main() {")
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["read: 2 of 4", "native: 1 of 2"]
    assert lines[0] == "a.mlir (2): native: eq: element [1] is 2.0, expected 3.0"
    assert lines[1].startswith("b.mlir: read: UnsupportedDType: b.mlir:2:8: dtype ui8")
    assert lines[2].startswith("c.mlir: read: FormatError: c.mlir:")


def test_a_folder_without_files_is_no_success(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
    assert main([]) == 2
