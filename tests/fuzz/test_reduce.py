"""The reducer, against failures whose minimum is known."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from fuzz.reduce import Reduction, reduce_case, size
from fuzz.reduce.draft import Draft, concrete_types
from fuzz.reduce.links import FOLLOW, LINKS
from fuzz.reduce.rank import WITHOUT
from fuzz.reduce.weights import sources, weight, with_sources
from oracle.case import Case
from tenferro_ref.dims import InputDim
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import (
    OPS,
    Abs,
    Add,
    BroadcastInDim,
    Concatenate,
    Constant,
    Convert,
    DotGeneral,
    DynamicTruncate,
    Exp,
    Gather,
    Maximum,
    Multiply,
    Negate,
    Op,
    Pad,
    Policy,
    ReduceSum,
    Reshape,
    Reverse,
    Slice,
    TensorType,
    Transpose,
)
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value, dumps, loads
from tenferro_ref.tensor import Array, same_bits
from tests.program.samples import every_op, symbolic

# --- a small interpreter, and random programs for it ------------------------------------------------------------------

Kernel = Callable[..., Array]


def _broadcast(op: BroadcastInDim, x: Array, *_: Array) -> Array:
    inner = [1] * len(op.shape)
    for axis, dim in enumerate(op.dims):
        inner[dim] = x.shape[axis]
    return np.broadcast_to(x.transpose(np.argsort(op.dims)).reshape(inner), [int(e) for e in op.shape])


def _dot(op: DotGeneral, x: Array, y: Array) -> Array:
    return np.tensordot(x, y, (op.lhs_contracting_dims, op.rhs_contracting_dims))


KERNELS: dict[type[Op], Kernel] = {
    Constant: lambda op: np.asarray(op.value),
    Add: lambda op, x, y: x + y,
    Multiply: lambda op, x, y: x * y,
    Maximum: lambda op, x, y: np.maximum(x, y),
    Negate: lambda op, x: -x,
    Abs: lambda op, x: np.abs(x),
    Exp: lambda op, x: np.exp(x),
    Convert: lambda op, x: x.astype(op.to.numpy),
    Transpose: lambda op, x: x.transpose(op.perm),
    Reshape: lambda op, x, *_: x.reshape([int(e) for e in op.shape], order="F"),
    BroadcastInDim: _broadcast,
    ReduceSum: lambda op, x: x.sum(axis=op.axes),
    DotGeneral: _dot,
    Concatenate: lambda op, *xs: np.concatenate(xs, op.axis),
    Reverse: lambda op, x: np.flip(x, op.axes),
    Slice: lambda op, x: x[tuple(map(slice, op.starts, op.limits, op.strides))],
    Pad: lambda op, x: np.pad(x, list(zip(op.edge_padding_low, op.edge_padding_high, strict=True))),
}


def run(case: Case, broken: Mapping[type[Op], Kernel] | None = None) -> dict[int, Array]:
    """Every slot's value; `broken` replaces kernels."""
    kernels = {**KERNELS, **(broken or {})}
    values: dict[int, Array] = dict(zip(case.program.input_slots, case.inputs, strict=True))
    with np.errstate(all="ignore"):
        for ins in case.program.instructions:
            (slot,) = ins.output_slots
            values[slot] = np.asarray(kernels[type(ins.op)](ins.op, *(values[s] for s in ins.input_slots)))
    return values


def outputs(case: Case, broken: Mapping[type[Op], Kernel] | None = None) -> list[Array]:
    values = run(case, broken)
    return [np.asfortranarray(values[s]) for s in case.program.output_slots]


def wrong_with(broken: Mapping[type[Op], Kernel]) -> Callable[[Case], bool]:
    """The failure "an output has other bits than it should"."""
    return lambda case: any(not same_bits(a, b) for a, b in zip(outputs(case), outputs(case, broken), strict=True))


