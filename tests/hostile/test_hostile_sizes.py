"""Small files that ask for much: refused before anything that large is allocated, and in time."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, external
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.console import read_text_form
from tenferro_ref.errors import FormatError, ResourceExhausted, UnsupportedOp
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.program import GraphBuilder
from tenferro_ref.stablehlo.loader.statements import _generic
from tests.build import exec_of, raises_on_both
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.hostile.attacks import program
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once

SUM = """graph (%0: F64[{n}]) -> (%2) slots 3 {{
  %1 = BroadcastInDim(%0) {{"shape": [{n}, {n}], "dims": [0]}} : F64[{n}, {n}]
  %2 = ReduceSum(%1) {{"axes": [0, 1]}} : F64[]
}}
"""


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenferro_ref.memory.limit", lambda: 64 << 20)


@pytest.mark.usefixtures("little")
def test_values_that_fit_one_by_one_do_not_fit_together() -> None:
    b = GraphBuilder()
    x = b.apply(ops.BroadcastInDim((2 << 20,), ()), b.input("F64", ()))  # 16 MiB
    held = [b.apply(ops.Reverse((0,)), x) for _ in range(5)]
    error = raises_on_both(ResourceExhausted, exec_of(*held), [np.array(1.0)])
    assert error.where == "program"
    b = GraphBuilder()
    x = b.apply(ops.BroadcastInDim((2 << 20,), ()), b.input("F64", ()))
    for _ in range(9):  # one after the other, and none stays
        x = b.apply(ops.Reverse((0,)), x)
    assert (
        judge(NativeExecutor(), Reference(Case.of(b.build(x), [np.array(1.0)]), NativeExecutor())).verdict
        is Verdict.UNDECIDED
    )


@pytest.mark.usefixtures("little")
def test_enclosures_that_do_not_fit_are_not_begun(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(SUM.format(n=1000))
    run = tenferro_ref("check", tmp_path / "p.txt", "--executors", "native", "--json")
    assert run.status == 0
    (row,) = run.rows
    assert row["verdict"] == "undecided"
    assert "its enclosures take about 232 MiB, and there are 64 MiB" in row["reason"]


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(("n", "words"), [(4000, "does not fit"), (4_000_000, "inputs of")])
def test_what_does_not_fit_is_no_verdict(tmp_path: Path, n: int, words: str) -> None:
    (tmp_path / "p.txt").write_text(SUM.format(n=n))
    assert_one_line_error(tenferro_ref("check", tmp_path / "p.txt", "--executors", "native", "--json"), 3, words)


def test_an_npz_of_zeros_is_not_unfolded(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(SUM.format(n=3))
    for name in ("in0", "in1"):
        np.savez_compressed(tmp_path / "i.npz", **{name: np.zeros(1 << 22)})
        run = tenferro_ref("check", tmp_path / "p.txt", "--inputs", tmp_path / "i.npz", "--executors", "native")
        assert_one_line_error(run, 2, "i.npz", "larger than what is due")
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\ncp {tmp_path}/i.npz $3\n")
    engine.chmod(0o755)
    answer = judge(external.ExternalExecutor(str(engine)), Reference(program(), NativeExecutor()))
    assert answer.verdict is Verdict.ERROR
    assert "larger than what is due" in answer.reason


def test_a_constant_of_8_gib_in_a_module_of_a_hundred_bytes() -> None:
    module_or_skip("jaxlib")
    type_ = "tensor<1073741824xf64>"
    code = f"func.func @main() -> {type_} {{ %0 = stablehlo.constant dense<1.0> : {type_} return %0 : {type_} }}"
    with Reader() as reader:
        source = reader.source(code, "splat")
        for form in (code, reader.serialized(source, "bytecode")):
            with pytest.raises(UnsupportedOp, match="memory beyond 2048 MiB"):
                reader.load(form, "splat")


@pytest.mark.parametrize(
    "part",
    [
        "check.expect_eq_const %0 , dense<",
        'check.expect_eq_const %0, dense<"',
        "check.expect_eq %0, %1 : tensor<a",
        "tensor<",
    ],
)
@pytest.mark.parametrize("again", [True, False])
def test_patterns_take_linear_time(part: str, again: bool) -> None:
    text = part * 20_000 if again else part + "a" * 300_000
    start = time.monotonic()
    assert _generic(text) == text
    assert time.monotonic() - start < 5


def test_blanks_and_comments_are_skipped_one_by_one() -> None:
    text = " " * 10_000_000 + "// a\n" * 100_000
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="neither program JSON"):
            read_text_form(text, "blanks")
        assert tracemalloc.get_traced_memory()[1] < 2 * len(text)
    finally:
        tracemalloc.stop()
    assert read_text_form(f" // a\n\n//\n{SUM.format(n=2)}", "p").n_slots == 3
