"""Calls of LAPACK's routines, in the form in which JAX writes them.

A statement has several calls, which have nothing to do with each other: few executors have the routines, and a module that calls
one is lost for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fuzz.generate.modules.draft import Draft
from fuzz.generate.modules.statements.linalg import DTYPES, batch_of, matrices, order_of
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values import matrices as m
from fuzz.generate.values.recipes import Recipe
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import lapack
from tenferro_ref.ops import DEFAULT_POLICY, TensorType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import SsaValue

_LETTERS = {DType.F32: "s", DType.F64: "d", DType.C32: "c", DType.C64: "z"}
_COMPLEX_NAMES = {routine: name for name, routine in lapack.COMPLEX_NAMES.items()}
#: How many calls of each of its routines a statement has: one a dtype.
_CALLS = 4
#: Classes of the matrices that a routine is given; routines without an entry take any.
_KINDS: dict[str, tuple[str, ...]] = {
    "potrf": m.DEFINITE, "trsm": (*m.TRIANGULAR, m.GROWING), "getrf": (*m.REGULAR, *m.ANY), "syevd": (*m.HERMITIAN, *m.ONE_SIDED),
    "sytrd": (*m.HERMITIAN, *m.ONE_SIDED), "geev": m.REGULAR, "gees": m.REGULAR,
}  # fmt: skip


@STATEMENTS.row("custom_call of triangles")
def _(d: Draft) -> Sequence[SsaValue]:
    """These two have a form in StableHLO, in which they are written as a program."""
    return _called(d, ("potrf", "trsm", "trsm"))


@STATEMENTS.row("custom_call of a solver")
def _(d: Draft) -> Sequence[SsaValue]:
    return _called(d, ("getrf", "gtsv"))


@STATEMENTS.row("custom_call of a QR decomposition")
def _(d: Draft) -> Sequence[SsaValue]:
    return _called(d, ("orgqr", "ormqr", "geqp3", "geqrf"))


@STATEMENTS.row("custom_call of singular values")
def _(d: Draft) -> Sequence[SsaValue]:
    return _called(d, ("gesdd", "syevd", "gesvd"))


@STATEMENTS.row("custom_call of a Schur form")
def _(d: Draft) -> Sequence[SsaValue]:
    return _called(d, ("gehrd", "sytrd", "gees", "geev"))


def _called(d: Draft, routines: Sequence[str]) -> list[SsaValue]:
    first = d.choices.pick(_CALLS)
    return [
        v for k in range(_CALLS) for name in routines for v in _call(d, name, first + k, "LU"[(first + k // 2) % 2])
    ]


def _call(d: Draft, name: str, turn: int, triangle: str) -> list[SsaValue]:
    """The results that have a meaning of a call of a routine on new matrices; before it, of what makes its operands.

    The dtypes take turns, and complex matrices have either triangle once, as real ones have.
    """
    dtype, batch, n = DTYPES[turn % _CALLS], batch_of(d), order_of(d, (3, 1, 2, 4, 5))
    routine = lapack.ROUTINES[name]
    rows = n if routine.square else d.choices.choose((3, 5, 2, 4))
    if name == "gtsv":
        lines = [d.fresh(dtype, (*batch, n), Recipe("positive", d.choices.integer(2))) for _ in range(3)]
        middle = d.same("add", lines[1], d.filled(9, dtype, lines[1].shape))
        rhs = d.fresh(dtype, (*batch, n, 2), Recipe("ordinary", d.choices.integer(2)))
        return [middle, *_results(d, name, [lines[0], middle, lines[2], rhs])]
    unit = name == "trsm" and d.choices.chance(50)
    a = matrices(d, dtype, batch, rows, n, (*_KINDS.get(name, m.ANY), *([m.UNREAD_DIAGONAL] if unit else [])))
    if name in ("orgqr", "ormqr"):
        if rows < n:
            a = d.transpose(a, [*range(a.rank - 2), a.rank - 1, a.rank - 2])
        packed, tau = _results(d, "geqrf", [a])
        if name == "orgqr":
            return [packed, tau, *_results(d, name, [packed, tau])]
        left, height = d.choices.chance(50), a.shape[-2]
        c = d.fresh(dtype, (*batch, *((height, 2) if left else (2, height))), Recipe("ordinary", d.choices.integer(2)))
        return [packed, tau, *_results(d, name, [packed, tau, c], left="T" if left else "F")]
    if name == "geqp3":
        return _results(d, name, [a, d.argument(np.zeros((*batch, n), np.int32, order="F"))])
    if name == "trsm":
        left = d.choices.chance(50)
        b = d.fresh(dtype, (*batch, *((n, 2) if left else (2, n))), Recipe("ordinary", d.choices.integer(2)))
        return _results(d, name, [a, b], side="L" if left else "R", uplo=triangle, diag="U" if unit else "N")
    return _results(d, name, [a], **({"uplo": triangle} if "uplo" in routine.flags else {}))


def _results(d: Draft, name: str, operands: Sequence[SsaValue], **known: str) -> list[SsaValue]:
    """A call with flags that are drawn unless they are known."""
    flags = {
        flag: known.get(flag) or d.choices.choose(letters) for flag, letters in lapack.ROUTINES[name].flags.items()
    }
    op = ops.Extension.of(lapack.FAMILY, name, flags)
    types = op.infer(DEFAULT_POLICY, *(TensorType(v.dtype, v.shape) for v in operands))
    results = [(t.dtype, t.static_shape) for t in (types if isinstance(types, tuple) else (types,))]
    dtype = operands[-1].dtype if name == "gtsv" else operands[0].dtype
    target = f"lapack_{_LETTERS[dtype]}{_COMPLEX_NAMES.get(name, name) if dtype.is_complex else name}_ffi"
    rank = max(v.rank for v in operands)
    config = ", ".join(_flag(flag, letter) for flag, letter in (*flags.items(), *_rows(name, operands[0])))
    layouts = (
        f"operand_layouts = [{', '.join(_layout(v.shape, rank) for v in operands)}], "
        f"result_layouts = [{', '.join(_layout(shape, rank) for _, shape in results)}]"
    )
    attrs = f'call_target_name = "{target}", backend_config = "", {layouts}'
    made = d.operation("custom_call", operands, attrs, results, discardable=f"mhlo.backend_config = {{{config}}}")
    return [v for i, v in enumerate(made) if i not in lapack.garbage(op, len(made))]


def _rows(name: str, a: SsaValue) -> Iterator[tuple[str, str]]:
    """The range of rows that `gehrd` reduces: all of them."""
    if name == "gehrd":
        yield from (("high", str(a.shape[-1])), ("low", "1"))


def _flag(name: str, letter: str) -> str:
    if letter.isdecimal():
        return f"{name} = {letter} : i32"
    if name in ("left", "transpose"):
        return f"{name} = {'true' if letter == 'T' else 'false'}"
    return f"{name} = {ord(letter)} : ui8"


def _layout(shape: Shape, rank: int) -> str:
    """Matrices column by column, batch axes first; everything else row by row."""
    n = len(shape)
    axes = [n - 2, n - 1, *reversed(range(n - 2))] if n == rank else [*reversed(range(n))]
    return f"dense<{axes if n != 1 else axes[0]}> : tensor<{n}xindex>" if n else "dense<> : tensor<0xindex>"
