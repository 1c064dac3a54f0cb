"""The pipeline as a whole, and the law that every pass obeys: same values, same metadata, still a valid program."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.compiler import DECOMPOSED, DEFAULT_PIPELINE, PASSES, compile_std_to_exec, run_passes
from tenferro_ref.compiler.pipeline import pipeline
from tenferro_ref.dims import InputDim
from tenferro_ref.errors import ShapeMismatch, UsageError
from tenferro_ref.extensions import Family, register
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Array, same_bits
from tests.build import integers, interpret, one_dot


@st.composite
def dot_programs(draw: st.DrawFn) -> tuple[GraphProgram, list[Array]]:
    """Chains of dots with any dim lists, operands and results transposed and negated at will, some extents symbolic."""
    b = GraphBuilder()
    arrays: list[Array] = []

    def operand(extents: list[int]) -> Value:
        symbolic = [draw(st.booleans()) and f"d{len(arrays)}_{i}" for i in range(len(extents))]
        perm = draw(st.permutations(range(len(extents))))
        arrays.append(integers(extents, len(arrays)).transpose(perm))
        value = b.input("F64", [symbolic[p] or extents[p] for p in perm])
        return (
            value.transpose(np.argsort(perm).tolist()) if draw(st.booleans()) or list(perm) != sorted(perm) else value
        )

    def extents(most: int) -> list[int]:
        return draw(st.lists(st.sampled_from((0, 1, 2, 2, 3)), max_size=most))

    value, shape = None, extents(4)
    value = operand(shape)
    outputs = [value]
    for _ in range(draw(st.integers(1, 2))):
        axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
        contracting = axes[: draw(st.integers(0, len(axes)))]
        batch = axes[len(contracting) :]
        free = extents(2)
        order = draw(st.permutations(range(len(axes) + len(free))))
        rhs_extents = [shape[a] for a in axes] + free
        rhs = operand([rhs_extents[o] for o in order])
        place = [order.index(i) for i in range(len(axes))]
        op = ops.DotGeneral(
            tuple(contracting), tuple(place[: len(contracting)]), tuple(batch), tuple(place[len(contracting) :])
        )
        value = b.apply(op, value, rhs)
        shape = (
            [e for a, e in enumerate(shape) if a not in axes]
            + [rhs_extents[o] for o in order if o >= len(axes)]
            + [shape[a] for a in batch]
        )
        outputs.append(value)
        for move in draw(st.lists(st.sampled_from(["transpose", "same transpose", "same reshape"]), max_size=3)):
            perm = draw(st.permutations(range(len(shape)))) if move == "transpose" else range(len(shape))
            same_axes = ops.Reshape(tuple(InputDim(0, axis) for axis in perm))
            value = b.apply(same_axes if move == "same reshape" else ops.Transpose(tuple(perm)), value)
            shape = [shape[p] for p in perm]
            outputs += [value] * draw(st.integers(0, 1))
        if len(shape) > 5:
            break
    return b.build(*draw(st.lists(st.sampled_from(outputs), max_size=2)), value), arrays


@settings(max_examples=150, deadline=None)
@given(dot_programs(), st.permutations(list(PASSES)), st.integers(1, len(PASSES)))
def test_any_passes_in_any_order_keep_values_and_metadata(
    case: tuple[GraphProgram, list[Array]], order: list[str], count: int
) -> None:
    graph, inputs = case
    program = to_exec(graph)
    expected = interpret(graph, inputs)
    for result in run_passes(program, order[:count], verify=True):
        for got, want in zip(interpret(result.program, inputs), expected, strict=True):
            np.testing.assert_array_equal(got, want)
        kept = result.program.slot_types
        assert all(kept[s] == t for s, t in program.slot_types.items() if s in kept)
        # but for the layout simplifier, which may let an output be what was copied to it (SEMANTICS 4.5)
        assert result.program.output_slots == program.output_slots or not {
            "AlgebraicLayoutSimplifier",
            "ConjSinking",
        }.isdisjoint(order[:count])
        assert result.program.n_slots >= program.n_slots


@settings(max_examples=50, deadline=None)
@given(dot_programs(), st.permutations(list(PASSES)), st.integers(0, len(PASSES)))
def test_passes_that_do_not_reassociate_keep_bits(
    case: tuple[GraphProgram, list[Array]], order: list[str], count: int
) -> None:
    """On the executor, with values whose sums round: each pass alone, left out, or in any order."""
    graph, inputs = case
    rng = np.random.default_rng(0)
    inputs = [x * rng.standard_normal(x.shape) for x in inputs]
    executor = GraphExecutor(checking=True)
    results = run_passes(to_exec(graph), order[:count], verify=True)
    program = results[-1].program if results else to_exec(graph)
    for got, want in zip(
        executor.eval_exec_ir(program, inputs), executor.eval_exec_ir(to_exec(graph), inputs), strict=True
    ):
        if any(result.inexact for result in results):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-11)
        else:
            assert same_bits(got, want)


def test_default_pipeline_is_the_seeds_order() -> None:
    front = ("ConjSinking", "DotDimensionSorter")
    assert pipeline(algebraic_layout_simplifier=False) == (
        *front, "TransposeFolding", "DotConjFolding", "DeadCodeElimination"
    )  # fmt: skip
    simplify = "AlgebraicLayoutSimplifier"
    assert pipeline() == DEFAULT_PIPELINE
    assert (*front, simplify, "TransposeFolding", "DotConjFolding", "DeadCodeElimination") == DEFAULT_PIPELINE
    assert (*DEFAULT_PIPELINE[:-1], "DotDecomposer", simplify, "DeadCodeElimination") == DECOMPOSED
    assert PASSES.keys() == set(DECOMPOSED)
    graph = one_dot((2, 3, 4), (4, 3), (2, 1), (0, 1), (), ())
    assert compile_std_to_exec(graph) == compile_std_to_exec(graph, DEFAULT_PIPELINE, verify=True)
    assert compile_std_to_exec(graph, ()) == to_exec(graph)


def test_unknown_pass() -> None:
    graph = one_dot((2, 3), (3, 4), (1,), (0,), (), ())
    with pytest.raises(UsageError, match=r"unknown pass 'Inliner'; known passes: ConjSinking, DotDimensionSorter"):
        compile_std_to_exec(graph, ["DotDecomposer", "Inliner"])


def test_dead_code_goes_and_slots_stay() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2,)), b.input("F64", (2,))
    dead = x * y
    deader = dead + x  # reads what only it reads
    alive = -x
    (result,) = run_passes(to_exec(b.build(alive, alive)), ["DeadCodeElimination"], verify=True)
    assert [i.output_slots for i in result.program.instructions] == [(alive.slot,)]
    assert result.program.n_slots == 5
    assert result.changes == (
        f"slot {dead.slot}: Multiply removed, nothing reads it",
        f"slot {deader.slot}: Add removed, nothing reads it",
    )
    assert not result.program.instructions[0].last_use[0] or x.slot not in result.program.output_slots


def test_an_instruction_stays_if_any_of_its_outputs_is_live() -> None:
    register(Family("tests.pair.v1", ("Twice",), lambda op, inputs: inputs + inputs))
    b = GraphBuilder()
    x = b.input("F64", (2,))
    _unused, used = b.apply_many(ops.Extension.of("tests.pair.v1", "Twice", {}), x)
    b.apply_many(ops.Extension.of("tests.pair.v1", "Twice", {}), x)
    (result,) = run_passes(to_exec(b.build(used)), ["DeadCodeElimination"], verify=True)
    assert [i.output_slots for i in result.program.instructions] == [(1, 2)]
    assert result.program.instructions[0].last_use == (True,)


def test_last_use_follows_the_removal_of_a_reader() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2,))
    alive = -x
    _dead = x + x
    graph = b.build(alive)
    assert compile_std_to_exec(graph, ()).instructions[0].last_use == (False,)
    assert compile_std_to_exec(graph).instructions[0].last_use == (True,)


def test_a_slot_read_twice_is_flagged_twice_and_outputs_never() -> None:
    b = GraphBuilder()
    x = b.input("F64", (2,))
    square = x * x
    program = compile_std_to_exec(b.build(square, square + square))
    assert [i.last_use for i in program.instructions] == [(True, True), (False, False)]


def test_malformed_graphs_are_refused() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (2, 3))
    graph = b.build(x)
    bad = Instruction(ops.DotGeneral((1,), (0,), (), ()), (x.slot, y.slot), (2,))
    with pytest.raises(ShapeMismatch):
        compile_std_to_exec(GraphProgram((bad,), graph.input_slots, graph.input_types, (2,), 3))


def test_pass_orders_agree() -> None:
    """Many orders of the passes on one program that each of them changes."""
    b = GraphBuilder()
    x, y = b.input("C64", (2, 3, 4, 5)), b.input("C64", (4, 6, 3))
    twice = b.apply(ops.Conj(), b.apply(ops.Conj(), y))
    conj = b.apply(ops.Conj(), x.transpose((1, 2, 0, 3)))
    dot = b.apply(ops.DotGeneral((1, 0), (0, 1), (), ()), conj, twice.transpose((0, 2, 1)))
    turned = b.apply(ops.DotGeneral((0,), (0,), (), ()), x.transpose((1, 0, 2, 3)), b.input("C64", (3,)))
    _ = -x
    graph = b.build(dot.transpose((2, 0, 1)).transpose((2, 0, 1)), turned)
    inputs = [
        1j * integers(t.static_shape, i) + integers(t.static_shape, i + 9) for i, t in enumerate(graph.input_types)
    ]
    assert [name for name in PASSES if not run_passes(to_exec(graph), [name])[0].changes] == []
    executor, orders = GraphExecutor(), random.Random(0)
    expected = executor.eval_exec_ir(to_exec(graph), inputs)
    for _ in range(60):
        program = compile_std_to_exec(graph, orders.sample(list(PASSES), len(PASSES)), verify=True)
        for got, want in zip(executor.eval_exec_ir(program, inputs), expected, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("passes", [5, [5], [["a"]], "DotDecomposer"])
def test_what_is_no_list_of_passes(passes: Any) -> None:
    b = GraphBuilder()
    with pytest.raises(UsageError, match="pass"):
        compile_std_to_exec(b.build(-b.input("F64", (2,))), passes)
    with pytest.raises(UsageError, match="NoneType where a traced program"):
        compile_std_to_exec(None)  # type: ignore[arg-type]
