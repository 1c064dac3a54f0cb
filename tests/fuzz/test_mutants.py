"""Seeded faults: each, switched on alone, is found and shrunk to at most four instructions."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from click.testing import CliRunner

from fuzz.cli.mutants import mutants
from fuzz.generate import Config
from fuzz.generate.batches import generate
from fuzz.mutants import CATALOGUE, Mutant, find, hunt
from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.by_rule import PLACES, load
from fuzz.mutants.directed import directed, refused
from fuzz.mutants.looks import look, watch
from fuzz.mutants.programs import programs
from fuzz.mutants.promises import again, comparison, enclosed, layout, passes
from fuzz.mutants.rewrite import RULES, Site, functions, patched, sites
from fuzz.mutants.witnesses import ownership, segmentation, tropical
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.errors import UsageError
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo.emit import EMIT, contraction, structural
from tenferro_ref.tensor import same_bits
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

#: Faults of the XLA path need a plugin to show; those of the native path show against enclosures and among variants.
THROUGH_XLA = ("emitter", "transfer")
SEED = 20261121
#: How many faults the catalogue has at least.
FAULTS = 450


@pytest.mark.parametrize("mutant", BY_HAND, ids=lambda m: m.name)
def test_every_mutant_is_killed_and_its_evidence_is_small(mutant: Mutant) -> None:
    if mutant.place in THROUGH_XLA:
        plugin_or_skip("xla081")
    kill = hunt(mutant, seed=SEED, max_programs=2000, reduce_seconds=30)
    assert kill.killed, f"{mutant.name} survived {kill.programs} programs"
    assert kill.case is not None
    assert len(kill.case.program.instructions) <= 4, kill.case.program
    # the fault is gone with the hunt
    native = NativeExecutor()
    assert judge(native, Reference(kill.case, native)).verdict.value == "pass"


def test_a_fault_is_there_only_while_it_is_switched_on() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (1,)), b.input("F64", (1,))
    program = to_exec(b.build(b.apply(ops.Maximum(), x, y)))
    inputs = [np.array([1.0]), np.array([np.nan])]

    def run() -> np.ndarray:
        return GraphExecutor().eval_exec_ir(program, inputs)[0]

    before = run()
    with find("maximum-ignores-nan").patch():
        assert run()[0] == 1.0
    assert np.isnan(before[0])
    assert same_bits(run(), before)


def test_unknown_mutants_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no-such"):
        find("no-such")


# --- mutants made by rule ---------------------------------------------------------------------------------------------


#: One fault of each place: what it takes is a matter of a few programs.
SAMPLE = [
    next((m for m in reversed(CATALOGUE) if m.site is not None and m.place == place and not m.equivalent), None)
    for place in dict.fromkeys(PLACES.values())
    if place not in THROUGH_XLA
]


@pytest.mark.parametrize("mutant", [m for m in SAMPLE if m is not None], ids=lambda m: m.name)
def test_faults_made_by_rule_are_found(mutant: Mutant) -> None:
    if mutant.place == "loader":
        module_or_skip("jaxlib")
    kill = hunt(mutant, seed=1, max_programs=2000, reduce_seconds=0)
    assert kill.killed, f"{mutant.name} survived {kill.programs} programs: {mutant.about}"


def test_the_catalogue_is_large_and_reaches_everything() -> None:
    faults = [m for m in CATALOGUE if not m.equivalent]
    assert len(faults) >= FAULTS
    assert {m.place for m in faults} == set(PLACES.values())


def test_the_catalogue_is_of_this_source() -> None:
    """Every site is where the rules file says, and the change is the one that it says."""
    by_module: dict[str, set[Site]] = {}
    for site, _ in load():
        if site.module not in by_module:
            by_module[site.module] = set(sites(site.module))
    stale = [site.name for site, _ in load() if site not in by_module[site.module]]
    assert not stale, "run `python -m fuzz.mutants.select --check`"


def test_every_equivalent_mutant_is_explained() -> None:
    assert [site.name for site, equivalent in load() if equivalent and len(equivalent) < 20] == []


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in CATALOGUE}) == len(CATALOGUE)


def test_a_site_is_patched_everywhere_and_mended_again() -> None:
    from tenferro_ref.compiler import dot_dimension_sorter as module

    right = module.consecutive_but_unsorted
    change = next(s for s in sites(module.__name__) if s.function == right.__name__ and s.rule == "logic")
    before = right((0, 1)), right((1, 0))
    with patched(change):
        assert (right((0, 1)), right((1, 0))) != before
    assert (right((0, 1)), right((1, 0))) == before == (False, True)


def test_closures_that_a_function_has_made_change_with_it() -> None:
    """`_reduction` made the rows of reductions when its module was imported."""
    change = next(s for s in sites(contraction.__name__) if s.function == "_reduction" and s.rule == "condition")
    row = EMIT[ops.ReduceSum]
    right = row.__code__  # type: ignore[attr-defined]
    with patched(change):
        assert row.__code__ is not right  # type: ignore[attr-defined]
    assert row.__code__ is right  # type: ignore[attr-defined]


def test_rows_of_tables_are_known_by_their_ops() -> None:
    names = [name for name, _ in functions(structural)]
    assert "_(Reshape)" in names
    assert len(names) == len(set(names))


def test_what_decides_on_an_error_is_left_alone() -> None:
    before = {s.before for s in sites("tenferro_ref.runtime.run") if s.function == "Run.execute"}
    assert "self.settings.reclaim" not in before
    assert not any("len(results)" in text for text in before)  # a wrong number of results is an error


def test_a_fault_survives_what_was_remembered_before_it() -> None:
    """Caches are of the code that filled them: they are emptied when a fault comes and when it goes."""
    b = GraphBuilder()
    program = to_exec(b.build(b.apply(ops.Transpose((1, 0)), b.input("F64", (2, 3)))))
    x = np.arange(6.0).reshape(2, 3)
    change = next(s for s in sites("tenferro_ref.runtime.run") if s.function == "_result_types")
    before = GraphExecutor().eval_exec_ir(program, [x])[0]
    for _ in range(2):
        with patched(change):
            pass
        assert same_bits(GraphExecutor().eval_exec_ir(program, [x])[0], before)


def test_every_rule_has_sites() -> None:
    found = {site.rule for name in ("tenferro_ref.runtime.segment", "tenferro_ref.compiler.dot_decomposer",
                                    "tenferro_ref.runtime.kernels.structural", "tenferro_ref.runtime.kernels.indexing")
             for site in sites(name)}  # fmt: skip
    assert found == set(RULES)


def test_a_stale_site_is_an_error() -> None:
    gone = Site("tenferro_ref.runtime.segment", "no_such", "logic", "a and b", "a or b")
    with pytest.raises(LookupError, match="no such function"), patched(gone):
        pass


def test_sites_travel_as_one_word() -> None:
    for site, _ in load()[:20]:
        assert ":" not in site.to_token()
        assert Site.from_token(site.to_token()) == site


# --- witnesses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [p for p in dict.fromkeys(PLACES.values()) if p not in THROUGH_XLA])
def test_nobody_cries_wolf(place: str) -> None:
    """Without a fault, witnesses are silent and programs look the same twice."""
    kind = watch(place)
    for item in programs(SEED, place).chunk(0)[:8]:
        assert look(kind, item.case) == item.look
    if place == "semirings":
        reasons = map(tropical, generate(SEED, 0, 40, kind.configs[0]))
        assert [r for r in reasons if r and "nothing to sum" not in r] == []  # what the policy says is an error
    if place == "reclaim":
        assert {ownership(item.case) for item in programs(SEED, place).chunk(0)} == {""}


@pytest.mark.parametrize("promise", [passes, layout, again, comparison, enclosed, segmentation])
def test_promises_are_kept_without_a_fault(promise: Callable[[Case], str]) -> None:
    cases = [*generate(SEED, 1, 12, Config(max_instructions=10, usual_elements=60, max_elements=500)),
             *(d.case for d in directed()[::8])]  # fmt: skip
    assert [reason for reason in map(promise, cases) if reason] == []


def test_programs_written_by_hand_are_right_or_refused() -> None:
    native = NativeExecutor()
    for program in directed():
        verdict = judge(native, Reference(program.case, native)).verdict.value
        assert refused(program.case) == "", program.about
        assert verdict == ("error" if program.error else "pass"), program.about


# --- the command ------------------------------------------------------------------------------------------------------


def test_run_in_several_processes_gives_what_one_gives() -> None:
    first, second = [m.name for m in CATALOGUE if m.place == "segmentation" and not m.equivalent][:2]
    found = {}
    for jobs in ("1", "2"):
        result = CliRunner().invoke(mutants, ["run", first, second, "--seed", "1", "--json", "--jobs", jobs])
        assert result.exit_code == 0, result.output
        lines = [json.loads(line) for line in result.output.splitlines()]
        found[jobs] = sorted((r["name"], r["killed"], r["programs"], r["by"]) for r in lines)
    assert found["1"] == found["2"]
    assert [r[:2] for r in found["1"]] == [(name, True) for name in sorted((first, second))]


def test_survivors_are_said_and_end_with_status_1() -> None:
    result = CliRunner().invoke(
        mutants, ["run", "sum-without-last", "--seed", "3", "--programs", "1"], standalone_mode=False
    )
    assert result.return_value == 1
    assert "SURVIVED" in result.output
    assert "0 of 1 killed" in result.output


def test_places_choose() -> None:
    result = CliRunner().invoke(mutants, ["list", "--place", "kernels", "--json"])
    listed = [json.loads(line) for line in result.output.splitlines()]
    assert {r["place"] for r in listed} == {"kernels"}
    assert len(listed) == sum(m.place == "kernels" for m in CATALOGUE)
    with pytest.raises(UsageError, match="attic"):
        CliRunner().invoke(mutants, ["list", "--place", "attic"], standalone_mode=False, catch_exceptions=False)
