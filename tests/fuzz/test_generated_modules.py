"""Generated modules: every statement is sound, what is drawn is the same everywhere, and native keeps to its enclosures."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from fuzz.campaign.programs import cases_of
from fuzz.generate.batches import generate
from fuzz.generate.choices import Choices
from fuzz.generate.config import DEFAULT
from fuzz.generate.describe import describe
from fuzz.generate.modules import STATEMENTS, with_modules
from fuzz.generate.modules.cases import decode
from fuzz.store import Plan
from fuzz.store.model import pack, unpack
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType

pytestmark = pytest.mark.once
pytest.importorskip("jaxlib", reason="modules are read by MLIR, the extra jax")

#: Draws of each statement.
_DRAWS = 6


def _drawn(name: str, number: int, case: Case) -> Case | None:
    return decode(Choices(hashlib.shake_256(f"{name} {number}".encode()).digest(512)), name, case)


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_statement_makes_modules_that_are_read_and_native_keeps_to_their_enclosures(name: str) -> None:
    programs = generate(11, 0, _DRAWS)
    cases = [_drawn(name, number, program) for number, program in enumerate(programs)]
    read = [case for case in cases if case is not None]
    assert len(read) >= _DRAWS - 1, "the reader refuses what the statement writes"
    operation = name.partition(" ")[0].removeprefix("dynamic_")
    assert all(any(operation in op for op, _ in case.source.ops) for case in read if case.source) or "convert" in name
    for case in read:
        answer = judge(NativeExecutor(), Reference(case, NativeExecutor()))
        assert answer.verdict in (Verdict.PASS, Verdict.UNDECIDED), (
            f"{answer.reason}\n{case.source and case.source.text}"
        )


def test_one_program_in_sixteen_is_a_module_and_the_others_stay() -> None:
    plan = Plan(3)
    cases, without = cases_of(plan, 2), cases_of(replace(plan, generate=("modules=0",)), 2)
    modules = [n for n, case in enumerate(cases) if case.source is not None]
    assert 1 <= len(modules) <= 2
    assert [c.fingerprint for c in cases] == [c.fingerprint for c in cases_of(plan, 2)]
    assert all(
        a.fingerprint == b.fingerprint for n, (a, b) in enumerate(zip(cases, without, strict=True)) if n not in modules
    )


@pytest.mark.parametrize("settings", [("ops=Exp,Add",), ("dtypes=F32",), ("modules=0",)])
def test_no_module_where_ops_or_dtypes_are_chosen(settings: tuple[str, ...]) -> None:
    assert all(case.source is None for case in cases_of(Plan(3, generate=settings), 0))


def test_all_statements_come_in_turn() -> None:
    batches, seen = len(list(STATEMENTS)) // 32 + 1, set[str]()
    for batch in range(batches):
        for case in with_modules(5, batch, replace(DEFAULT, modules=1), generate(5, batch, 32)):
            seen |= {feature.removeprefix("module: ") for feature in describe(case) if feature.startswith("module: ")}
    assert {name for name in STATEMENTS if " " not in name} - {"chlo.square"} <= seen


def test_a_store_keeps_a_module_with_its_program() -> None:
    kept = [case for case in with_modules(7, 0, replace(DEFAULT, modules=1), generate(7, 0, 32)) if case.source]
    assert len(kept) > 24
    for case in kept:
        again = unpack(*pack(case))
        assert (again.source, again.fingerprint, again.deciding) == (case.source, case.fingerprint, case.deciding)
        assert again.source is not None
        assert again.source.ops == case.source.ops


def test_modules_have_the_dtypes_that_programs_lack() -> None:
    dtypes = {
        t.dtype
        for case in with_modules(9, 0, replace(DEFAULT, modules=1), generate(9, 0, 64))
        for t in case.program.input_types
    }
    assert {DType.F16, DType.I8} & dtypes or {DType.BF16, DType.U8} & dtypes


def test_ops_of_the_reference_alone_are_drawn() -> None:
    drawn = {
        type(ins.op)
        for case in with_modules(1, 0, replace(DEFAULT, modules=1), generate(1, 0, 96))
        for ins in case.program.instructions
    }
    assert {ops.Special, ops.Bits, ops.Bitcast} <= drawn
