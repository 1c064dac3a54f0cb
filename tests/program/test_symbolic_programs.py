"""Symbolic programs: compiled once, run at many sizes, and nothing claims to know an extent that it does not know.

Each program is a function of its extents, so that the same text gives the symbolic program and the concrete one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import frontend as tn
from tenferro_ref.compiler import DEFAULT_PIPELINE, PASSES, compile_std_to_exec
from tenferro_ref.dims import DimOp, InputDim, UpperBound, evaluate, expr_of, inputs_of, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.errors import NonStaticShape, ShapeMismatch, TenferroError
from tenferro_ref.ops import DotGeneral, Gather, Reshape, ShapeOf, TensorType
from tenferro_ref.program import (
    ExecProgram,
    GraphBuilder,
    GraphProgram,
    LoweringView,
    Value,
    dumps,
    loads,
    parse,
    print_program,
    to_exec,
)
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array

Size = int | str
Build = Callable[[GraphBuilder, Size, Size], Sequence[Value]]


@dataclass(frozen=True)
class Program:
    """How a program is written, and what it computes, in NumPy; `truncates` reads a size from its last input."""

    build: Build
    reference: Callable[..., Sequence[Any]]
    truncates: bool = False


def batched_dot(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x, y = b.input("F64", (n, 3, m)), b.input("F64", (n, m, 4))
    return [x @ y]


def two_free_axes(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """Merged free and contracting axes on both sides, batch in the middle."""
    x, y = b.input("F64", (n, 2, m, 3)), b.input("F64", (3, m, 2, n, 2))
    return [b.apply(DotGeneral((1, 3), (2, 0), (0,), (3,)), x, y), b.apply(DotGeneral((2,), (1,), (), ()), x, y)]


def unsorted_dot(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """Something to do for every pass: pairs out of order, a transpose that folds, dead code."""
    x, y = b.input("F64", (m, 2, n, 3)), b.input("F64", (m, 2, 4))
    _ = -x
    return [b.apply(DotGeneral((3, 1), (1, 0), (), ()), x.transpose(2, 1, 3, 0)[:, :, :, :].transpose(0, 3, 2, 1), y)]


def reshapes(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x, w = b.input("F64", (n, 3, m)), b.input("F64", (m, 2))
    rows, _, columns = x.shape
    flat = x.reshape(rows * 3, columns) @ w
    return [flat.reshape(rows, 3, 2), flat.reshape(-1), x.reshape(columns, -1)]


def providers(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x, y = b.input("F64", (n,)), b.input("F64", (m, 1))
    grid = x * y + 1
    return [grid, x.broadcast_to((2 * y.shape[0] + 1, *x.shape)), (grid[:, None] - x[:, None]).sum(0)]


def attention(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    q, k, v = b.input("F64", (n, 4)), b.input("F64", (m, 4)), b.input("F64", (m, 3))
    scores = tn.exp(tn.minimum(q @ k.T, 3.0))
    return [scores / scores.sum(1, keepdims=True) @ v]


def windows(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x = b.input("F64", (n, m))
    return [x[1:] - x[:-1], x[:, :3], x[-2:, ::-1], tn.pad(x, ((1, 2), (0, 3)))]


def moments(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """Extents as numbers (ShapeOf)."""
    x = b.input("F64", (n, m))
    centred = x - tn.mean(x, 0)
    return [tn.mean(centred * centred, 0), tn.mean(x)]


def diagonals(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x, y = b.input("F64", (n, m)), b.input("F64", (n,))
    return [tn.diagonal(x), tn.diag(y), tn.tril(x, -1), tn.concatenate([x, x, x * y[:, None]], 1)]


def rows(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """The program's integers are the places to take from."""
    x, i = b.input("F64", (m, n)), b.input("I64", (n,))
    return [tn.take(x, i, 1), tn.scatter_add(x, i, 1.0, 1)]


