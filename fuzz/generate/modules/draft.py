"""`Draft`: a StableHLO module in the making. Its values, how operands are found or made, and the text of operations.

What an operation looks like is in `fuzz.generate.modules.statements`; how a module becomes a case is in `fuzz.generate.modules.cases`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.random import PCG64, Generator

from fuzz.generate.choices import Choices, Weighted
from fuzz.generate.config import FOREIGN_DTYPES, Regime
from fuzz.generate.shapes import EXTENTS, RANKS
from fuzz.generate.values.recipes import Recipe, array_of, draw_recipe, draw_scalar
from tenferro_ref.dtype import ENGINE_DTYPES, INEXACT, DType
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import Body, SsaValue
from tenferro_ref.tensor import Array

#: Results of an operation: dtype and shape of each.
Results: TypeAlias = Sequence[tuple[DType, Shape]]

#: The most elements of a value that a statement takes or makes: sorts and windows cost the reference their square.
MOST = 600
#: Chances of the element types of new arguments; a statement takes the first one that it admits.
_DTYPES: Weighted[DType] = Weighted(
    [(DType.F32, 30), (DType.F64, 12), (DType.I32, 10), (DType.I64, 6), (DType.Bool, 4), (DType.C32, 4), (DType.C64, 2)]
    + [(dtype, 3) for dtype in FOREIGN_DTYPES]
)
_WINDOWS = r"(?:window_strides|\w+_dilations?) = array<i64: 1(?:, 1)*>|padding = dense<\[\[0, 0\](?:, \[0, 0\])*\]> : tensor<\d+x2xi64>"
#: By operation: attributes that may be left out, each with the value that it then has.
_IMPLIED = {
    "cholesky": "lower = false",
    **dict.fromkeys(("gather", "scatter"), "(?:indices_are_sorted|unique_indices) = false"),
    **dict.fromkeys(("reduce_window", "select_and_scatter"), _WINDOWS),
    "convolution": rf"{_WINDOWS}|window_reversal = array<i1: false(?:, false)*>",
}
FLOATS = frozenset({DType.F32, DType.F64, DType.F16, DType.BF16})
WIDE = frozenset({DType.F32, DType.F64})
INTS = frozenset(d for d in (*ENGINE_DTYPES, *FOREIGN_DTYPES) if d.is_int)
COMPLEX = frozenset({DType.C32, DType.C64})
REAL = FLOATS | INTS
NUMBERS = REAL | COMPLEX
ORDERED = REAL | {DType.Bool}
ALL = NUMBERS | {DType.Bool}


class Draft(Body):
    """The body of `main`, with the values that statements may read.

    Parameters
    ----------
    choices
        Source of all decisions.
    regime
        How the values of arguments are drawn.
    """

    def __init__(self, choices: Choices, regime: Regime) -> None:
        super().__init__()
        self.choices = choices
        self.regime = regime
        #: Every value that may be read, in the order in which they were made.
        self.pool: list[SsaValue] = []
        #: What each argument is that was drawn here, by name.
        self.values: dict[str, Array] = {}
        #: Names of values that no later operation may read: part of them is open.
        self.unread: set[str] = set()
        self._functions: list[str] = []

    @property
    def parameters(self) -> tuple[SsaValue, ...]:
        """The arguments of `main`."""
        return tuple(self._parameters)

    # --- operands ---

    def operand(
        self, admitted: Collection[DType], fits: Callable[[SsaValue], bool] | None = None, *, empty: bool = False
    ) -> SsaValue:
        """A value of an admitted dtype for which `fits` holds: a recent one of the pool, or a new argument of rank 1 to 4.

        If it may be `empty`, it has no elements now and then.
        """
        if empty and self.choices.chance(4):
            shape = self.shape()
            axis = self.choices.pick(len(shape))
            return self.fresh(self.dtype(admitted), (*shape[:axis], 0, *shape[axis + 1 :]))
        fitting = [
            v for v in self.pool if v.dtype in admitted and 0 < prod(v.shape) <= MOST and (fits is None or fits(v))
        ]
        back = self.choices.near(1 + len(fitting))
        if back < len(fitting):
            return fitting[-1 - back]
        dtype = self.dtype(admitted)
        for _ in range(4):
            shape = self.shape()
            if fits is None or fits(SsaValue("", dtype, shape)):
                return self.fresh(dtype, shape)
        return self.fresh(dtype, (2, 3))

    def dtype(self, admitted: Collection[DType]) -> DType:
        """A dtype of `admitted`: that of the last value, a usual one, or any."""
        if self.pool and self.pool[-1].dtype in admitted and self.choices.chance(40):
            return self.pool[-1].dtype
        if self.choices.chance(30):
            return self.choices.choose([d for d in _DTYPES.entries() if d in admitted])
        drawn = _DTYPES(self.choices)
        return drawn if drawn in admitted else next(d for d in _DTYPES.entries() if d in admitted)

    def shape(self, least: int = 1) -> Shape:
        """A shape of at least so many axes, none of extent 0."""
        rank = min(max(least, RANKS(self.choices)), 4)
        shape = [max(1, EXTENTS(self.choices)) for _ in range(rank)]
        while prod(shape) > MOST:
            largest = max(range(rank), key=shape.__getitem__)
            shape[largest] = (shape[largest] + 1) // 2
        return tuple(shape)

    def fresh(self, dtype: DType, shape: Shape, recipe: Recipe | None = None) -> SsaValue:
        """A new argument; one in six is an array that the module brings along, which compilers fold.

        One in six that no recipe is given for has a -0, which what moves numbers must leave as it is.
        """
        if recipe is not None:
            return self.given(array_of(recipe, dtype, shape))
        made = array_of(draw_recipe(self.choices, dtype, self.regime), dtype, shape)
        if dtype in INEXACT and made.size and self.choices.chance(16):
            place = np.unravel_index(self.choices.integer(2) % made.size, shape)
            made[place] = complex(-0.0, -0.0) if dtype.is_complex else -0.0
        return self.given(made)

    def given(self, array: Array) -> SsaValue:
        """A new argument with this value, or the value as an array that the module brings along."""
        return self.array(array) if self.choices.chance(16) else self.argument(array)

    def argument(self, array: Array) -> SsaValue:
        """A new argument with this value."""
        value = self.parameter(DType.of(array), array.shape)
        self.values[value.name] = array
        return value

    def random(self) -> Generator:
        """A source of numbers for an array that no recipe makes."""
        return Generator(PCG64(self.choices.integer(2)))

    def like(self, value: SsaValue) -> SsaValue:
        """A value of the type of `value`, sometimes itself."""
        return self.typed(value.dtype, value.shape)

    def typed(self, dtype: DType, shape: Shape) -> SsaValue:
        """A value of a type: one of the pool, a constant that fills it, or a new argument."""
        same = [v for v in self.pool if (v.dtype, v.shape) == (dtype, shape)]
        mode = self.choices.pick(8)
        if same and mode < 5:
            return same[-1 - self.choices.near(len(same))]
        return self.filled(self.number(dtype), dtype, shape) if mode == 7 else self.fresh(dtype, shape)

    def number(self, dtype: DType) -> complex:
        """A number for a constant."""
        value: complex = draw_scalar(self.choices, dtype, self.regime)
        return value

    def scalar(self, dtype: DType) -> SsaValue:
        """A value of rank 0, a constant as a rule."""
        return self.fresh(dtype, ()) if self.choices.chance(25) else self.constant(self.number(dtype), dtype)  # type: ignore[arg-type]

    def axis(self, x: SsaValue) -> int:
        """One of the axes."""
        return self.choices.pick(x.rank)

    def axes(self, x: SsaValue) -> list[int]:
        """Some of the axes, at least one, in order."""
        chosen = [axis for axis in range(x.rank) if self.choices.chance(50)]
        return chosen or [self.axis(x)]

    # --- text ---

    def function_of(self, arguments: Sequence[tuple[str, str]], lines: Sequence[str], results: str, types: str) -> str:
        """The name of a new private function, of which these are the arguments, lines and results."""
        name = f"@called{len(self._functions)}"
        takes = ", ".join(f"{argument}: {t}" for argument, t in arguments)
        inner = "".join(f"    {line}\n" for line in [*lines, f"return {results} : {types}"])
        self._functions.append(f"  func.func private {name}({takes}) -> ({types}) {{\n{inner}  }}\n")
        return name

    def module(self, results: Sequence[SsaValue]) -> str:
        """The module, with the functions that `main` calls behind it."""
        return f"module {{\n{self.function(results)}{''.join(self._functions)}}}\n"

    def operation(
        self,
        name: str,
        operands: Sequence[SsaValue],
        attrs: str,
        results: Results,
        *regions: str,
        discardable: str = "",
    ) -> list[SsaValue]:
        """Append an operation in MLIR's generic form; of StableHLO unless the name has a dialect.

        Parameters
        ----------
        discardable
            Attributes that are not the operation's own.

        Returns
        -------
        list of values
            One a result.
        """
        full = name if "." in name else f"stablehlo.{name}"
        takes, gives = ", ".join(v.type for v in operands), ", ".join(type_text(*r) for r in results)
        inner = f" ({', '.join(f'{{{region}}}' for region in regions)})" if regions else ""
        attrs = self._shorter(name, attrs)
        attributes = f" <{{{attrs}}}>" if attrs else ""
        more = f" {{{discardable}}}" if discardable else ""
        text = f'"{full}"({", ".join(v.name for v in operands)}){attributes}{inner}{more} : ({takes}) -> ({gives})'
        value, several = f"%{len(self._lines)}", len(results) > 1
        self._lines.append(f"{value}{f':{len(results)}' if several else ''} = {text}")
        return [SsaValue(f"{value}#{i}" if several else value, *r) for i, r in enumerate(results)]

    def _shorter(self, name: str, attrs: str) -> str:
        """The attributes without some of those that say what holds if they are left out."""
        if name not in _IMPLIED:
            return attrs
        return re.sub(
            f"(?:^|, )(?:{_IMPLIED[name]})", lambda found: "" if self.choices.chance(50) else found[0], attrs
        ).removeprefix(", ")

    def one(
        self, name: str, operands: Sequence[SsaValue], dtype: DType, shape: Shape, attrs: str = "", *regions: str
    ) -> SsaValue:
        """An operation of one result."""
        return self.operation(name, operands, attrs, [(dtype, shape)], *regions)[0]


def array(numbers: Sequence[int]) -> str:
    """`array<i64: 1, 2>`: the value of an attribute."""
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def pairs(rows: Sequence[tuple[int, int]]) -> str:
    """`dense<[[0, 1]]> : tensor<1x2xi64>`: paddings."""
    return f"dense<{[list(row) for row in rows]}> : tensor<{len(rows)}x2xi64>"


def body(op: str, dtype: DType, count: int = 1) -> str:
    """A region that joins `count` pairs of scalars, each by `op`: of all first operands, then of all second ones."""
    t = type_text(dtype, ())
    names = [f"%p{i}" for i in range(2 * count)]
    lines = [f"%q{i} = stablehlo.{op} {names[i]}, {names[count + i]} : {t}" for i in range(count)]
    results = ", ".join(f"%q{i}" for i in range(count))
    return region([(name, t) for name in names], lines, results, ", ".join([t] * count))


def region(arguments: Sequence[tuple[str, str]], lines: Sequence[str], results: str, types: str) -> str:
    """A region of one block."""
    head = f"^bb0({', '.join(f'{name}: {t}' for name, t in arguments)}): " if arguments else ""
    return f"{head}{' '.join([*lines, f'stablehlo.return {results} : {types}'])}"
