"""Cells: programs of one op at one dtype on values of one class, so that what is wrong is wrong with that op.

The generator makes the programs, with an op's attributes and shapes drawn from bytes that are the same in every run. Values of
another class replace those of the data operands; what indexes, or must be a matrix of some kind, stays.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuzz.generate.config import Config, admitted
from fuzz.generate.decode import GENE, grow
from fuzz.generate.growth import Growth
from fuzz.generate.header import HEADER
from fuzz.generate.ops import STRATEGY
from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import Family
from tenferro_ref.ops import FAMILIES, OPS, Op
from tenferro_ref.program import GraphProgram

#: Classes of values that cells have, in the order of the report; a dtype has those that it has among its classes.
CLASSES = ("ordinary", "small", "special", "subnormal", "wide", "limits", "ties", "knees", "powers")
#: Programs a cell, of different attributes and shapes.
_PROGRAMS = 2
#: Draws after which an op has no more programs.
_DRAWS = 64
#: Of one op there is nothing to fold, or nothing that StableHLO has.
_WITHOUT = frozenset({ops.Constant, ops.DynamicTruncate})
_SEED = 1


@dataclass(frozen=True, eq=False)
class Cell:
    """A program of one op and its inputs, of one class of values ("any" where no operand is free)."""

    op: str
    dtype: DType
    values: str
    case: Case


def names() -> list[str]:
    """The ops that have cells, those of extension families by their own names."""
    own = [op.__name__ for op in OPS if op in STRATEGY and op not in {*_WITHOUT, ops.Extension}]
    families = (family for family in map(FAMILIES.__getitem__, FAMILIES) if isinstance(family, Family))
    return [*own, *(name for family in families for name in family.ops)]


def programs(dtypes: Sequence[DType] = tuple(DType), only: Collection[str] = ()) -> Iterator[list[Cell]]:
    """The cells of one program after the other; those of a program differ in their values alone.

    Parameters
    ----------
    only
        Ops, by the names of `names`; all of them if empty.
    """
    wanted = frozenset(only or names())
    for op in OPS:
        if op in STRATEGY and op not in _WITHOUT and (op is ops.Extension or op.__name__ in wanted):
            for dtype in dtypes:
                yield from _programs(op, dtype, wanted)


def _config(op: type[Any], dtype: DType) -> Config | None:
    """Programs of one instruction; None if the op has no such dtype under any policy."""
    ours = admitted(op, (dtype,))
    stablehlo = dtype in op.stablehlo_dtypes or dtype in op.dtypes
    if not ours and not stablehlo:
        return None
    # a Convert has somewhere to go; beside a dtype that only another policy admits stands one of the engine's, to draw from
    others = () if ours and op is not ops.Convert else tuple(d for d in admitted(op, tuple(DType)) if d is not dtype)
    return Config(
        ops=(op,), dtypes=(dtype, *others), max_instructions=1, max_elements=96, usual_elements=96, dim_exprs=False,
        motifs=False, anchors=False, symbolic=0, linalg=50 if op is ops.Extension else 0, policies=0 if ours else 100,
    )  # fmt: skip


def _programs(op: type[Any], dtype: DType, wanted: Collection[str]) -> Iterator[list[Cell]]:
    config = _config(op, dtype)
    if config is None:
        return
    seen: Counter[str] = Counter()
    for number in range(_DRAWS):
        data = hashlib.shake_256(f"conform {_SEED} {op.__name__} {dtype.name} {number}".encode()).digest(HEADER + GENE)
        g = grow(config, data[:HEADER], [data[HEADER:]])
        program = g.finish()
        if len(program.instructions) != 1 or not isinstance(program.instructions[0].op, op):
            continue
        name = _name(program.instructions[0].op)
        if seen[name] == _PROGRAMS or name not in wanted:
            continue
        if program.input_types and dtype not in [t.dtype for t in program.input_types[:2]]:
            continue
        seen[name] += 1
        yield _cells(name, dtype, g, program)
        if op is not ops.Extension and seen[name] == _PROGRAMS:
            return


def _name(op: Op) -> str:
    """The op as rows are called: an extension by its own op."""
    return op.op if isinstance(op, ops.Extension) else op.name


def _cells(name: str, dtype: DType, g: Growth, program: GraphProgram) -> list[Cell]:
    """One cell for each class, fewer where values repeat."""
    drawn, known = g.inputs(program), classes(dtype)
    free = [
        t.dtype is dtype and slot in g.recipes and g.recipes[slot].kind in known and g.recipes[slot].kind != "indices"
        for slot, t in zip(program.input_slots, program.input_types, strict=True)
    ]
    if not any(free):
        return [Cell(name, dtype, "any", Case.of(program, drawn))]
    cells: dict[str, Cell] = {}
    for kind in [k for k in CLASSES if k in known] or list(known)[:1]:
        inputs = [
            array_of(Recipe(kind, 17 * i + _SEED), dtype, array.shape) if changes else array
            for i, (array, changes) in enumerate(zip(drawn, free, strict=True))
        ]
        case = Case.of(program, inputs)
        cells.setdefault(case.fingerprint, Cell(name, dtype, kind, case))
    return list(cells.values())
