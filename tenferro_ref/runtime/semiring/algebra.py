"""The algebras: what plus and times are, their identities, and the dtypes that they are defined for.

How tensors are contracted with them is in `core`. Two decisions hold for all tropical algebras:

- NaN propagates through plus, as it does through Maximum and Minimum. (Of the engine's tropical paths one ignores NaN
  and one keeps a leading NaN only; they cannot both be followed, and paths must agree.)
- -0 is smaller than +0, so that plus is commutative and associative in bits, NaN included, and neither a pass that
  reorders a contraction nor the choice of a path can show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import FLOAT, NUMERIC, DType
from tenferro_ref.errors import Unsupported
from tenferro_ref.ops import DEFAULT_POLICY, Op
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.runtime.kernels.base import Values, canonical
from tenferro_ref.runtime.kernels.elementwise import multiply
from tenferro_ref.tensor import column_major

Binary: TypeAlias = Callable[[Values, Values], Values]


class Plus(Protocol):
    """Addition of an algebra."""

    def __call__(self, x: Values, y: Values) -> Values:
        """Sum of two arrays, broadcast against each other."""
        ...

    def fold(self, x: Values, axes: tuple[int, ...]) -> Values:
        """Sum over `axes`, none of which is empty; they disappear."""
        ...


@dataclass(frozen=True, slots=True)
class Algebra:
    """A semiring.

    Attributes
    ----------
    zero, one
        Identities of plus and times; zero times anything finite is zero.
    dtypes
        What elements may be.
    empty_contraction
        A contraction over no element at all is zero; else it is an error unless the program's `empty_reduction` policy
        admits it, as the engine's tropical contractions have it.
    """

    name: str
    plus: Plus
    times: Binary
    zero: float
    one: float
    dtypes: frozenset[DType]
    empty_contraction: bool

    def admit(self, op: Op, *arrays: Values) -> None:
        """Every array has a dtype of this algebra.

        Raises
        ------
        Unsupported
            One has not.
        """
        for array in arrays:
            if DType.of(array) not in self.dtypes:
                elements = ", ".join(sorted(d.name for d in self.dtypes))
                detail = f"dtype {DType.of(array)} is not an element of {self.name}, which has {elements}"
                raise Unsupported(op=op.name, detail=detail)


def _add(x: Values, y: Values) -> Values:
    return canonical(np.add(x, y))


def _multiply(x: Values, y: Values) -> Values:
    return multiply(x, y, np.broadcast_shapes(x.shape, y.shape))


class _Sum:
    """Ordinary addition; the order of a sum is that of the ReduceSum kernel."""

    def __call__(self, x: Values, y: Values) -> Values:
        return _add(x, y)

    def fold(self, x: Values, axes: tuple[int, ...]) -> Values:
        return run_kernel(ops.ReduceSum(axes), DEFAULT_POLICY, x)[0]


class _Or:
    """Logical or; NumPy's product of Bools is the logical and."""

    def __call__(self, x: Values, y: Values) -> Values:
        return np.asarray(np.logical_or(x, y))

    def fold(self, x: Values, axes: tuple[int, ...]) -> Values:
        return column_major(np.asarray(np.logical_or.reduce(x, axis=axes)))


@dataclass(frozen=True, slots=True)
class _Extremum:
    """Maximum, or minimum as the negated maximum of what is negated."""

    sign: int

    def _keys(self, x: Values) -> Values:
        """Integers in the order of the floats, -0 before +0 and NaN last."""
        bits = canonical(np.negative(x) if self.sign < 0 else np.array(x)).view(f"i{x.itemsize}")
        return np.asarray(bits ^ ((bits >> (8 * x.itemsize - 1)) & np.iinfo(bits.dtype).max))

    def _floats(self, keys: Values, dtype: np.dtype[Any]) -> Values:
        bits = np.asarray(keys ^ ((keys >> (8 * keys.itemsize - 1)) & np.iinfo(keys.dtype).max))
        x = bits.view(dtype)
        return canonical(np.negative(x)) if self.sign < 0 else x

    def __call__(self, x: Values, y: Values) -> Values:
        return self._floats(np.maximum(self._keys(x), self._keys(y)), x.dtype)

    def fold(self, x: Values, axes: tuple[int, ...]) -> Values:
        return column_major(self._floats(np.maximum.reduce(self._keys(x), axis=axes), x.dtype))


_ALGEBRAS = (
    Algebra("standard", _Sum(), _multiply, 0, 1, NUMERIC, True),
    Algebra("max-plus", _Extremum(1), _add, -np.inf, 0, FLOAT, False),
    Algebra("min-plus", _Extremum(-1), _add, np.inf, 0, FLOAT, False),
    Algebra("max-times", _Extremum(1), _multiply, 0, 1, FLOAT, False),
    Algebra("boolean", _Or(), _multiply, 0, 1, frozenset({DType.Bool}), True),
)
#: The algebras by name. The elements of max-times are not negative: its zero is no identity of others, which nothing refuses.
ALGEBRAS = {algebra.name: algebra for algebra in _ALGEBRAS}
