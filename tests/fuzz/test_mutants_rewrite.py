"""Faults made by rule: where they are found in the source, and how code objects are changed and mended."""

from __future__ import annotations

import ast
from unittest import mock

import numpy as np
import pytest

from fuzz.mutants import find, rewrite
from fuzz.mutants.catalogue import PLACES, equivalents, every_site, modules
from fuzz.mutants.rewrite import RULES, Site, patched, sites
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import literals
from tenferro_ref.stablehlo.emit import EMIT, contraction
from tenferro_ref.tensor import same_bits


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


def test_the_tables_are_of_this_source() -> None:
    """Entries that the source no longer has are without effect: delete them, or write them anew for what is there now."""
    there = {(site.module, site.key) for site in every_site().values()}
    gone = [start for start in PLACES if not any(f"{m}.".startswith(f"{start}.") for m in modules())]
    gone += [f"{m}: {key}" for m, reasons in equivalents().items() for key in reasons if (m, key) not in there]
    assert not gone, "no longer in the source:\n" + "\n".join(gone)


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("attributes", "f(a=x, b=y)", "f(a=y, b=x)"),
        ("attributes", "f(a=x, b=x)", None),
        ("clamp", "np.minimum(start, last)", "start"),
        ("clamp", "max(values)", None),
        ("clamp", "np.clip(x, 0, n)", "x"),
        ("clamp", "x.clip(0, n)", "x"),
        ("bound", "range(n)", "range(n - 1)"),
        ("bound", "range(1, n)", "range(1, n - 1)"),
        ("conjugate", "np.conj(x)", "x"),
        ("conjugate", "x.conjugate()", "x"),
        ("dtype", "np.complex128", "np.complex64"),
        ("sorting", "np.argsort(perm)", "perm"),
    ],
)
def test_what_a_rule_makes(rule: str, before: str, after: str | None) -> None:
    changed = RULES[rule](ast.parse(before, mode="eval").body)
    assert (changed and ast.unparse(ast.fix_missing_locations(changed))) == after


def test_a_branch_that_is_deleted_is_never_taken() -> None:
    change = next(s for s in sites(literals.__name__) if s.rule == "branch" and "bool_" in s.before)
    with patched(change):
        assert literals.literal(np.bool_(True)) != "true"
    assert literals.literal(np.bool_(True)) == "true"


def test_a_stale_key_gives_what_was_asked_before() -> None:
    change = next(s for s in sites(literals.__name__) if s.rule == "key")
    with patched(change):
        first = literals.type_text(DType.F32, (2,))
        assert literals.type_text(DType.F32, (3,)) == first
    assert literals.type_text(DType.F32, (3,)) != first


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


def test_an_exchange_of_equal_arguments_is_no_fault() -> None:
    found = [
        site
        for name in ("oracle.algebras", "oracle.attribution", "tenferro_ref.autodiff.elementwise")
        for site in sites(name)
    ]
    assert found
    assert [site for site in found if site.before == site.after] == []


def test_every_rule_has_sites() -> None:
    assert {site.rule for site in every_site().values()} == set(RULES)


def test_places_that_are_not_in_the_source_are_errors() -> None:
    for module in ("tenferro_ref.runtime.segment", "tenferro_ref.no_such"):
        with pytest.raises(LookupError, match=r"no longer has|no such module"):
            rewrite._compiled(Site(module, "no_such", "logic", "a and b", "a or b"))