def random_case(seed: int, instructions: int = 30) -> Case:
    """A valid program of the ops above, with hostile values among its inputs."""
    rng = random.Random(seed)
    b = GraphBuilder("random")
    pool: list[Value] = [b.input("F64", [rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(0, 3))]) for _ in range(3)]
    makers: Sequence[Callable[[Value], Value]] = (
        lambda x: b.apply(rng.choice((Negate(), Abs(), Exp())), x),
        lambda x: b.apply(rng.choice((Add(), Multiply(), Maximum())), x, rng.choice([y for y in pool if y.shape == x.shape])),
        lambda x: x.transpose(rng.sample(range(x.type.rank), x.type.rank)),
        lambda x: x.reshape(*rng.sample([int(e) for e in x.shape], x.type.rank)),
        lambda x: x.sum(rng.sample(range(x.type.rank), min(1, x.type.rank))),
        lambda x: b.apply(DotGeneral((0,), (0,), (), ()), x, rng.choice([y for y in pool if y.shape[:1] == x.shape[:1]]))
        if x.type.rank
        else b.constant(rng.choice((0.5, 1.25))),
        lambda x: b.apply(Reverse((0,)), x) if x.type.rank else b.input("F64", ()),
        lambda x: b.apply(BroadcastInDim((3, *x.shape), tuple(range(1, x.type.rank + 1))), x),
        lambda x: b.apply(Slice((0,) * x.type.rank, tuple(max(1, int(e) - 1) for e in x.shape), (1,) * x.type.rank), x),
    )  # fmt: skip
    for _ in range(instructions):
        small = [x for x in pool if x.type.rank <= 4 and np.prod([int(e) for e in x.shape]) <= 200]
        pool.append(rng.choice(makers)(rng.choice(small[-8:])))
    program = b.build(*pool[-3:], pool[-1])
    draw = np.random.default_rng(seed)
    arrays = [np.asarray(draw.normal(size=t.shape) * 3.0) for t in program.input_types]
    for array in arrays:
        flat = array.reshape(-1)
        flat[draw.random(flat.size) < 0.1] = draw.choice([np.nan, np.inf, -0.0, 5e-324])
    return Case.of(program, arrays)


def ops_of(case: Case) -> list[str]:
    return [ins.op.name for ins in case.program.instructions]


def has(*names: str) -> Callable[[Case], bool]:
    """The failure "an instruction `names[0]` feeds `names[1]`, which feeds ..."."""

    def fails(case: Case) -> bool:
        made: dict[int, Instruction] = {}
        for ins in case.program.instructions:
            made.update(dict.fromkeys(ins.output_slots, ins))

        def chain(ins: Instruction | None, wanted: tuple[str, ...]) -> bool:
            return ins is not None and ins.op.name == wanted[-1] and (
                len(wanted) == 1 or any(chain(made.get(s), wanted[:-1]) for s in ins.input_slots)
            )  # fmt: skip

        return any(chain(ins, names) for ins in case.program.instructions)

    return fails


def check_invariants(start: Case, reduction: Reduction, fails: Callable[[Case], bool]) -> None:
    sizes = [size(start), *(step.size for step in reduction.steps)]
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert sizes[-1] == size(reduction.case)
    assert fails(reduction.case)
    assert reduction.case.program == loads_back(reduction.case.program)


def loads_back(program: GraphProgram) -> GraphProgram:
    result = loads(dumps(program))
    assert isinstance(result, GraphProgram)
    return result


def first_failing(fails: Callable[[Case], bool], instructions: int = 30) -> Case:
    return next(case for seed in itertools.count() if fails(case := random_case(seed, instructions)))


# --- from thirty instructions to the minimum --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [("Transpose", "DotGeneral"), ("Reverse",), ("Exp", "Multiply"), ("Reshape", "Transpose"), ("ReduceSum", "Add")],
)
def test_a_chain_of_ops_is_all_that_remains(names: tuple[str, ...]) -> None:
    fails = has(*names)
    start = first_failing(fails)
    reduction = reduce_case(start, fails, evaluate=run)
    check_invariants(start, reduction, fails)
    case = reduction.case
    assert ops_of(case) == list(names)
    assert len(case.program.output_slots) == 1
    assert len(case.program.input_slots) == 1
    assert all(e in (0, 1) for t in concrete_types(case).values() for e in t.shape)
    assert all(not a.any() for a in case.inputs)
    assert case.program.name == ""
    assert reduction.reproduced
    assert reduction.complete


