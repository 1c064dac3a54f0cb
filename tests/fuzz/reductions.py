"""Failures whose minimum is known, for the tests of the reducer: a small interpreter, and random programs for it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fuzz.findings.reduce import Reduction, reduce_case, size
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphBuilder, Instruction, Value, dumps, loads
from tenferro_ref.tensor import Array, same_bits

Kernel = Callable[..., Array]


def _broadcast(op: ops.BroadcastInDim, x: Array, *_: Array) -> Array:
    inner = [1] * len(op.shape)
    for axis, dim in enumerate(op.dims):
        inner[dim] = x.shape[axis]
    return np.broadcast_to(x.transpose(np.argsort(op.dims)).reshape(inner), [int(e) for e in op.shape])


def _dot(op: ops.DotGeneral, x: Array, y: Array) -> Array:
    return np.tensordot(x, y, (op.lhs_contracting_dims, op.rhs_contracting_dims))


KERNELS: dict[type[Op], Kernel] = {
    ops.Constant: lambda op: np.asarray(op.value),
    ops.Add: lambda op, x, y: x + y,
    ops.Multiply: lambda op, x, y: x * y,
    ops.Maximum: lambda op, x, y: np.maximum(x, y),
    ops.Negate: lambda op, x: -x,
    ops.Abs: lambda op, x: np.abs(x),
    ops.Exp: lambda op, x: np.exp(x),
    ops.Convert: lambda op, x: x.astype(op.to.numpy),
    ops.Transpose: lambda op, x: x.transpose(op.perm),
    ops.Reshape: lambda op, x, *_: x.reshape([int(e) for e in op.shape], order="F"),
    ops.BroadcastInDim: _broadcast,
    ops.ReduceSum: lambda op, x: x.sum(axis=op.axes),
    ops.DotGeneral: _dot,
    ops.Concatenate: lambda op, *xs: np.concatenate(xs, op.axis),
    ops.Reverse: lambda op, x: np.flip(x, op.axes),
    ops.Slice: lambda op, x: x[tuple(map(slice, op.starts, op.limits, op.strides))],
    ops.Pad: lambda op, x: np.pad(x, list(zip(op.edge_padding_low, op.edge_padding_high, strict=True))),
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
        lambda x: b.apply(rng.choice((ops.Negate(), ops.Abs(), ops.Exp())), x),
        lambda x: b.apply(rng.choice((ops.Add(), ops.Multiply(), ops.Maximum())), x, rng.choice([y for y in pool if y.shape == x.shape])),
        lambda x: x.transpose(rng.sample(range(x.type.rank), x.type.rank)),
        lambda x: x.reshape(*rng.sample([int(e) for e in x.shape], x.type.rank)),
        lambda x: x.sum(rng.sample(range(x.type.rank), min(1, x.type.rank))),
        lambda x: b.apply(ops.DotGeneral((0,), (0,), (), ()), x, rng.choice([y for y in pool if y.shape[:1] == x.shape[:1]]))
        if x.type.rank
        else b.constant(rng.choice((0.5, 1.25))),
        lambda x: b.apply(ops.Reverse((0,)), x) if x.type.rank else b.input("F64", ()),
        lambda x: b.apply(ops.BroadcastInDim((3, *x.shape), tuple(range(1, x.type.rank + 1))), x),
        lambda x: b.apply(ops.Slice((0,) * x.type.rank, tuple(max(1, int(e) - 1) for e in x.shape), (1,) * x.type.rank), x),
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


def reduced(
    start: Case, fails: Callable[[Case], bool], evaluate: Callable[[Case], Mapping[int, Array]] | None = run
) -> Reduction:
    """`reduce_case` with the checks that hold of every reduction."""
    reduction = reduce_case(start, fails, evaluate=evaluate)
    sizes = [size(start), *(step.size for step in reduction.steps)]
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert sizes[-1] == size(reduction.case)
    assert fails(reduction.case)
    assert loads(dumps(reduction.case.program)) == reduction.case.program
    return reduction


def first_failing(fails: Callable[[Case], bool], instructions: int = 30) -> Case:
    return next(case for seed in itertools.count() if fails(case := random_case(seed, instructions)))
