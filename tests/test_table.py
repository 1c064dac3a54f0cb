"""`Table`: rows, declared holes, completeness."""

from __future__ import annotations

import pytest

from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import Abs, Add, Negate
from tenferro_ref.table import Table


def test_row_is_a_decorator_for_several_ops() -> None:
    table: Table[object] = Table("kernels")

    @table.row(Add, Negate)
    def kernel() -> None: ...

    assert table[Add] is kernel
    assert table[Negate] is kernel
    assert Add in table
    assert Abs not in table
    assert list(table) == [Add, Negate]


def test_a_missing_row_says_which_layer_and_why() -> None:
    table: Table[int] = Table("emission")
    table.unsupported("no such thing in StableHLO", Abs)
    with pytest.raises(UnsupportedOp) as caught:
        table[Abs]
    assert caught.value.op == "Abs"
    assert str(caught.value) == "Abs: not supported here: emission: no such thing in StableHLO"
    with pytest.raises(UnsupportedOp, match="no row and no reason declared"):
        table[Add]


def test_reason_is_none_only_where_there_is_a_row() -> None:
    table: Table[int] = Table("t")
    table[Add] = 1
    table.unsupported("because", Abs)
    assert (table.reason(Add), table.reason(Abs)) == (None, "because")
    assert table.reason(Negate) is not None


@pytest.mark.parametrize("first", ["row", "unsupported"])
@pytest.mark.parametrize("second", ["row", "unsupported"])
def test_one_entry_an_op(first: str, second: str) -> None:
    table: Table[int] = Table("t")

    def enter(how: str) -> None:
        if how == "row":
            table[Add] = 1
        else:
            table.unsupported("because", Add)

    enter(first)
    with pytest.raises(KeyError, match="Add"):
        enter(second)


def test_holes_are_ops_with_neither_row_nor_reason() -> None:
    table: Table[int] = Table("t")
    table[Add] = 1
    table.unsupported("because", Abs)
    assert table.holes([Add, Abs, Negate]) == [Negate]
    assert table.holes([Add, Abs]) == []


def test_rows_may_be_falsy() -> None:
    table: Table[int | None] = Table("t")
    table[Add] = None
    assert Add in table
    assert table[Add] is None
    assert table.holes([Add]) == []