def _sum_without_last(op: ReduceSum, x: Array) -> Array:
    return np.delete(x, -1, op.axes[0]).sum(axis=op.axes) if op.axes else x


def test_a_reduction_that_skips_the_last_element_comes_down_to_one_instruction_and_one_element() -> None:
    fails = wrong_with({ReduceSum: _sum_without_last})
    for start in itertools.islice(filter(fails, map(random_case, itertools.count())), 4):
        reduction = reduce_case(start, fails, evaluate=run)
        check_invariants(start, reduction, fails)
        assert ops_of(reduction.case) == ["ReduceSum"]
        assert [a.tolist() for a in reduction.case.inputs] == [[1.0]]


def test_tests_are_spent_on_big_cuts_first() -> None:
    fails = wrong_with({ReduceSum: _sum_without_last})
    start = first_failing(fails)
    reduction = reduce_case(start, fails, evaluate=run, max_tests=25)
    assert len(reduction.case.program.instructions) == 1


def test_a_value_that_the_failure_needs_stays_and_the_rest_becomes_zero() -> None:
    """NaN at a Maximum operand, whatever made the NaN."""

    def fails(case: Case) -> bool:
        values = run(case)
        read = [values[s] for i in case.program.instructions if isinstance(i.op, Maximum) for s in i.input_slots]
        return any(bool(np.isnan(x).any()) for x in read)

    start = first_failing(fails)
    reduction = reduce_case(start, fails, evaluate=run)
    check_invariants(start, reduction, fails)
    assert ops_of(reduction.case) == ["Maximum"]
    assert len(reduction.case.inputs) == 1
    assert reduction.case.inputs[0].size == 1
    assert np.isnan(reduction.case.inputs[0]).all()


def test_one_hostile_element_of_many_is_found_by_bisection() -> None:
    b = GraphBuilder()
    x = b.input("F64", (40,))
    program = b.build(x + x.sum([0]))
    array = np.random.default_rng(0).normal(size=40)
    array[23] = 1e300

    def fails(case: Case) -> bool:  # needs 40 elements and one that is huge
        return case.inputs[0].shape == (40,) and bool((case.inputs[0] > 1e299).any())

    reduction = reduce_case(Case.of(program, [array]), fails, evaluate=run)
    kept = reduction.case.inputs[0]
    assert np.flatnonzero(kept).tolist() == [23]
    assert int(weight(kept).sum()) < int(weight(np.array([1e300]))[0])  # fewer bits as well
    assert reduction.tests < 120


def test_a_failure_that_needs_a_shape_keeps_it_and_shrinks_what_can() -> None:
    """A transposed matrix that is not square: [m, n] with m != n, and nothing smaller than that."""

    def broken(op: Transpose, x: Array) -> Array:
        return x.reshape(tuple(x.shape[p] for p in op.perm), order="C")

    fails = wrong_with({Transpose: broken})
    b = GraphBuilder()
    x, y = b.input("F64", (5, 7)), b.input("F64", (7, 5))
    program = b.build(b.apply(Add(), x.transpose((1, 0)), y).reshape(35))
    draw = np.random.default_rng(1)
    reduction = reduce_case(Case.of(program, [draw.normal(size=(5, 7)), draw.normal(size=(7, 5))]), fails, evaluate=run)
    check_invariants(Case.of(program, [draw.normal(size=(5, 7)), draw.normal(size=(7, 5))]), reduction, fails)
    assert ops_of(reduction.case) == ["Transpose"]
    assert reduction.case.inputs[0].shape == (2, 2)
    assert sorted(reduction.case.inputs[0].ravel().tolist()) == [0.0, 0.0, 0.0, 1.0]


