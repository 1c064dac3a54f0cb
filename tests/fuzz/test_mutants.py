"""Seeded faults: each, switched on alone, is found; those written by hand are shrunk to at most four instructions."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from click.testing import CliRunner

from fuzz.cli.mutants import mutants
from fuzz.mutants import Hunter, Mutant, catalogue, drawn, find, hunt, laws
from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.catalogue import PLACES, equivalents
from fuzz.mutants.hunt import LAW, UNIT_TEST
from fuzz.mutants.laws import LAWS, checkout
from fuzz.mutants.looks import BY_LAWS, look, watch
from fuzz.mutants.programs import programs
from fuzz.mutants.rewrite import RULES
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from tenferro_ref.errors import UsageError
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


#: Faults of the XLA path need a plugin to show; those of the native path show against enclosures and among variants.
THROUGH_XLA = {"emitter": ["pjrt:xla081@fast"], "transfer": ["pjrt:xla081@fast"]}
SEED = 20261121
#: One of each place is hunted in every run, the others at night.
FIRST = {m.place: m for m in reversed(BY_HAND)}.values()


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(m, id=m.name, marks=() if m in FIRST else pytest.mark.nightly) for m in BY_HAND],
)
def test_every_mutant_is_killed_and_its_evidence_is_small(mutant: Mutant) -> None:
    if mutant.place in THROUGH_XLA:
        plugin_or_skip("xla081")
    executors = THROUGH_XLA.get(mutant.place) or watch(mutant.place).executors
    kill = hunt(mutant, executors, seed=SEED, max_programs=2000, reduce_seconds=30)
    if not kill.killed:  # both sides of an identity may be wrong alike
        kill = hunt(mutant, seed=SEED, max_programs=1)
        assert kill.executor == LAW, f"{mutant.name} survived 2000 programs, and the laws"
        return
    assert kill.case is not None
    assert len(kill.case.primal.instructions) <= 4, kill.case.primal
    # the fault is gone with the hunt
    native = NativeExecutor()
    assert judge(native, Reference(kill.case, native)).verdict.value == "pass"


def test_unknown_mutants_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no-such"):
        find("no-such")


# --- faults made by rule ----------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["segmentation", "kernels", "loader", "compiler"])
def test_programs_show_faults_made_by_rule(place: str) -> None:
    if place == "loader":
        module_or_skip("jaxlib")
    faults = [m for m in drawn(1, 64 if place == "loader" else 8, (place,)) if m.site]
    with Hunter(1, watch(place).executors, max_programs=100) as hunter:
        kills = [hunter.hunt(mutant) for mutant in faults]
    assert any(kill.killed for kill in kills)
    assert all(kill.changed <= kill.entered <= kill.programs + 16 for kill in kills)


@pytest.mark.nightly
def test_laws_show_faults_of_the_oracle() -> None:
    with Hunter(1) as hunter:
        kills = [hunter.hunt(mutant) for mutant in drawn(1, 3, ("semirings",))]
    kill = next(kill for kill in kills if kill.executor == LAW)
    assert (kill.programs, kill.case) == (0, None)
    assert kill.reason.startswith("test_algebras.py::test_")


@pytest.mark.nightly
def test_unit_tests_show_what_neither_programs_nor_laws_do() -> None:
    fault = next(
        m for m in catalogue() if m.site and m.site.module == "tenferro_ref.dims" and m.site.rule == "operator"
    )
    with mock.patch.object(laws.Tests, "broken_law", return_value=""):
        kill = hunt(fault, seed=1, max_programs=16)
    assert kill.executor == UNIT_TEST
    assert kill.reason.startswith("tests/test_")


def test_without_a_checkout_there_are_no_laws() -> None:
    with mock.patch.object(laws, "checkout", return_value=None):
        assert not hunt(drawn(1, 1, ("sets",))[0], seed=1).killed
    with mock.patch("fuzz.cli.mutants.checkout", return_value=None):
        listed = CliRunner().invoke(mutants, ["list", "--place", "sets"])
        assert "needs a checkout" in listed.output
        with pytest.raises(UsageError, match="run it from a checkout"):
            CliRunner().invoke(mutants, ["run", "--place", "sets"], standalone_mode=False, catch_exceptions=False)


def test_every_law_is_asked_and_there_is_one_for_each_place() -> None:
    root = checkout()
    assert root is not None
    asked = {name for names in LAWS.values() for name in names}
    written = {path.stem.removeprefix("test_") for path in (root / "tests" / "laws").glob("test_*.py")}
    assert written - asked == {"exact"}  # which is about the laws
    assert asked <= written
    assert set(LAWS) >= BY_LAWS


def test_the_catalogue_reaches_every_function_with_every_rule() -> None:
    names = [m.name for m in catalogue()]
    assert len(set(names)) == len(names) > 10_000
    assert {m.place for m in catalogue()} == set(PLACES.values())
    assert {m.site.rule for m in catalogue() if m.site} == set(RULES)


def test_a_draw_takes_the_rules_in_turn_and_depends_on_nothing_but_the_seed() -> None:
    one, again, other = drawn(1, 60), drawn(1, 60), drawn(2, 60)
    assert one == again != other
    assert all(m.hunted for m in one)
    assert {m.site.rule for m in one if m.site} == set(RULES)


def test_every_equivalent_mutant_is_explained() -> None:
    short = [key for reasons in equivalents().values() for key, why in reasons.items() if len(why) < 20]
    assert short == []


@pytest.mark.parametrize("place", ["kernels", "compiler", "emitter", "extensions"])
def test_without_a_fault_programs_look_the_same_twice(place: str) -> None:
    for item in programs(SEED, place).chunk(0)[:8]:
        assert look(watch(place), item.case) == item.look


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_run_in_several_processes_gives_what_one_gives() -> None:
    names = [m.name for m in drawn(1, 2, ("segmentation",))]
    found = {}
    for jobs in ("1", "2"):
        arguments = ["--seed", "1", "--json", "--jobs", jobs, "--executors", "native", "--programs", "16"]
        result = CliRunner().invoke(mutants, ["run", *names, *arguments])
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        found[jobs] = sorted((r["name"], r["killed"], r["programs"], r["by"]) for r in lines)
    assert found["1"] == found["2"]
    assert [r[0] for r in found["1"]] == sorted(names)


def test_survivors_are_said_and_end_with_status_1() -> None:
    arguments = ["sum-without-last", "--seed", "4", "--programs", "1", "--executors", "native"]
    result = CliRunner().invoke(mutants, ["run", *arguments], standalone_mode=False)
    assert result.return_value == 1
    assert "SURVIVED" in result.output
    assert "0 of 1 killed" in result.output


def test_samples_are_drawn_by_the_seed() -> None:
    arguments = ["--place", "kernels", "--executors", "native", "--programs", "1", "--sample", "3", "--json"]
    drawn = [
        [
            json.loads(line)["name"]
            for line in CliRunner().invoke(mutants, ["run", *arguments, "--seed", s]).stdout.splitlines()
        ]
        for s in ("1", "1", "2")
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 3


def test_places_choose() -> None:
    result = CliRunner().invoke(mutants, ["list", "--place", "kernels", "--json"])
    listed = [json.loads(line) for line in result.output.splitlines()]
    assert {r["place"] for r in listed} == {"kernels"}
    assert len(listed) == sum(m.place == "kernels" for m in catalogue())
    with pytest.raises(UsageError, match="attic"):
        CliRunner().invoke(mutants, ["list", "--place", "attic"], standalone_mode=False, catch_exceptions=False)
