"""The one registry mechanism of the project: a dictionary keyed by op class.

A layer (kernels, StableHLO emission, enclosures, strategies, ...) says what it does with each op in one `Table`. What an
op is does not live here: ops are declared in `tenferro_ref.ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from tenferro_ref.errors import UnsupportedOp

Row = TypeVar("Row")


class Table(Generic[Row]):
    """The rows of one layer, one per op class.

    Parameters
    ----------
    name
        What the layer is called in error messages and in the support matrix.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: dict[type, Row] = {}
        self._unsupported: dict[type, str] = {}

    def row(self, *ops: type) -> Callable[[Row], Row]:
        """Decorator: the decorated object is the row of each of `ops`."""

        def add(value: Row) -> Row:
            for op in ops:
                self[op] = value
            return value

        return add

    def __setitem__(self, op: type, value: Row) -> None:
        if op in self._rows or op in self._unsupported:
            raise KeyError(f"table {self.name!r} already has an entry for {op.__name__}")
        self._rows[op] = value

    def unsupported(self, reason: str, *ops: type) -> None:
        """Declare that this layer does not handle `ops`, and why."""
        for op in ops:
            if op in self._rows or op in self._unsupported:
                raise KeyError(f"table {self.name!r} already has an entry for {op.__name__}")
            self._unsupported[op] = reason

    def __getitem__(self, op: type) -> Row:
        """The row of `op`.

        Raises
        ------
        UnsupportedOp
            If the op is declared unsupported here, or has no row at all.
        """
        try:
            return self._rows[op]
        except KeyError:
            raise UnsupportedOp(op=op.__name__, reason=f"{self.name}: {self.reason(op)}") from None

    def __contains__(self, op: type) -> bool:
        return op in self._rows

    def __iter__(self) -> Iterator[type]:
        return iter(self._rows)

    def reason(self, op: type) -> str | None:
        """Why `op` has no row; None if it has one."""
        return None if op in self._rows else self._unsupported.get(op, "no row and no reason declared")

    def holes(self, ops: Iterable[type]) -> list[type]:
        """Those of `ops` with neither a row nor a declared reason: a complete table has none."""
        return [op for op in ops if op not in self._rows and op not in self._unsupported]