def test_extents_shrink_together_through_reshape_pad_concatenate_and_broadcast() -> None:
    b = GraphBuilder()
    x, y, s = b.input("F64", (6, 4)), b.input("F64", (24,)), b.input("F64", (4,))
    flat = b.apply(Add(), x.reshape(24), y)
    padded = b.apply(Pad((2,), (1,), (0,)), flat)
    joined = b.apply(Concatenate(0), padded, padded)
    wide = b.apply(BroadcastInDim((6, 4), (1,)), s)
    program = b.build(joined, b.apply(Multiply(), wide, x))
    names = [i.op.name for i in program.instructions]
    start = Case.of(program, [np.ones((6, 4)), np.ones(24), np.ones(4)])

    def fails(case: Case) -> bool:
        return ops_of(case) == names

    reduction = reduce_case(start, fails, evaluate=run)
    check_invariants(start, reduction, fails)
    types = concrete_types(reduction.case)
    assert max(int(e) for t in types.values() for e in t.shape) <= 2  # two pieces joined
    assert size(reduction.case).elements <= 10
    outputs(reduction.case)


@pytest.mark.parametrize("tail", [False, True])
def test_the_failing_end_of_an_axis_is_kept(tail: bool) -> None:
    b = GraphBuilder()
    program = b.build(-b.input("F64", (32,)))
    array = np.arange(1.0, 33.0)
    needed = 31.0 if tail else 3.0
    reduction = reduce_case(Case.of(program, [array]), lambda c: needed in c.inputs[0], evaluate=run)
    assert reduction.case.inputs[0].size == 1


# --- outputs, inputs, constants, details ------------------------------------------------------------------------------


def test_repeated_and_aliasing_outputs_stay_only_where_needed() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2,)), b.input("F64", (2,))
    z = -x
    program = b.build(x, z, z, y)
    start = Case.of(program, [np.ones(2), np.ones(2)])

    def repeated(case: Case) -> bool:
        slots = case.program.output_slots
        return len(set(slots)) < len(slots)

    case = reduce_case(start, repeated, evaluate=run).case
    assert len(case.program.output_slots) == 2
    assert len(case.program.instructions) <= 1

    def aliased(case: Case) -> bool:
        return any(s in case.program.input_slots for s in case.program.output_slots) and bool(case.program.instructions)

    case = reduce_case(start, aliased, evaluate=run).case
    assert ops_of(case) == ["Negate"]
    assert len(case.program.output_slots) == 2
    assert len(case.program.input_slots) == 1


def test_dead_code_stays_where_the_failure_needs_it() -> None:
    b = GraphBuilder()
    x = b.input("F64", (3,))
    b.input("F64", ())
    b.apply(Exp(), x)
    b.apply(Abs(), x)
    start = Case.of(b.build(-x), [np.ones(3), np.asarray(1.0)])
    reduction = reduce_case(start, has("Exp"), evaluate=run)
    check_invariants(start, reduction, has("Exp"))
    assert ops_of(reduction.case) == ["Exp"]
    assert len(reduction.case.program.input_slots) == 1
    assert reduction.case.program.output_slots == reduction.case.program.instructions[0].output_slots

    def dead_exp(case: Case) -> bool:
        read = {s for i in case.program.instructions for s in i.input_slots} | set(case.program.output_slots)
        return any(i.op.name == "Exp" and not read.intersection(i.output_slots) for i in case.program.instructions)

    case = reduce_case(start, dead_exp, evaluate=run).case
    assert ops_of(case) == ["Exp"]
    assert len(case.program.input_slots) == 1


def test_two_inputs_of_one_type_become_one() -> None:
    b = GraphBuilder()
    xs = [b.input("F64", (2,)) for _ in range(4)]
    program = b.build(b.apply(Multiply(), b.apply(Add(), xs[0], xs[1]), b.apply(Add(), xs[2], xs[3])))
    start = Case.of(program, [np.full(2, float(i)) for i in range(4)])
    fails = has("Add", "Multiply")
    case = reduce_case(start, fails, evaluate=run).case
    assert len(case.program.input_slots) == 1
    assert ops_of(case) == ["Add", "Multiply"]


