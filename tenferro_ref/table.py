"""The one registry mechanism of the project: a dictionary keyed by op class, or by extension family and op.

A layer (kernels, StableHLO emission, enclosures, strategies, ...) says what it does with each op in one `Table`. What an
op is does not live here: ops are declared in `tenferro_ref.ops`, extension families in `tenferro_ref.extensions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from tenferro_ref.errors import UnsupportedOp

Row = TypeVar("Row")
#: An op class; a name (of an extension family, or of an operation of StableHLO); or family and op of an extension.
Key: TypeAlias = type | str | tuple[str, str]


class Table(Generic[Row]):
    """The rows of one layer, one per op.

    Parameters
    ----------
    name
        What the layer is called in error messages and in the support matrix.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: dict[Key, Row] = {}
        self._unsupported: dict[Key, str] = {}

    def row(self, *keys: Key) -> Callable[[Row], Row]:
        """Decorator: the decorated object is the row of each of `keys`."""

        def add(value: Row) -> Row:
            for key in keys:
                self[key] = value
            return value

        return add

    def __setitem__(self, key: Key, value: Row) -> None:
        self._check_free(key)
        self._rows[key] = value

    def unsupported(self, reason: str, *keys: Key) -> None:
        """Declare that this layer does not handle `keys`, and why."""
        for key in keys:
            self._check_free(key)
            self._unsupported[key] = reason

    def _check_free(self, key: Key) -> None:
        if key in self._rows or key in self._unsupported:
            raise KeyError(f"table {self.name!r} already has an entry for {_label(key)}")

    def __getitem__(self, key: Key) -> Row:
        """The row of `key`.

        Raises
        ------
        UnsupportedOp
            If the op is declared unsupported here, or has no row at all.
        """
        try:
            return self._rows[key]
        except KeyError:
            raise UnsupportedOp(op=_label(key), reason=f"{self.name}: {self.reason(key)}") from None

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def reason(self, key: Key) -> str | None:
        """Why `key` has no row; None if it has one."""
        if key in self._rows:
            return None
        if getattr(key, "reference_only", False):
            return "the op exists for the reference alone; executors take the StableHLO module as it was handed in"
        return self._unsupported.get(key, "no row and no reason declared")

    def holes(self, keys: Iterable[Key]) -> list[Key]:
        """Those of `keys` with neither a row nor a declared reason: a complete table has none."""
        return [key for key in keys if key not in self._rows and key not in self._unsupported]


def _label(key: Key) -> str:
    return key.__name__ if isinstance(key, type) else key if isinstance(key, str) else key[1]
