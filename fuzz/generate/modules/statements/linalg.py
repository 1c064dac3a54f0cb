"""Factors, triangular systems and transforms, with every attribute.

Matrices are new arguments and factors are results of `main`: what a decomposition gives is judged where both are known.
"""

from __future__ import annotations

from math import prod

from fuzz.generate.modules.draft import COMPLEX, MOST, WIDE, Draft, array
from fuzz.generate.modules.statements.table import STATEMENTS
from fuzz.generate.values.matrices import DEFINITE, GROWING, NEARLY_SINGULAR, ONE_SIDED, TRIANGULAR, UNREAD_DIAGONAL
from fuzz.generate.values.recipes import Recipe
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape
from tenferro_ref.stablehlo.writer import SsaValue

#: More complex ones, of which a matrix, its transpose and its adjoint are three.
DTYPES = (DType.C32, DType.F32, DType.C64, DType.F64, DType.C32)


def matrices(d: Draft, dtype: DType, batch: Shape, rows: int, columns: int, kinds: tuple[str, ...]) -> SsaValue:
    """Matrices of a class; recipes have batch axes last."""
    x = d.fresh(dtype, (rows, columns, *batch), Recipe(d.choices.choose(kinds), d.choices.integer(2)))
    return d.transpose(x, [*range(2, x.rank), 0, 1]) if batch else x


def batch_of(d: Draft) -> Shape:
    """Extents of batch axes: none as a rule."""
    return d.choices.choose(((), (), (2,), (3,), (2, 1)))


def order_of(d: Draft, orders: tuple[int, ...]) -> int:
    """Rows of a square matrix; none now and then."""
    return 0 if d.choices.chance(4) else d.choices.choose(orders)


@STATEMENTS.row("cholesky")
def _(d: Draft) -> SsaValue:
    """From either triangle; what is in the other one must not matter."""
    dtype, n, lower = d.choices.choose(DTYPES), order_of(d, (3, 2, 4, 1, 5)), d.choices.chance(40)
    a = matrices(d, dtype, batch_of(d), n, n, (*ONE_SIDED, *DEFINITE, NEARLY_SINGULAR))
    if not lower:
        a = d.transpose(a, [*range(a.rank - 2), a.rank - 1, a.rank - 2])
    factor = d.one("cholesky", [a], dtype, a.shape, f"lower = {str(lower).lower()}")
    d.unread.add(factor.name)  # the other triangle is left open
    return factor


@STATEMENTS.row("triangular_solve")
def _(d: Draft) -> SsaValue:
    dtype, batch, n, count = d.choices.choose(DTYPES), batch_of(d), order_of(d, (1, 2, 3, 4, 5)), 1 + d.choices.pick(3)
    left, lower, unit = (d.choices.chance(50) for _ in range(3))
    transpose = d.choices.choose(("ADJOINT", "TRANSPOSE", "NO_TRANSPOSE"))
    a = matrices(d, dtype, batch, n, n, (*TRIANGULAR, UNREAD_DIAGONAL) if unit else (*TRIANGULAR, GROWING))
    b = d.fresh(dtype, (*batch, *((n, count) if left else (count, n))), Recipe("ordinary", d.choices.integer(2)))
    words = {"left_side": left, "lower": lower, "unit_diagonal": unit}
    attrs = ", ".join(f"{word} = {str(flag).lower()}" for word, flag in words.items())
    attrs += f", transpose_a = #stablehlo<transpose {transpose}>"
    return d.one("triangular_solve", [a, b], dtype, b.shape, attrs)


@STATEMENTS.row("fft")
def _(d: Draft) -> SsaValue:
    return _transformed(d, d.choices.choose(("FFT", "IFFT")))


@STATEMENTS.row("fft of real numbers")
def _(d: Draft) -> SsaValue:
    """To complex ones, or back."""
    return _transformed(d, d.choices.choose(("IRFFT", "RFFT")))


def _transformed(d: Draft, kind: str) -> SsaValue:
    """Over the last one to three axes."""
    axes = d.choices.choose((2, 1, 3, 2))
    x = d.operand(
        WIDE if kind == "RFFT" else COMPLEX,
        lambda v: len(v.shape) >= axes and prod(v.shape) <= MOST // 2 and max(v.shape) <= 16,
    )
    axes = min(axes, x.rank)
    lengths, shape = list(x.shape[-axes:]), list(x.shape)
    dtype = x.dtype
    if kind == "IRFFT":
        # the last length may be even or odd
        lengths[-1] = shape[-1] = max(1, 2 * (x.shape[-1] - 1) + d.choices.pick(2))
        dtype = x.dtype.real
    if kind == "RFFT":
        shape[-1] = shape[-1] // 2 + 1
        dtype = x.dtype.complex
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(lengths)}"
    return d.one("fft", [x], dtype, tuple(shape), attrs)