def test_constants_become_simple_or_inputs() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F64", (3,)) * 3.14159 + 2.71828)
    start = Case.of(program, [np.ones(3)])
    case = reduce_case(start, has("Constant"), evaluate=run).case
    assert ops_of(case) == ["Constant"]
    assert [ins.op.value for ins in case.program.instructions if isinstance(ins.op, Constant)] == [0.0]
    assert not case.inputs
    case = reduce_case(start, has("Multiply"), evaluate=run).case
    assert ops_of(case) == ["Multiply"]


def test_policy_flags_and_name_go_unless_needed() -> None:
    b = GraphBuilder("a name", Policy("skip", "stablehlo", "identity", "stablehlo"))
    start = Case.of(b.build(-b.input("F64", ())), [np.asarray(2.5)])
    case = reduce_case(start, lambda c: c.program.policy.empty_reduction == "identity", evaluate=run).case
    assert case.program.policy == Policy(empty_reduction="identity")
    assert case.program.name == ""


def test_zero_extents_survive() -> None:
    b = GraphBuilder()
    x = b.input("F64", (0, 3))
    program = b.build(x.transpose((1, 0)), x.reshape(3, 0), x.sum([1]))
    start = Case.of(program, [np.zeros((0, 3))])
    fails = has("Transpose")
    reduction = reduce_case(start, fails, evaluate=run)
    check_invariants(start, reduction, fails)
    assert ops_of(reduction.case) == ["Transpose"]
    assert reduction.case.inputs[0].shape == (0,)


def test_unit_axes_go() -> None:
    b = GraphBuilder()
    x = b.input("F64", (1, 4, 1))
    y = b.apply(BroadcastInDim((1, 4, 1, 2), (0, 1, 2)), x)
    program = b.build(b.apply(ReduceSum((0, 3)), b.apply(Exp(), y)))
    start = Case.of(program, [np.ones((1, 4, 1))])
    names = ops_of(start)
    case = reduce_case(start, lambda c: ops_of(c) == names, evaluate=run).case
    assert [t.rank for t in concrete_types(case).values()] == [0, 0, 0, 0]


def test_symbolic_shapes_become_integers_unless_needed() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 3)), b.input("F64", ("n",))
    z = b.apply(BroadcastInDim((InputDim(1, 0), 3), (0,)), y, x)
    program = b.build(b.apply(Add(), x, z))
    start = Case.of(program, [np.ones((5, 3)), np.ones(5)])
    case = reduce_case(start, has("BroadcastInDim"), evaluate=None).case
    assert case.program.is_static
    assert ops_of(case) == ["BroadcastInDim"]
    assert len(case.program.input_slots) == 1

    def symbolic(c: Case) -> bool:
        return not c.program.is_static and "BroadcastInDim" in ops_of(c)

    reduction = reduce_case(start, symbolic, evaluate=None)
    check_invariants(start, reduction, symbolic)
    assert ops_of(reduction.case) == ["BroadcastInDim"]


def test_dropping_the_input_that_named_a_symbol_renames_it() -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", (2, "n"))
    program = b.build(-x, -y)
    start = Case.of(program, [np.ones(3), np.ones((2, 3))])
    draft = Draft.of(start)
    draft.outputs = draft.outputs[1:]
    draft.prune()
    case = draft.build()
    assert case is not None
    assert case.program.input_types[0].shape == (2, InputDim(0, 1))
    assert case.program.symbols == ((InputDim(0, 1), "n"),)


# --- programs that came from elsewhere, and cuts without values -------------------------------------------------------


