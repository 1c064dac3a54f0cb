"""Corners: each elementwise op on every special number of a dtype, a binary one and a reduction on all pairs of them.

A number that breaks a kernel is in few random arrays, and in fewer for the op and the dtype that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fuzz.generate.config import FOREIGN_DTYPES, admitted, directions, may_have
from fuzz.generate.growth import Growth
from fuzz.generate.motifs.table import Found, motif
from fuzz.generate.values.classes import corner_classes
from fuzz.generate.values.recipes import Recipe
from fuzz.generate.values.special import SPECIALS, Array
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import COMPLEX, ENGINE_DTYPES, DType
from tenferro_ref.ops import ELEMENTWISE, INTEGER_FAULTS, REDUCTIONS, STABLEHLO, Op
from tenferro_ref.program import Value

#: Elements where special numbers are drawn: of complex ones and of triples there are too many.
_DRAWN = 1200
#: The share of the special numbers that an operand has at least.
_MOST = 0.7


def _operands(g: Growth, op: type[Op], dtype: DType) -> list[Value]:
    """Inputs that have the corners of a dtype: all special numbers, all pairs of them, or so many that are drawn."""
    drawn, seed = "simple" if dtype is DType.Bool else "special", g.choices.integer(2)
    real = drawn == "special" and not dtype.is_complex
    if op in REDUCTIONS:
        rows = len(SPECIALS[dtype]) ** 2 if real else _DRAWN // 2
        return [g.fresh(dtype, (min(rows, g.config.max_elements // 2), 2), Recipe("pairs" if real else drawn, seed))]
    kinds, n = corner_classes(dtype, op.arity) if real and op.arity < 3 else ((drawn,) * op.arity, _DRAWN)
    shape = (min(n, g.config.max_elements),)
    return [g.fresh(dtype, shape, Recipe(kind, seed + i)) for i, kind in enumerate(kinds)]


def _grown(g: Growth, op: type[Any], spectra: bool, to: DType | None = None) -> None:
    """Show the op at dtypes that are complex, or at those that are not."""
    known = [d for d in admitted(op, g.config.dtypes, g.policy) if d.is_complex is spectra and d is not to]
    if to is None or to in g.config.dtypes:
        _show(g, op, known, to)


def _show(g: Growth, op: type[Any], dtypes: Sequence[DType], to: DType | None = None) -> None:
    """Show the op at one dtype of each kind, to leave room for the rest of the program."""
    if g.max_rank < (2 if op in REDUCTIONS else 1):
        return
    chosen = {_kind(dtypes[i]): dtypes[i] for i in g.choices.permutation(len(dtypes))}
    for dtype in list(chosen.values())[: g.room]:
        g.show(_made(g, op, dtype, to), *_operands(g, op, dtype))


def _foreign(g: Growth, op: type[Any]) -> list[DType]:
    """The real dtypes that programs under StableHLO's policy may have beside the engine's, and of what may fault all integers."""
    known = admitted(op, tuple(d for d in DType if may_have(g.config, d)), g.policy)
    return [d for d in known if d in FOREIGN_DTYPES or (op in INTEGER_FAULTS and d.is_int)]


def _grown_under_stablehlo(g: Growth, names: Sequence[type[Any]]) -> None:
    """Show one of the ops at dtypes that the engine lacks or, if it may fault, on integers."""
    if g.policy == STABLEHLO:
        op = g.choices.choose(tuple(names))
        _show(g, op, _foreign(g, op))


def _kind(dtype: DType) -> tuple[bool, ...]:
    """Equal for dtypes that share kernels and special numbers: floats, narrow floats, integers signed and not, the engine's and others, C32, C64."""
    engine = dtype in ENGINE_DTYPES
    return (
        dtype.is_float,
        dtype.is_narrow_float,
        dtype.is_int and engine,
        dtype.is_int,
        dtype.is_unsigned,
        dtype is DType.C32,
    )


def _made(g: Growth, op: type[Any], dtype: DType, to: DType | None) -> Op:
    arguments: dict[type[Any], Callable[[], Any]] = {
        ops.Compare: lambda: g.choices.choose(directions(dtype, g.policy)),
        ops.Convert: lambda: to or g.choices.choose([d for d in g.config.dtypes if d is not dtype] or [dtype]),
        **dict.fromkeys(REDUCTIONS, lambda: (1,)),
    }
    made: Op = op(arguments[op]()) if op in arguments else op()
    return made


def _covers(array: Array, dtype: DType) -> bool:
    special = {number.tobytes() for number in SPECIALS[dtype]}
    return len(special & {number.tobytes() for number in array.ravel()}) >= _MOST * len(special)


def _on_corners(case: Case, asked: Callable[[Op], bool], fits: Callable[[DType], bool]) -> bool:
    """Whether an op that is asked for reads inputs of fitting dtypes that have most of the special numbers."""
    inputs = dict(zip(case.program.input_slots, case.inputs, strict=True))
    dtypes = {slot: t.dtype for slot, t in case.program.slot_types.items()}
    return any(
        all(s in inputs and fits(dtypes[s]) and _covers(inputs[s], dtypes[s]) for s in ins.input_slots)
        for ins in case.program.instructions
        if asked(ins.op)
    )


def _found(op: type[Any], spectra: bool, to: DType | None = None) -> Found:
    """Finds the op on the corners of a dtype that is complex, or of one that is not."""

    def asked(known: Op) -> bool:
        return type(known) is op if to is None else known == op(to)

    return lambda case: _on_corners(case, asked, lambda dtype: dtype.is_complex is spectra)


def _enter(name: str, op: type[Any], spectra: bool, to: DType | None = None) -> None:
    motif(1, 0, _found(op, spectra, to), op, name=name)(partial(_grown, op=op, spectra=spectra, to=to))


#: Ops with corners: to the others no number is special.
_CORNERED = tuple(op for op in (*ELEMENTWISE, *REDUCTIONS) if op not in (ops.Select, ops.Conj))
for _op in _CORNERED:
    _enter(f"corners of {_op.__name__}", _op, spectra=False)
    if not _op.dtypes.isdisjoint(COMPLEX):
        _enter(f"complex corners of {_op.__name__}", _op, spectra=True)
for _to in ENGINE_DTYPES:
    _enter(f"corners of Convert to {_to}", ops.Convert, spectra=False, to=_to)
_enter("complex corners of Convert", ops.Convert, spectra=True)


def _found_under_stablehlo(names: Sequence[type[Op]]) -> Found:
    """Finds one of the ops on the corners of integers or of dtypes that the engine lacks, under StableHLO's policy."""

    def fits(dtype: DType) -> bool:
        return dtype in FOREIGN_DTYPES or dtype.is_int

    return lambda case: case.program.policy == STABLEHLO and _on_corners(case, lambda op: type(op) in names, fits)


def _enter_under_stablehlo(name: str, *names: type[Op]) -> None:
    grow = partial(_grown_under_stablehlo, names=names)
    motif(1, 0, _found_under_stablehlo(names), *names, name=name, policy=STABLEHLO)(grow)


for _op in sorted(INTEGER_FAULTS, key=lambda op: op.__name__):
    _enter_under_stablehlo(f"integer corners of {_op.__name__}", _op)
_enter_under_stablehlo("corners of other dtypes", *_CORNERED)
