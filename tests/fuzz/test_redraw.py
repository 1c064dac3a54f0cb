"""Input sets: of one program, distinct, the same everywhere; and a campaign with them."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.programs import cases_of, check_generator
from fuzz.campaign.tally import Tally, coverage
from fuzz.campaign.work import begin, work
from fuzz.campaign.worksite import Worksite
from fuzz.generate.batches import generate
from fuzz.generate.describe import describe
from fuzz.generate.input_sets import batch_of, input_sets_of
from fuzz.store import Plan, Store
from fuzz.store.store import campaign_key
from oracle.case import Case
from oracle.peers import NativeExecutor, Pool, Selection, native_variants
from tenferro_ref import ops
from tenferro_ref.cli import main
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def test_one_input_set_is_what_the_generator_makes() -> None:
    assert [c.fingerprint for c in batch_of(1, 2, 8)] == [c.fingerprint for c in generate(1, 2, 8)]


@pytest.mark.parametrize("sets", [2, 5])
def test_a_batch_has_as_many_distinct_cases_and_the_sets_of_a_program_in_a_row(sets: int) -> None:
    cases = batch_of(3, 1, 30, sets)
    assert len({case.fingerprint for case in cases}) == len(cases) == 30
    programs = [list(group) for _, group in groupby(cases, key=lambda case: id(case.program))]
    assert len(programs) < 30
    assert max(map(len, programs)) == sets
    first = generate(3, 1, len(programs))
    assert [group[0].fingerprint for group in programs] == [case.fingerprint for case in first]
    for group in programs:
        assert len({case.shapes for case in group}) == 1
    assert [c.fingerprint for c in batch_of(3, 1, 30, sets)] == [c.fingerprint for c in cases]


def test_every_input_set_can_be_run() -> None:
    """What indexes or divides stays what it is."""
    for case in (*batch_of(5, 0, 100, 10), *batch_of(5, 1, 100, 10)):
        NativeExecutor().run(case)


def test_integers_are_kept_in_another_order_and_fractions_change() -> None:
    b = GraphBuilder()
    i, x = b.input("I32", (8,)), b.input("F32", (8,))
    case = Case.of(b.build(i + i, x + x), [np.arange(8, dtype=np.int32), np.arange(8, dtype=np.float32) / 2])
    sets = input_sets_of(case, 12)
    assert sets[0] is case
    assert all(sorted(s.inputs[0].tolist()) == list(range(8)) for s in sets)
    assert any(s.inputs[0].tolist() != list(range(8)) for s in sets)
    assert any(not np.array_equal(np.sort(s.inputs[1]), case.inputs[1]) for s in sets)
    assert all(s.inputs[1].flags.f_contiguous and s.inputs[1].dtype == np.float32 for s in sets)


@pytest.mark.parametrize("at_once", [1, 1000, 1 << 16])
def test_features_are_counted_for_each_set(at_once: int) -> None:
    cases, tally, expected = batch_of(5, 0, 96, 8), Tally(), Counter[str]()
    with mock.patch("oracle.case.AT_ONCE", at_once):
        tally.add_cases(cases)
    for case in cases:
        expected.update(describe(case))
        expected.update({*coverage(case.program)})
    assert tally.part("feature") == dict(sorted(expected.items()))
    assert any(key.startswith("values: ") for key in expected)


def test_programs_without_inputs_have_one_set() -> None:
    b = GraphBuilder()
    case = Case.of(b.build(b.constant(1.0, DType.F32)), [])
    assert len({s.fingerprint for s in input_sets_of(case, 4)}) == 1


def test_a_campaign_with_input_sets_is_counted_and_made_again(tmp_path: Path, pool: Pool) -> None:
    plan = Plan(seed=6, programs=40, batch=16, input_sets=4)
    path = tmp_path / "sets.sqlite"
    with Store(path, create=True) as store:
        stream = begin(store, plan, Selection(native_variants()[:2], ()))
        work(Worksite(store, stream, native_variants()[:2], pool), alone=True)
        assert store.done(stream.id) == (40, 0)
        assert audit(store, regenerate=9) == []
        check_generator(store, store.stream(stream.id))
        assert store.stream(stream.id).plan == plan


def test_campaigns_that_differ_in_input_sets_are_not_merged() -> None:
    keys = {campaign_key(Plan(1, input_sets=sets), ["native"]) for sets in (1, 2, 3)}
    assert len(keys) == 3


def test_the_command(tmp_path: Path) -> None:
    path = str(tmp_path / "night.sqlite")
    arguments = ["fuzz", "run", path, "--executors", "native", "--seed", "4", "--programs", "48", "--input-sets", "8"]
    assert main([*arguments, "--workers", "1"]) == 0
    with Store(path) as store:
        (stream,) = store.streams()
        assert (stream.plan.input_sets, stream.plan.batch) == (8, 256)
        assert stream.plan.command.endswith("--input-sets 8")
        assert store.done(stream.id)[0] == 48


def test_what_programs_may_contain_is_said_in_words_and_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "night.sqlite")
    words = ("ops=Exp,Add", "dtypes=F32,F64", "instructions=3-6", "elements=32", "rank=2", "symbolic=0", "invalid=0")
    flags = [flag for word in words for flag in ("--generate", word)]
    arguments = ["fuzz", "run", path, "--executors", "native", "--seed", "4", "--programs", "40", "--workers", "1"]
    assert main([*arguments, *flags]) == 0
    with Store(path) as store:
        (stream,) = store.streams()
        assert stream.plan.generate == words
        assert stream.plan.command.endswith(" ".join(flags))
        assert audit(store, regenerate=2) == []
        cases = cases_of(stream.plan, 0)
        assert stream.campaign != campaign_key(Plan(4), ["native"])
    assert {i.op for case in cases for i in case.program.instructions} <= {ops.Exp(), ops.Add()}
    types = [t for case in cases for t in case.program.slot_types.values()]
    assert {t.dtype for t in types} == {DType.F32, DType.F64}
    assert max(t.rank for t in types) == 2
    assert max(array.size for case in cases for array in case.inputs) <= 32
    assert (
        max(len(case.program.instructions) for case in cases)
        <= 6
        < max(len(c.program.instructions) for c in generate(4, 0))
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("colour=red", "a key out of instructions, elements"),
        ("ops", "expected KEY=VALUE"),
        ("ops=Exp,Sine", "'Sine' is none"),
        ("dtypes=f32", "names out of F32"),
        ("instructions=0", "a number from 1"),
        ("instructions=9-3", "not less than"),
        ("elements=many", "a number from 1"),
        ("linalg=101", "a percentage"),
    ],
)
def test_words_that_say_nothing(word: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["fuzz", "run", str(tmp_path / "s.sqlite")], ["parity", "--out", str(tmp_path / "report")]):
        assert main([*command, "--programs", "4", "--generate", word]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "s.sqlite").exists()


def test_ops_that_no_dtype_admits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "s.sqlite"
    assert main(["fuzz", "run", str(store), "--generate", "ops=Exp", "--generate", "dtypes=I32"]) == 2
    assert "none of the ops can be generated" in capsys.readouterr().err
    assert not store.exists()
