"""Several programs in one StableHLO module."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fuzz.generate.batches import generate
from fuzz.generate.settings import config_of
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.peers.expressible import is_expressible
from oracle.peers.modules import module_text, write
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.errors import Internal, TenferroError, UnsupportedDType, UnsupportedOp
from tenferro_ref.program import parse
from tenferro_ref.stablehlo import EMIT

WINDOW = '%2 = DynamicSlice(%0, %1) {"slice_sizes": [2, 2]} : F64[2, 2]'
QR = '%3, %4 = Extension(%2) {"family": "tenferro-linalg.linalg.v1", "op": "HouseholderQrFactor", "config": {}} : F64[2, 2], F64[2]'
INPUTS = [np.zeros((3, 3), order="F"), np.zeros(2, np.int32)]


def case(outputs: str, *lines: str, slots: int) -> Case:
    head = f"graph (%0: F64[3, 3], %1: I32[2]) -> ({outputs}) slots {slots}"
    return Case.of(parse(f"{head} {{\n  " + "\n  ".join(lines) + "\n}\n"), INPUTS)


def test_a_refused_program_leaves_nothing_behind() -> None:
    """Its window has been written before its decomposition is refused; the other program's begins anew."""
    refused, window = case("%3, %4", WINDOW, QR, slots=5), case("%2", WINDOW, slots=3)
    alone, together = (write(lambda view: None, False, cases) for cases in ([window], [refused, window]))
    assert [*together.refused] == [0]
    assert together.code == alone.code
    assert alone.code.count("dynamic_slice") == 1


def test_an_emitter_that_fails_is_blamed_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program of two meets the defect: the other one is written."""
    window = case("%2", WINDOW, slots=3)
    negated = case("%2", "%2 = Negate(%0) : F64[3, 3]", slots=3)

    def broken(*_: object) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setitem(EMIT._rows, ops.DynamicSlice, broken)  # a table has no way to replace a row
    module = write(lambda view: None, False, [window, negated])
    assert isinstance(module.refused[0], Internal)
    assert [*module.types] == [1]
    with pytest.raises(Internal, match="IndexError in the emitter"):
        module_text(window)


@pytest.mark.parametrize(
    "kind", [UnsupportedOp(op="DynamicSlice", reason="no"), UnsupportedDType(dtype="F64", context="here")]
)
def test_an_emitter_that_refuses_what_can_be_said_is_blamed(
    kind: TenferroError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> None:
        raise kind

    monkeypatch.setitem(EMIT._rows, ops.DynamicSlice, refusing)
    module = write(lambda view: None, False, [case("%2", WINDOW, slots=3), case("%3, %4", WINDOW, QR, slots=5)])
    assert isinstance(module.refused[0], Internal)
    assert "refuses what StableHLO has a form for" in str(module.refused[0])
    assert module.refused[1] is kind  # not all of it could be said


@pytest.mark.once
def test_a_reader_that_refuses_what_the_emitter_writes_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> None:
        raise UnsupportedOp(op="dynamic_slice", reason="no")

    window = case("%2", WINDOW, slots=3)
    executor = Pool().make("native-reloaded")
    assert judge(executor, Reference(window, NativeExecutor())).verdict is Verdict.PASS
    monkeypatch.setattr("oracle.peers.native.load", refusing)
    answer = judge(executor, Reference(window, NativeExecutor()))
    assert answer.verdict is Verdict.ERROR
    assert "the reader refuses what the emitter has written" in answer.reason


def test_what_can_be_said_is_what_the_emitter_writes() -> None:
    """Both tell it apart by themselves, of 800 programs."""
    said = Counter[tuple[bool, bool]]()
    for drawn in (c for batch in range(25) for c in generate(31, batch, 32, config_of(["linalg=20", "policies=20"]))):
        module = write(lambda view: None, False, [drawn])
        said[not module.refused, is_expressible(drawn.program)] += 1
    assert said.keys() == {(True, True), (False, False)}
    assert said[False, False] > 40
