"""Seeded faults written by hand: what each breaks, as a patch that is applied for as long as the mutant is active.

A mutant replaces one function or one table row by a wrong one; the right code carries no trace of it, and nothing is ever
active by default. Those whose fault is in the plugin's worker process (`in_worker`) are applied there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

import tenferro_ref.compiler.dot_decomposer as decomposer
import tenferro_ref.compiler.dot_dimension_sorter as sorter
import tenferro_ref.compiler.transpose_folding as folding
import tenferro_ref.stablehlo.writer as writer
from fuzz.mutants.derivatives import DERIVATIVES
from fuzz.mutants.mutant import Mutant, member, row
from tenferro_ref import ops
from tenferro_ref.pjrt import Client, TensorSpec
from tenferro_ref.program import Program, program
from tenferro_ref.runtime.kernels import KERNELS
from tenferro_ref.stablehlo.emit import EMIT


def _reshape_row_major(right: Any) -> Any:
    return lambda op, body, shape, x, *providers: body.reshape(x, shape)


def _dot_without_transpose(right: Any) -> Any:
    def wrong(op: ops.DotGeneral, body: Any, shape: Any, lhs: Any, rhs: Any) -> Any:
        with mock.patch.object(type(body), "transpose", lambda self, x, perm: x):
            return right(op, body, shape, lhs, rhs)

    return wrong


def _nine_digits(right: Any) -> Any:
    def wrong(value: np.generic) -> str:
        if isinstance(value, np.float64) and np.isfinite(value):
            return f"{value:.8e}"
        return str(right(value))

    return wrong


def _inverse_permutation(right: Any) -> Any:
    def wrong(operand: folding.Operand, source: int, perm: folding.Axes) -> folding.Operand | None:
        inverse = tuple(int(i) for i in np.argsort(perm))
        folded: folding.Operand | None = right(operand, source, inverse)
        return folded

    return wrong


def _sort_one_list(right: Any) -> Any:
    def wrong(op: ops.DotGeneral) -> ops.DotGeneral:
        result: ops.DotGeneral = right(op)
        if result is op:
            return op
        one = sorter.consecutive_but_unsorted(op.lhs_contracting_dims)
        if one:
            return dataclasses.replace(result, rhs_contracting_dims=op.rhs_contracting_dims)
        return dataclasses.replace(result, lhs_contracting_dims=op.lhs_contracting_dims)

    return wrong


def _no_output_reshape(right: Any) -> Any:
    def wrong(self: Any, op: ops.DotGeneral, lhs: decomposer.Side, rhs: decomposer.Side, out: int) -> None:
        right(self, op, lhs, rhs, out)
        if isinstance(self.instructions[-1].op, ops.Reshape) and len(self.instructions) > 1:
            product = self.instructions[-2]
            if isinstance(product.op, ops.DotGeneral):
                self.instructions.pop()
                self.instructions[-1] = dataclasses.replace(product, output_slots=(out,))

    return wrong


def _early_last_use(right: Any) -> Any:
    def wrong(given: Program) -> tuple[tuple[bool, ...], ...]:
        uses = [list(flags) for flags in right(given)]
        instructions = given.instructions
        for i in range(len(instructions) - 1):
            for j, slot in enumerate(instructions[i].input_slots):
                later = [k for k in range(i + 1, len(instructions)) if slot in instructions[k].input_slots]
                if len(later) == 1 and slot not in given.output_slots:  # flagged one reader too soon
                    uses[i][j] = True
        return tuple(tuple(flags) for flags in uses)

    return wrong


@dataclass(frozen=True)
class _RowMajorDownload:
    """A download whose bytes are taken to be row-major."""

    right: Any

    @property
    def spec(self) -> TensorSpec:
        spec: TensorSpec = self.right.spec
        return spec

    def __call__(self, raw: int) -> Any:
        array = self.right(raw)
        return np.array(array.ravel("F").reshape(array.shape, order="C"), order="F")


def _row_major_download(right: Any) -> Any:
    return lambda client, spec: _RowMajorDownload(right(client, spec))


def _sum_without_last(right: Any) -> Any:
    def wrong(op: ops.ReduceSum, x: Any) -> Any:
        if op.axes and x.shape[op.axes[0]] > 1:
            x = np.asfortranarray(x.take(range(x.shape[op.axes[0]] - 1), axis=op.axes[0]))
        return right(op, x)

    return wrong


def _maximum_ignoring_nan(right: Any) -> Any:
    return lambda op, x, y: np.asfortranarray(np.fmax(x, y)) if x.ndim else np.asarray(np.fmax(x, y))


#: The faults that issue reports of the engine name, or that a first version falls into.
BY_HAND: tuple[Mutant, ...] = (
    Mutant(
        "reshape-row-major", "emitter", "a Reshape becomes a bare stablehlo.reshape, which is row-major",
        row(EMIT, ops.Reshape, _reshape_row_major),
    ),
    Mutant(
        "dot-without-transpose", "emitter", "the result of a batched dot_general keeps StableHLO's axis order",
        row(EMIT, ops.DotGeneral, _dot_without_transpose),
    ),
    Mutant(
        "nine-digit-constants", "emitter", "f64 constants are printed with nine digits",
        member(writer, "literal", _nine_digits),
    ),
    Mutant(
        "folding-inverse-perm", "compiler", "TransposeFolding maps axes by the inverse permutation",
        member(folding, "fold", _inverse_permutation),
    ),
    Mutant(
        "sorter-one-list", "compiler", "DotDimensionSorter sorts one of the two contracting lists",
        member(sorter, "sort_pairs", _sort_one_list),
    ),
    Mutant(
        "decomposer-no-reshape", "compiler", "DotDecomposer leaves out the output reshape",
        member(decomposer._Decomposition, "dot", _no_output_reshape),
    ),
    Mutant(
        "last-use-early", "compiler", "last_use is flagged one reader too soon",
        member(program, "last_use", _early_last_use),
    ),
    Mutant(
        "download-row-major", "transfer", "downloaded bytes are taken to be row-major",
        member(Client, "download", _row_major_download), in_worker=True,
    ),
    Mutant(
        "sum-without-last", "kernels", "ReduceSum skips the last element", row(KERNELS, ops.ReduceSum, _sum_without_last),
    ),
    Mutant(
        "maximum-ignores-nan", "kernels", "Maximum ignores a NaN operand", row(KERNELS, ops.Maximum, _maximum_ignoring_nan),
    ),
    *DERIVATIVES,
)  # fmt: skip
