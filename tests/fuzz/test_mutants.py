"""Seeded faults: each, switched on alone, is found and shrunk to at most four instructions."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.mutants import CATALOGUE, Mutant, find, hunt
from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.by_rule import load
from fuzz.mutants.rewrite import RULES, Site, patched, sites
from oracle.executors import NativeExecutor
from oracle.judge import Reference, judge
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import Maximum
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import same_bits
from tests.plugins import plugin_or_skip

#: Faults of the XLA path need a plugin to show; those of the native path show against enclosures and among variants.
THROUGH_XLA = ("emitter", "layout")
SEED = 20261121


@pytest.mark.parametrize("mutant", BY_HAND, ids=lambda m: m.name)
def test_every_mutant_is_killed_and_its_evidence_is_small(mutant: Mutant) -> None:
    if mutant.place in THROUGH_XLA:
        plugin_or_skip("xla081")
        executors = ["pjrt:xla081"]
    else:
        executors = ["native-unsegmented", "native-nopasses"]
    kill = hunt(mutant, executors, seed=SEED, max_programs=2000, reduce_seconds=30)
    assert kill.killed, f"{mutant.name} survived {kill.programs} programs"
    assert kill.case is not None
    assert len(kill.case.program.instructions) <= 4, kill.case.program
    # the fault is gone with the hunt
    native = NativeExecutor()
    assert judge(native, Reference(kill.case, native)).verdict.value == "pass"


def test_a_fault_is_there_only_while_it_is_switched_on() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (1,)), b.input("F64", (1,))
    program = to_exec(b.build(b.apply(Maximum(), x, y)))
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


def test_the_catalogue_is_of_this_source() -> None:
    """Every site is where the rules file says, and the change is the one that it says."""
    by_module: dict[str, set[Site]] = {}
    for site, _ in load():
        if site.module not in by_module:
            by_module[site.module] = set(sites(site.module))
        assert site in by_module[site.module], f"{site.name}: run python -m fuzz.mutants.select --module {site.module}"


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


def test_every_rule_has_sites() -> None:
    found = {site.rule for name in ("tenferro_ref.runtime.segment", "tenferro_ref.compiler.dot_decomposer",
                                    "tenferro_ref.runtime.kernels.structural", "tenferro_ref.runtime.kernels.indexing")
             for site in sites(name)}  # fmt: skip
    assert found == set(RULES)


def test_a_stale_site_is_an_error() -> None:
    gone = Site("tenferro_ref.runtime.segment", "no_such", "logic", "a and b", "a or b")
    with pytest.raises(LookupError, match="no such function"), patched(gone):
        pass