def test_ops_without_a_value_are_cut_with_ones() -> None:
    """An imported program that cannot be run natively: `evaluate` raises."""

    def cannot(case: Case) -> Mapping[int, Array]:
        raise InvalidArgument(op="Gather", argument="indices", detail="not here")

    b = GraphBuilder()
    x, i = b.input("F32", (8, 4)), b.input("I64", (3, 1))
    g = b.apply(Gather((1,), (0,), (0,), 1, (1, 4)), b.apply(Exp(), x), i)
    program = b.build(-g)
    start = Case.of(program, [np.ones((8, 4), np.float32), np.zeros((3, 1), np.int64)])
    reduction = reduce_case(start, has("Gather"), evaluate=cannot)
    check_invariants(start, reduction, has("Gather"))
    assert ops_of(reduction.case) == ["Gather"]
    assert size(reduction.case).elements <= 3


def test_data_dependent_extents_are_cut_at_their_value() -> None:
    b = GraphBuilder()
    x, n = b.input("F64", (6,)), b.input("I64", ())
    program = b.build(b.apply(Exp(), b.apply(DynamicTruncate(0), x, n)))
    start = Case.of(program, [np.ones(6), np.asarray(4)])

    def evaluate(case: Case) -> Mapping[int, Array]:
        cut = {DynamicTruncate: lambda op, x, n: x[: int(n)]}
        return run(case, cut)

    case = reduce_case(start, has("Exp"), evaluate=evaluate).case
    assert ops_of(case) == ["Exp"]
    case = reduce_case(start, has("DynamicTruncate", "Exp"), evaluate=evaluate).case
    assert ops_of(case) == ["DynamicTruncate", "Exp"]
    assert case.inputs[0].shape == (1,)


# --- budget, determinism, bookkeeping ---------------------------------------------------------------------------------


def test_same_case_same_reduction() -> None:
    fails = has("Transpose", "DotGeneral")
    start = first_failing(fails)
    one, two = (reduce_case(start, fails, evaluate=run) for _ in range(2))
    assert one.case.fingerprint == two.case.fingerprint
    assert one.steps == two.steps
    assert one.tests == two.tests


def test_no_case_is_tested_twice_and_all_are_valid() -> None:
    seen: set[str] = set()
    fails = has("Reshape", "Transpose")

    def once(case: Case) -> bool:
        assert case.fingerprint not in seen
        seen.add(case.fingerprint)
        case.program.check_inputs(
            [TensorType(t.dtype, a.shape) for t, a in zip(case.program.input_types, case.inputs, strict=True)]
        )
        outputs(case)
        return fails(case)

    start = first_failing(fails)
    reduction = reduce_case(start, once, evaluate=run)
    assert reduction.tests == len(seen)


def test_the_budget_of_tests_is_kept_and_what_was_found_is_returned() -> None:
    fails = has("Transpose", "DotGeneral")
    start = first_failing(fails)
    for limit in (0, 1, 2, 7):
        reduction = reduce_case(start, fails, evaluate=run, max_tests=limit)
        assert reduction.tests == limit
        assert not reduction.complete
        assert reduction.reproduced == (limit > 0)
        assert fails(reduction.case)


def test_the_budget_of_seconds_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr("fuzz.reduce.search.time.monotonic", lambda: float(next(clock)))
    fails = has("Transpose", "DotGeneral")
    reduction = reduce_case(first_failing(fails), fails, evaluate=run, budget_seconds=10.0)
    assert not reduction.complete
    assert reduction.tests <= 10


def test_a_case_that_does_not_fail_comes_back_as_it_was() -> None:
    start = random_case(0)
    reduction = reduce_case(start, lambda case: False, evaluate=run)
    assert reduction.case is start
    assert not reduction.reproduced
    assert reduction.complete
    assert reduction.tests == 1
    assert reduction.steps == ()


def test_progress_sees_every_test_and_never_a_larger_case() -> None:
    fails = has("Reverse")
    seen = []
    reduction = reduce_case(first_failing(fails), fails, evaluate=run, progress=lambda n, s: seen.append((n, s)))
    assert [n for n, _ in seen] == list(range(2, reduction.tests + 1))
    assert all(a[1] >= b[1] for a, b in itertools.pairwise(seen))


