"""A tiny NumPy interpreter of dots and structural ops, for the passes' tests: it shares no code with the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import evaluate
from tenferro_ref.ops import free_axes
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram
from tenferro_ref.tensor import Array


def dot(op: ops.DotGeneral, lhs: Array, rhs: Array) -> Array:
    """By einsum: one letter an axis, paired axes share theirs."""
    left = list(ascii_letters[: lhs.ndim])
    right = list(ascii_letters[lhs.ndim : lhs.ndim + rhs.ndim])
    for a, b in [
        *zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True),
        *zip(op.lhs_batch_dims, op.rhs_batch_dims, strict=True),
    ]:
        assert lhs.shape[a] == rhs.shape[b]
        right[b] = left[a]
    out = [left[a] for a in free_axes(lhs.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)]
    out += [right[a] for a in free_axes(rhs.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)]
    out += [left[a] for a in op.lhs_batch_dims]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", lhs, rhs)


def interpret(program: GraphProgram | ExecProgram, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of `program`."""
    env = dict(zip(program.input_slots, inputs, strict=True))
    for ins in program.instructions:
        args = [env[s] for s in ins.input_slots]
        match ins.op:
            case ops.Transpose(perm):
                value = args[0].transpose(perm)
            case ops.Reshape(shape):
                value = args[0].reshape([evaluate(e, [a.shape for a in args]) for e in shape], order="F")
            case ops.DotGeneral() as op:
                value = dot(op, *args)
            case ops.DynamicTruncate(axis):
                value = args[0].take(range(int(args[1])), axis)
            case ops.Add():
                value = args[0] + args[1]
            case ops.Multiply():
                value = args[0] * args[1]
            case ops.Negate():
                value = -args[0]
            case ops.ReduceSum(axes):
                value = args[0].sum(axes)
            case op:
                raise AssertionError(op)
        env[ins.output_slots[0]] = np.asarray(value)
    return [env[s] for s in program.output_slots]


def integers(shape: Sequence[int], seed: int = 0) -> Array:
    """Small integers as F64: any order of summation gives the same bits."""
    return np.random.default_rng([seed, *shape]).integers(-4, 5, tuple(shape)).astype(np.float64)


def one_dot(lhs: Sequence[int | str], rhs: Sequence[int | str], *dims: tuple[int, ...]) -> GraphProgram:
    """A program that is one DotGeneral; `dims` are lc, rc, lb, rb."""
    b = GraphBuilder()
    return b.build(b.apply(ops.DotGeneral(*dims), b.input("F64", lhs), b.input("F64", rhs)))
