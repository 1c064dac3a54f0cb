"""Symbolic extents: evaluation, faults, and what is known of a result (SEMANTICS 3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_ref.dims import (
    DIM_KINDS,
    MAX_OPERATIONS,
    USIZE_MAX,
    DimExpr,
    DimKind,
    DimOp,
    Extent,
    InputDim,
    Unknown,
    UpperBound,
    combine,
    equal_extents,
    evaluate,
    expr_of,
    extent_kind,
    inputs_of,
    is_exact,
    product,
    rewrap,
    simplify,
    substitute,
)
from tenferro_ref.errors import InvalidArgument

N, M = InputDim(0, 0), InputDim(1, 0)
PYTHON = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "min": min,
    "max": max,
}


def fault(expr: DimExpr, shapes: list[list[int]]) -> str:
    with pytest.raises(InvalidArgument) as caught:
        evaluate(expr, shapes)
    assert caught.value.op == "DimExpr"
    return caught.value.argument


@pytest.mark.parametrize(
    ("expr", "argument"),
    [
        (InputDim(2, 0), "InputOutOfBounds"),
        (InputDim(-1, 0), "InputOutOfBounds"),
        (InputDim(0, 2), "AxisOutOfBounds"),
        (InputDim(0, -1), "AxisOutOfBounds"),
        (DimOp("add", USIZE_MAX, N), "AddOverflow"),
        (DimOp("sub", N, 4), "SubUnderflow"),
        (DimOp("mul", 2**63, N), "MulOverflow"),
        (DimOp("floordiv", N, DimOp("sub", M, M)), "FloorDivByZero"),
    ],
)
def test_faults_have_the_engines_names(expr: DimExpr, argument: str) -> None:
    assert fault(expr, [[3, 5], [7]]) == argument


def test_an_operation_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'pow' is none of add, sub, mul"):
        DimOp("pow", 2, 2)  # type: ignore[arg-type]


def test_values_up_to_the_largest_usize() -> None:
    assert evaluate(DimOp("add", USIZE_MAX, 0), []) == USIZE_MAX
    assert evaluate(DimOp("mul", 2**32, 2**31), []) == 2**63
    assert fault(DimOp("mul", 2**32, 2**32), []) == "MulOverflow"


_exprs = st.recursive(
    st.one_of(st.integers(0, 9), st.builds(InputDim, st.integers(0, 1), st.integers(0, 1))),
    lambda inner: st.builds(DimOp, st.sampled_from(DIM_KINDS), inner, inner),
    max_leaves=12,
)
_shapes = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=2, max_size=2)


@given(_exprs, _shapes)
def test_evaluation_is_python_arithmetic_where_that_stays_a_usize(expr: DimExpr, shapes: list[list[int]]) -> None:
    def python(e: DimExpr) -> int | None:
        if isinstance(e, int):
            return e
        if isinstance(e, InputDim):
            return shapes[e.input][e.axis]
        a, b = python(e.lhs), python(e.rhs)
        if a is None or b is None or (e.kind == "floordiv" and b == 0):
            return None
        value = int(PYTHON[e.kind](a, b))
        return value if 0 <= value <= USIZE_MAX else None

    expected = python(expr)
    if expected is None:
        fault(expr, shapes)
    else:
        assert evaluate(expr, shapes) == expected


@given(_exprs, _shapes)
def test_folding_and_symbolic_substitution_change_no_value(expr: DimExpr, shapes: list[list[int]]) -> None:
    try:
        expected = evaluate(expr, shapes)
    except InvalidArgument:
        return
    assert evaluate(expr_of(simplify(expr)), shapes) == expected
    names = [[InputDim(i, a) for a in range(2)] for i in range(2)]
    symbolic = substitute(expr, names)
    assert is_exact(symbolic)
    assert evaluate(expr_of(symbolic), shapes) == expected
    assert inputs_of(expr_of(symbolic)) <= inputs_of(expr)


def test_a_symbolic_value_is_no_integer() -> None:
    with pytest.raises(InvalidArgument, match="does not evaluate to an integer"):
        evaluate(N, [[M]])  # type: ignore[list-item]


def test_equality_is_structural() -> None:
    assert DimOp("mul", 2, 3) != DimOp("mul", 3, 2)
    assert DimOp("mul", 2, 3) == DimOp("mul", 2, 3)
    assert len({DimOp("add", N, 1), DimOp("add", N, 1)}) == 1


def test_same_says_none_where_only_the_running_program_can_tell() -> None:
    assert equal_extents(3, 3) is True
    assert equal_extents(3, 4) is False
    assert equal_extents(N, N) is True
    assert equal_extents(N, M) is None
    assert equal_extents(N, 3) is None
    assert equal_extents(UpperBound(3), UpperBound(3)) is None
    assert equal_extents(UpperBound(3), 3) is None
    assert equal_extents(Unknown(3), 4) is None


#: kind, what is known of lhs and rhs, what is known of the result: the resolution table.
def _expected(kind: str, a: str, b: str) -> str:
    if kind == "sub":
        return "exact" if a == b == "exact" else "unknown"
    if kind == "floordiv":
        return {("exact", "exact"): "exact", ("an upper bound", "exact"): "an upper bound"}.get((a, b), "unknown")
    if "unknown" in (a, b):
        return "unknown"
    return "exact" if a == b == "exact" else "an upper bound"


@pytest.mark.parametrize("kind", DIM_KINDS)
def test_resolution_table(kind: str) -> None:
    for a, b in itertools.product((6, UpperBound(6), Unknown(6)), (3, UpperBound(3), Unknown(3))):
        result = combine(kind, a, b)
        assert extent_kind(result) == _expected(kind, extent_kind(a), extent_kind(b))
        assert expr_of(result) == PYTHON[kind](6, 3)


@given(_exprs, st.sampled_from([0, 1]))
def test_nothing_turns_a_bound_into_an_exact_extent(expr: DimExpr, bounded: int) -> None:
    """Substituting an input whose extents are only bounded leaves every expression that reads it inexact."""
    shapes: list[list[Extent]] = [[5, 5], [5, 5]]
    shapes[bounded] = [UpperBound(5), UpperBound(5)]
    try:
        result = substitute(expr, shapes)
    except InvalidArgument:
        return
    assert is_exact(result) == (bounded not in inputs_of(expr))
    assert type(simplify(result)) is type(result) or is_exact(result)
    assert is_exact(rewrap(result, 1)) == is_exact(result)


def test_product() -> None:
    assert product(()) == 1
    assert product((2, 3, 4)) == 24
    assert product((1, N)) == N
    assert product((0, N)) == DimOp("mul", 0, N)
    assert product((UpperBound(5), 3)) == UpperBound(15)
    assert product((N, 2, M)) == DimOp("mul", DimOp("mul", N, 2), M)
    with pytest.raises(InvalidArgument):
        product((2**40, 2**40))


def test_expressions_stop_growing_before_they_explode() -> None:
    """A chain of Concatenate(x, x) doubles the expression at each step."""
    expr: Extent = N
    for _ in range(7):
        expr = combine("add", expr, expr)
    doubled = combine("add", expr, expr)
    with pytest.raises(InvalidArgument) as caught:
        combine("add", doubled, doubled)
    assert caught.value.argument == "ExpressionTooLarge"
    assert isinstance(doubled, DimOp)
    assert doubled.operations == MAX_OPERATIONS - 1


def test_text() -> None:
    assert str(DimOp("max", N, DimOp("add", 2, M))) == "max(in0.0, add(2, in1.0))"
    assert str(UpperBound(N)) == "<=in0.0"
    assert str(Unknown(3)) == "?3"


def test_extents_do_arithmetic_with_integers_and_each_other() -> None:
    n, m = InputDim(0, 0), InputDim(1, 2)
    assert n + 1 == DimOp("add", n, 1)
    assert 1 + n == DimOp("add", 1, n)
    assert 8 - n == DimOp("sub", 8, n)
    assert n * m // 2 == DimOp("floordiv", DimOp("mul", n, m), 2)
    assert 7 // n == DimOp("floordiv", 7, n)
    assert UpperBound(n) * 2 == UpperBound(DimOp("mul", n, 2))
    assert UpperBound(4) + 1 == UpperBound(5)
    assert n - UpperBound(2) == Unknown(DimOp("sub", n, 2))
    for wrong in (1.5, "n", None):
        with pytest.raises(TypeError):
            n + wrong  # type: ignore[operator]


@pytest.mark.parametrize(("kind", "bound"), [("sub", 7), ("floordiv", 0)])
def test_a_bound_that_makes_no_sense_is_no_error(kind: DimKind, bound: int) -> None:
    """The extent itself may be smaller, or larger (SEMANTICS 3)."""
    assert not is_exact(combine(kind, 5, UpperBound(bound)))
    with pytest.raises(InvalidArgument):
        combine(kind, 5, bound)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: DimOp("pow", 2, N), "'pow' is none of add, sub"),  # type: ignore[arg-type]
        (lambda: DimOp("add", 2.0, N), "2.0 is neither an int of 64 bits nor a dim expression"),  # type: ignore[arg-type]
        (lambda: DimOp("add", N, UpperBound(N)), "neither"),  # type: ignore[arg-type]
        (lambda: DimOp("min", USIZE_MAX + 1, N), "neither"),
        (lambda: DimOp("min", N, -(2**63) - 1), "neither"),
        (lambda: DimOp("min", N, True), "neither"),
        (lambda: InputDim(2**63, 0), "two ints of 64 bits"),
        (lambda: InputDim(0, "n"), "two ints of 64 bits"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_expression_is_refused_where_it_is_made(made: Callable[[], DimExpr], message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"DimExpr: .*{message}"):
        made()