def test_what_the_test_raises_is_not_swallowed() -> None:
    def breaks(case: Case) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reduce_case(random_case(0), breaks)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_weights_order_numbers_as_a_reader_would() -> None:
    ladder = [0.0, 1.0, 2.0, np.inf, 4.0, 7.0, 0.1, 1e300 / 3]
    weights = weight(np.array(ladder)).tolist()
    assert weights == sorted(weights)
    assert len(set(weights)) == len(weights)
    odd_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    assert weight(np.array([np.nan])) < weight(odd_nan)
    assert weight(np.array([0.0])) < weight(np.array([-0.0]))
    assert weight(np.array([True, False])).tolist() == [1, 0]
    assert weight(np.array([np.iinfo(np.int64).min]))[0] > weight(np.array([5]))[0]


@pytest.mark.parametrize("dtype", ["F32", "F64", "I32", "I64", "Bool", "C32", "C64"])
def test_sources_write_back_what_they_read(dtype: str) -> None:
    b = GraphBuilder()
    x = b.input(dtype, (2, 3))
    c = b.constant(1.0, x.dtype)
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(x.dtype.numpy))
    case = Case.of(b.build(x, c), [array])
    again = with_sources(case, sources(case)).build()
    assert again is not None
    assert again.fingerprint == case.fingerprint
    simpler = reduce_case(case, lambda c: len(c.program.output_slots) == 2 and bool(c.program.instructions)).case
    assert not simpler.inputs or not simpler.inputs[0].any()


@pytest.mark.parametrize("dtype", ["F32", "F64", "C64", "I64"])
def test_a_bound_is_approached_from_above(dtype: str) -> None:
    b = GraphBuilder()
    x = b.input(dtype, (3,))
    start = Case.of(b.build(-x), [np.full(3, 123457.0).astype(x.dtype.numpy)])
    case = reduce_case(
        start, lambda c: bool((np.real(c.inputs[0]) >= 1000).any()) and bool(c.program.instructions)
    ).case
    (value,) = case.inputs[0].ravel().tolist()
    assert 1000 <= np.real(value) < 2048
    assert np.imag(value) == 0


def test_every_op_is_known_to_the_tables_of_the_reducer() -> None:
    assert LINKS.holes(OPS) == []
    assert WITHOUT.holes(OPS) == []
    assert set(FOLLOW) <= set(OPS)


def test_the_reduced_case_is_independent_of_the_input_order_of_memory() -> None:
    b = GraphBuilder()
    program = b.build(-b.input("F64", (2, 3)))
    array = np.arange(6.0).reshape(2, 3)
    one = Case(program, (array,))
    two = Case.of(program, [array])
    fails = has("Negate")
    assert reduce_case(one, fails).case.fingerprint == reduce_case(two, fails).case.fingerprint
    assert replace(one.program) == two.program


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_every_op_can_be_cut_out_of_a_program_that_cannot_be_run(op: type[Op]) -> None:
    program = every_op()
    start = Case.of(program, [np.ones([int(e) for e in t.shape], t.dtype.numpy) for t in program.input_types])
    fails = has(op.__name__)
    reduction = reduce_case(start, fails)
    check_invariants(start, reduction, fails)
    assert ops_of(reduction.case) == [op.__name__]
    assert size(reduction.case).elements <= 8


def test_a_symbolic_program_that_must_stay_symbolic() -> None:
    program = symbolic()
    start = Case.of(program, [np.ones((2, 4, 3), np.float32), np.ones((3, 2), np.float32), np.asarray(1.0)])
    for name in dict.fromkeys(ops_of(start)):

        def fails(case: Case, name: str = name) -> bool:
            return name in ops_of(case) and not case.program.is_static

        reduction = reduce_case(start, fails)
        check_invariants(start, reduction, fails)
        assert ops_of(reduction.case) == [name]
