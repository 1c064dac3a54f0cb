"""`Table`: rows, declared holes, completeness."""

from __future__ import annotations

import pytest

from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.table import Table


def test_row_is_a_decorator_for_several_ops() -> None:
    table: Table[object] = Table("kernels")

    @table.row(ops.Add, ops.Negate)
    def kernel() -> None: ...

    assert table[ops.Add] is kernel
    assert table[ops.Negate] is kernel
    assert ops.Add in table
    assert ops.Abs not in table
    assert list(table) == [ops.Add, ops.Negate]


def test_a_missing_row_says_which_layer_and_why() -> None:
    table: Table[int] = Table("emission")
    table.unsupported("no such thing in StableHLO", ops.Abs)
    with pytest.raises(UnsupportedOp) as caught:
        table[ops.Abs]
    assert caught.value.op == "Abs"
    assert str(caught.value) == "Abs: not supported here: emission: no such thing in StableHLO"
    with pytest.raises(UnsupportedOp, match="no row and no reason declared"):
        table[ops.Add]


def test_reason_is_none_only_where_there_is_a_row() -> None:
    table: Table[int] = Table("t")
    table[ops.Add] = 1
    table.unsupported("because", ops.Abs)
    assert (table.reason(ops.Add), table.reason(ops.Abs)) == (None, "because")
    assert table.reason(ops.Negate) is not None


@pytest.mark.parametrize("first", ["row", "unsupported"])
@pytest.mark.parametrize("second", ["row", "unsupported"])
def test_one_entry_an_op(first: str, second: str) -> None:
    table: Table[int] = Table("t")

    def enter(how: str) -> None:
        if how == "row":
            table[ops.Add] = 1
        else:
            table.unsupported("because", ops.Add)

    enter(first)
    with pytest.raises(KeyError, match="Add"):
        enter(second)


def test_holes_are_ops_with_neither_row_nor_reason() -> None:
    table: Table[int] = Table("t")
    table[ops.Add] = 1
    table.unsupported("because", ops.Abs)
    assert table.holes([ops.Add, ops.Abs, ops.Negate]) == [ops.Negate]
    assert table.holes([ops.Add, ops.Abs]) == []


def test_rows_may_be_falsy() -> None:
    table: Table[int | None] = Table("t")
    table[ops.Add] = None
    assert ops.Add in table
    assert table[ops.Add] is None
    assert table.holes([ops.Add]) == []
