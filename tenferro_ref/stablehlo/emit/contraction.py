"""Emission of the reductions and of DotGeneral."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.emit.elementwise import conj
from tenferro_ref.stablehlo.emit.table import EMIT, Row
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import Body, SsaValue


def _reduction(name: str, identity: Callable[[DType], np.generic]) -> Row:
    def row(op: ops.ReduceSum, body: Body, shape: Shape, x: SsaValue) -> SsaValue:
        if not op.axes:  # a copy, for every dtype
            return x
        init = body.constant(identity(x.dtype), x.dtype)
        over = f"applies stablehlo.{name} across dimensions = {sorted(op.axes)}"
        types = f"({x.type}, {init.type}) -> {type_text(x.dtype, shape)}"
        return body.line(f"reduce({x.name} init: {init.name}) {over} : {types}", x.dtype, shape)

    return row


_sum = _reduction("add", lambda dtype: dtype.numpy.type(0))
EMIT[ops.ReduceSum] = _sum
EMIT[ops.ReduceSumSquares] = lambda op, body, shape, x: _sum(op, body, shape, body.same("multiply", x, x))
EMIT[ops.ReduceProd] = _reduction("multiply", lambda dtype: dtype.numpy.type(1))
EMIT[ops.ReduceMax] = _reduction("maximum", lambda dtype: dtype.numpy.type(dtype.extremes[0]))
EMIT[ops.ReduceMin] = _reduction("minimum", lambda dtype: dtype.numpy.type(dtype.extremes[1]))


def _dot_general(op: ops.DotGeneral, body: Body, shape: Shape, lhs: SsaValue, rhs: SsaValue) -> SsaValue:
    batches = len(op.lhs_batch_dims)
    frees = len(shape) - batches
    batching = f", batching_dims = {list(op.lhs_batch_dims)} x {list(op.rhs_batch_dims)}" if batches else ""
    contracting = f", contracting_dims = {list(op.lhs_contracting_dims)} x {list(op.rhs_contracting_dims)}"
    attrs = f"{batching}{contracting}, precision = [DEFAULT, DEFAULT]"
    product = body.call("dot_general", [lhs, rhs], lhs.dtype, shape[frees:] + shape[:frees], attrs)
    # StableHLO gives batch axes first. Equal extents do not make this the identity; lacking one of the groups does
    return body.transpose(product, [*range(batches, len(shape)), *range(batches)]) if batches and frees else product


EMIT[ops.DotGeneral] = _dot_general


@EMIT.row(ops.DotGeneralWithConj)
def _(op: ops.DotGeneralWithConj, body: Body, shape: Shape, lhs: SsaValue, rhs: SsaValue) -> SsaValue:
    return _dot_general(op.plain, body, shape, *op.conjugated(lambda x: conj(body, x), lhs, rhs))
