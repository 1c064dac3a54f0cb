"""Seeded faults: each, switched on alone, is found; those written by hand are shrunk to at most four instructions."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

from fuzz.cli.mutants import mutants
from fuzz.mutants import Hunter, Mutant, catalogue, find, hunt, laws, rewrite
from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.catalogue import ELSEWHERE, LEFT_OUT, MODULES, equivalents, every_site
from fuzz.mutants.hunt import LAW
from fuzz.mutants.laws import LAWS, checkout
from fuzz.mutants.looks import BY_LAWS, look, watch
from fuzz.mutants.programs import programs
from fuzz.mutants.rewrite import RULES, Site, patched, sites
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.errors import UsageError
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo.emit import EMIT, contraction
from tenferro_ref.tensor import same_bits
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

#: Faults of the XLA path need a plugin to show; those of the native path show against enclosures and among variants.
THROUGH_XLA = {"emitter": ["pjrt:xla081@fast"], "transfer": ["pjrt:xla081@fast"]}
SEED = 20261121


@pytest.mark.parametrize("mutant", BY_HAND, ids=lambda m: m.name)
def test_every_mutant_is_killed_and_its_evidence_is_small(mutant: Mutant) -> None:
    if mutant.place in THROUGH_XLA:
        plugin_or_skip("xla081")
    executors = THROUGH_XLA.get(mutant.place) or watch(mutant.place).executors
    kill = hunt(mutant, executors, seed=SEED, max_programs=2000, reduce_seconds=30)
    assert kill.killed, f"{mutant.name} survived {kill.programs} programs"
    assert kill.case is not None
    assert len(kill.case.primal.instructions) <= 4, kill.case.primal
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


# --- faults made by rule ----------------------------------------------------------------------------------------------


def first_of(place: str) -> Mutant:
    return next(m for m in catalogue() if m.site and m.place == place and m.hunted)


@pytest.mark.parametrize("place", ["kernels", "segmentation", "loader", "compiler"])
def test_programs_show_faults_made_by_rule(place: str) -> None:
    if place == "loader":
        module_or_skip("jaxlib")
    faults = [m for m in catalogue() if m.place == place and m.site and m.hunted][:6]
    with Hunter(1, watch(place).executors, max_programs=200) as hunter:
        kills = [hunter.hunt(mutant) for mutant in faults]
    assert any(kill.killed for kill in kills)
    assert all(kill.changed <= kill.entered <= kill.programs + 16 for kill in kills)


def test_laws_show_faults_of_the_oracle() -> None:
    site = next(s for s in sites("oracle.ulp") if s.function == "ulp_distance" and s.rule == "operator")
    kill = hunt(find(site.name), seed=1)
    assert (kill.executor, kill.programs, kill.case) == (LAW, 0, None)
    assert kill.reason.startswith("test_comparison.py::test_")


def test_without_a_checkout_there_are_no_laws() -> None:
    with mock.patch.object(laws, "checkout", return_value=None):
        assert not hunt(first_of("sets"), seed=1).killed
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


def test_the_catalogue_is_large_and_reaches_everything() -> None:
    faults = [m for m in catalogue() if m.hunted]
    assert 500 < len(faults) < 900
    assert {m.place for m in faults} == {place for place, _ in MODULES.values()} | set(ELSEWHERE.values())
    assert len({m.name for m in catalogue()}) == len(catalogue())


def test_the_tables_are_of_this_source() -> None:
    """Entries that the source no longer has are without effect: delete them, or write them anew for what is there now."""
    there = {(site.module, site.key) for site in every_site().values()}
    gone = [f"module {module}" for module in MODULES if not any(m == module for m, _ in there)]
    named = [f"{s.module}.{s.function}" for s in every_site().values()]
    gone += [f"function {start}" for start in ELSEWHERE if not any(name.startswith(start) for name in named)]
    functions = {(module, name) for module in MODULES for name in rewrite.functions(rewrite._parsed(module))}
    known = {form for module, name in functions for form in (name.rpartition(".")[2], f"{module}.{name}")}
    gone += [f"left-out function {name}" for name in LEFT_OUT - known]
    gone += [f"{m}: {key}" for m, reasons in equivalents().items() for key in reasons if (m, key) not in there]
    assert not gone, "no longer in the source:\n" + "\n".join(gone)


def test_every_equivalent_mutant_is_explained() -> None:
    short = [key for reasons in equivalents().values() for key, why in reasons.items() if len(why) < 20]
    assert short == []


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


def test_sites_are_known_by_function_rule_and_text_and_not_by_line() -> None:
    module = "tenferro_ref.stablehlo.emit.structural"
    before = {s.key for s in sites(module)}
    assert any(key.startswith("_(Reshape) | ") for key in before)  # rows of tables are known by their ops
    source = rewrite._source(module)
    shifted = "\n\n" + source.read_text("utf-8")
    with mock.patch.object(type(source), "read_text", return_value=shifted):
        assert {s.key for s in sites(module)} == before


def test_what_decides_on_an_error_is_left_alone() -> None:
    before = {s.before for s in sites("tenferro_ref.runtime.run") if s.function == "Run.execute"}
    assert "self.settings.reclaim" not in before
    assert not any("len(results)" in text for text in before)  # a wrong number of results is an error


def test_a_fault_shows_despite_what_was_remembered_before_it() -> None:
    """Caches are of the code that filled them: they are emptied when a fault comes and when it goes."""
    from tenferro_ref.runtime.kernels.contraction import matrix_form

    product, shapes = ops.DotGeneral((1,), (0,), (), ()), ((2, 3), (3, 4))
    change = next(s for s in sites(matrix_form.__module__) if s.before == "(*rows, *columns, *batch)")
    before = matrix_form(product, *shapes)
    with patched(change):
        assert matrix_form(product, *shapes) != before
    assert matrix_form(product, *shapes) == before


def test_every_rule_has_sites() -> None:
    assert {site.rule for site in every_site().values()} == set(RULES)


def test_places_that_are_not_in_the_source_are_errors() -> None:
    for module in ("tenferro_ref.runtime.segment", "tenferro_ref.no_such"):
        with pytest.raises(LookupError, match=r"no longer has|no such module"):
            rewrite._compiled(Site(module, "no_such", "logic", "a and b", "a or b"))


@pytest.mark.parametrize("place", ["kernels", "compiler", "emitter", "extensions"])
def test_without_a_fault_programs_look_the_same_twice(place: str) -> None:
    for item in programs(SEED, place).chunk(0)[:8]:
        assert look(watch(place), item.case) == item.look


# --- the command ------------------------------------------------------------------------------------------------------


def test_run_in_several_processes_gives_what_one_gives() -> None:
    names = [m.name for m in catalogue() if m.place == "segmentation" and m.hunted][:2]
    found = {}
    for jobs in ("1", "2"):
        arguments = ["--seed", "1", "--json", "--jobs", jobs, "--executors", "native"]
        result = CliRunner().invoke(mutants, ["run", *names, *arguments])
        lines = [json.loads(line) for line in result.output.splitlines()]
        found[jobs] = sorted((r["name"], r["killed"], r["programs"], r["by"]) for r in lines)
    assert found["1"] == found["2"]
    assert [r[0] for r in found["1"]] == sorted(names)


def test_survivors_are_said_and_end_with_status_1() -> None:
    arguments = ["sum-without-last", "--seed", "3", "--programs", "1", "--executors", "native"]
    result = CliRunner().invoke(mutants, ["run", *arguments], standalone_mode=False)
    assert result.return_value == 1
    assert "SURVIVED" in result.output
    assert "0 of 1 killed" in result.output


def test_samples_are_drawn_by_the_seed() -> None:
    arguments = ["--place", "kernels", "--executors", "native", "--programs", "1", "--sample", "3", "--json"]
    drawn = [
        [
            json.loads(line)["name"]
            for line in CliRunner().invoke(mutants, ["run", *arguments, "--seed", s]).output.splitlines()
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