def truncated(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    x, size = b.input("F64", (n, m)), b.input("I64")
    short = tn.truncate(x, size)
    back = tn.pad_to_match(short * 2, x)
    return [short, back, back + x, tn.concatenate([short, x]), tn.flip(short, 0) - short]


def truncated_dot(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """The decomposer merges a bounded axis with an exact one, and gives it back."""
    x, y, size = b.input("F64", (n, 3, m)), b.input("F64", (m, 2)), b.input("I64")
    short = tn.truncate(x, size)
    product = tn.tensordot(short, y, 1)
    batched = b.apply(DotGeneral((1,), (1,), (0,), (0,)), short, short)
    return [product, tn.pad_to_match(product, x[:, :, :2]), batched]


def bounded_shapes(b: GraphBuilder, n: Size, m: Size) -> Sequence[Value]:
    """Reshapes, broadcasts and windows of an extent that only the running program knows."""
    x, size = b.input("F64", (m, n)), b.input("I64")
    short = tn.truncate(x, size, 1)
    flat = short.reshape(-1)
    row = b.constant(3.0).broadcast_to(short.shape[1:], like=[short])
    return [flat, row + short, short[:, 1:], tn.pad(short, ((0, 0), (1, 1))), tn.shape_of(short, 1)]


def cut(x: Array, size: Any, axis: int = 0) -> Array:
    return x[(slice(None),) * axis + (slice(int(np.clip(size, 0, x.shape[axis]))),)]


def padded(x: Array, extent: int) -> Array:
    return np.concatenate([x, np.zeros((extent - len(x), *x.shape[1:]))])


def softmax_product(q: Array, k: Array, v: Array) -> list[Array]:
    scores = np.exp(np.minimum(q @ k.T, 3))
    return [scores / scores.sum(1, keepdims=True) @ v]


def after_truncation(x: Array, size: Array) -> list[Array]:
    short = cut(x, size)
    back = padded(short * 2, len(x))
    return [short, back, back + x, np.concatenate([short, x]), short[::-1] - short]


def dot_after_truncation(x: Array, y: Array, size: Array) -> list[Array]:
    short = cut(x, size)
    return [short @ y, padded(short @ y, len(x)), np.einsum("nim,nik->mkn", short, short)]


PROGRAMS: dict[str, Program] = {
    "batched dot": Program(batched_dot, lambda x, y: [x @ y]),
    "two free axes": Program(
        two_free_axes, lambda x, y: [np.einsum("niab,bcink->ackn", x, y), np.tensordot(x, y, (2, 1))]
    ),
    "unsorted dot": Program(unsorted_dot, lambda x, y: [np.einsum("minj,mik->njk", x, y)]),
    "reshapes": Program(
        reshapes,
        lambda x, w: [x @ w, (x @ w).ravel("F"), x.reshape((x.shape[2], -1 if x.size else 3 * x.shape[0]), order="F")],
    ),
    "providers": Program(
        providers,
        lambda x, y: [x * y + 1, np.broadcast_to(x, (2 * len(y) + 1, len(x))), ((x * y + 1)[:, None] - x[:, None]).sum(0)],
    ),
    "attention": Program(attention, softmax_product),
    "windows": Program(windows, lambda x: [x[1:] - x[:-1], x[:, :3], x[-2:, ::-1], np.pad(x, ((1, 2), (0, 3)))]),
    "moments": Program(moments, lambda x: [x.var(0), x.mean()]),
    "diagonals": Program(
        diagonals,
        lambda x, y: [np.diagonal(x), np.diag(y), np.tril(x, -1), np.concatenate([x, x, x * y[:, None]], 1)],
    ),
    "rows": Program(rows, lambda x, i: [x[:, i], x + np.bincount(i, minlength=x.shape[1])]),
    "truncated": Program(truncated, after_truncation, truncates=True),
    "truncated dot": Program(truncated_dot, dot_after_truncation, truncates=True),
    "bounded shapes": Program(
        bounded_shapes,
        lambda x, size: [
            (s := cut(x, size, 1)).ravel("F"), s + 3, s[:, 1:], np.pad(s, ((0, 0), (1, 1))), np.float64(s.shape[1])
        ],
        truncates=True,
    ),
}  # fmt: skip


@lru_cache
def symbolic(name: str) -> GraphProgram:
    b = GraphBuilder(name)
    return b.build(*PROGRAMS[name].build(b, "n", "m"))


@lru_cache
def compiled(name: str, passes: tuple[str, ...] = DEFAULT_PIPELINE) -> ExecProgram:
    """One program for all sizes."""
    return compile_std_to_exec(symbolic(name), passes, verify=True)


def inputs_of_size(name: str, n: int, m: int, size: int, seed: int) -> list[Array]:
    """Small integers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for type_ in symbolic(name).input_types:
        names = dict(symbolic(name).symbols)
        shape = tuple(e if isinstance(e, int) else {"n": n, "m": m}[names[e]] for e in type_.shape)  # type: ignore[index]
        if type_.dtype.is_float:
            arrays.append(rng.integers(-3, 4, shape).astype(np.float64))
        elif shape:
            arrays.append(rng.integers(0, max(n, 1), shape))
        else:
            arrays.append(np.array(size))
    return arrays


def outcome(run: Callable[[], list[Array]]) -> tuple[Any, ...]:
    """Bits, or kind and op of the error; Gather and its form for symbolic sizes are one."""
    try:
        return tuple((a.dtype, a.shape, a.tobytes("F")) for a in run())
    except TenferroError as error:
        return error.kind, error.facts().get("op", "").removesuffix("DynamicSliceSizes")


@pytest.mark.parametrize(
    ("declared", "shapes", "words"),
    [
        ([("n", "m"), ("m",)], [(3, 4), (3,)], "input 1, .*shapes ('m',) and (3,) do not fit together: m is 4 by axis 1 of input 0"),
        ([(2, "n", "n")], [(2, 3, 5)], "shapes (2, 'n', 'n') and (2, 3, 5) do not fit together: n is 3 by axis 1 of input 0"),
        ([("n",), ("n",)], [(3,), (3, 1)], "shapes ('n',) and (3, 1) do not fit together"),
        ([("n",), (2, "n")], [(3,), (4, 5)], "shapes (2, 'n') and (4, 5) do not fit together"),
        ([("n",), (DimOp("mul", InputDim(0, 0), 2),)], [(3,), (5,)], "do not fit together"),
    ],
)  # fmt: skip
def test_a_symbol_that_does_not_fit_is_said_with_where_it_has_its_value(
    declared: list[Any], shapes: list[tuple[int, ...]], words: str
) -> None:
    b = GraphBuilder()
    program = b.build(*(b.input("F64", shape) for shape in declared))
    with pytest.raises(ShapeMismatch, match=re.escape(words).replace(r"\.\*", ".*") + "$"):
        program.check_inputs([TensorType(DType.F64, shape) for shape in shapes])


SIZES = [(n, m, (7 * n + m) % 9 - 1) for n, m in np.random.default_rng(3).integers(0, 8, (17, 2)).tolist()] + [
    (1, 1, 1),
    (40, 33, 17),
    (2, 3, 2**40),
]
EXECUTOR = GraphExecutor(checking=True, fusion_threshold=1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_once_and_run_at_twenty_sizes(name: str) -> None:
    """As NumPy has it, and bit for bit as the program written for that size alone, errors included."""
    program = compiled(name)
    assert len(SIZES) == 20
    passed = 0
    for number, (n, m, size) in enumerate(SIZES):
        arrays = inputs_of_size(name, n, m, size, number)

        def concrete() -> list[Array]:
            b = GraphBuilder()
            graph = b.build(*PROGRAMS[name].build(b, n, m))  # noqa: B023 - called in this round
            return GraphExecutor().eval_exec_ir(compile_std_to_exec(graph), arrays)  # noqa: B023

        got = outcome(lambda: EXECUTOR.eval_exec_ir(program, arrays))  # noqa: B023
        assert got == outcome(lambda: EXECUTOR.eval_unsegmented(program, arrays))  # noqa: B023
        assert got == outcome(concrete)
        if got[0] == "InvalidArgument":  # a reduction over nothing, an element of nothing
            assert 0 in (n, m)
            continue
        passed += 1
        for value, want in zip(EXECUTOR.eval_exec_ir(program, arrays), PROGRAMS[name].reference(*arrays), strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-12)
    assert passed >= 12


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=10)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(-1, 7), st.permutations(list(PASSES)), st.integers(0, 4))
def test_no_choice_or_order_of_passes_changes_a_bit(
    name: str, n: int, m: int, size: int, order: list[str], count: int
) -> None:
    arrays = inputs_of_size(name, n, m, size, 0)
    expected = outcome(lambda: EXECUTOR.eval_exec_ir(compiled(name, ()), arrays))
    assert outcome(lambda: EXECUTOR.eval_exec_ir(compiled(name, tuple(order[:count])), arrays)) == expected


def with_all_slots(program: ExecProgram) -> ExecProgram:
    slots = tuple(s for ins in program.instructions for s in ins.output_slots)
    return to_exec(replace(program.to_graph(), output_slots=slots))


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(-1, 7), st.permutations(list(PASSES)))
def test_what_is_said_of_an_extent_is_true_of_every_run(name: str, n: int, m: int, size: int, order: list[str]) -> None:
    """An exact extent is the extent; a bound is not exceeded. Before the passes, between them and after them."""
    arrays = inputs_of_size(name, n, m, size, 1)
    view_shapes = tuple(a.shape for a in arrays)
    for count in range(len(order) + 1):
        program = with_all_slots(compiled(name, tuple(order[:count])))
        view = LoweringView.of(program, view_shapes)
        for slot, value in zip(program.output_slots, EXECUTOR.eval_exec_ir(program, arrays), strict=True):
            for axis, (extent, real) in enumerate(zip(program.slot_types[slot].shape, value.shape, strict=True)):
                where = (program.slot_types[slot], axis, value.shape)
                if is_exact(extent):
                    assert evaluate(expr_of(extent), view_shapes) == real, where
                elif isinstance(extent, UpperBound):
                    assert evaluate(expr_of(extent), view_shapes) >= real, where
            if all(map(is_exact, program.slot_types[slot].shape)):
                assert view.static_type(slot).shape == value.shape
            else:
                with pytest.raises(NonStaticShape):
                    view.static_type(slot)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_pass_knows_more_of_a_slot_than_was_known_before(name: str) -> None:
    """After each pass once in any order; what the orders of the same passes have in common is made once."""
    before = compiled(name, ()).slot_types
    reached = {frozenset[str](): [compiled(name, ())]}
    for _ in PASSES:
        longer: dict[frozenset[str], list[ExecProgram]] = {}
        for done, programs in reached.items():
            for pass_ in PASSES.keys() - done:
                known = longer.setdefault(done | {pass_}, [])
                made = [PASSES[pass_](program).program for program in programs]
                known += [program for i, program in enumerate(made) if program not in known + made[:i]]
        for program in (p for programs in longer.values() for p in programs):
            for slot in before.keys() & program.slot_types.keys():
                assert [is_exact(e) for e in program.slot_types[slot].shape] == [
                    is_exact(e) for e in before[slot].shape
                ]
                assert program.slot_types[slot].dtype is before[slot].dtype
        reached = longer


@pytest.mark.parametrize("name", [name for name, p in PROGRAMS.items() if p.truncates])
def test_a_truncated_axis_is_bounded_all_the_way_down(name: str) -> None:
    """Some output of each such program still carries the bound, after every pass."""
    for passes in ((), DEFAULT_PIPELINE):
        assert any(not is_exact(e) for t in compiled(name, passes).output_types for e in t.shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_stablehlo_is_written_for_a_size_or_refused_for_a_bound(name: str) -> None:
    for n, m in ((4, 3), (1, 1), (2, 5)):
        view = LoweringView.of(symbolic(name), tuple(a.shape for a in inputs_of_size(name, n, m, 2, 0)))
        if PROGRAMS[name].truncates:
            with pytest.raises(NonStaticShape) as caught:
                lower_to_stablehlo(view)
            assert caught.value.op == "DynamicTruncate"
        else:
            assert "?" not in lower_to_stablehlo(view)


@pytest.mark.parametrize("name", PROGRAMS)
def test_symbolic_programs_survive_both_forms(name: str) -> None:
    for program in (symbolic(name), compiled(name, ()), compiled(name)):
        assert loads(dumps(program)) == program
        assert parse(print_program(program)) == program


def test_the_programs_have_what_symbolic_programs_are_made_of() -> None:
    ops = [i.op for name in PROGRAMS for i in compiled(name).instructions]
    names = {op.name for op in ops}
    assert {"ShapeOf", "DynamicTruncate", "PadToMatch", "GatherDynamicSliceSizes", "BroadcastInDim"} <= names
    assert any(isinstance(op, Reshape) and any(inputs_of(e) - {0} for e in op.shape) for op in ops)
    assert not any(isinstance(op, Gather) for op in ops)
    assert any(isinstance(op, ShapeOf) for op in ops)
