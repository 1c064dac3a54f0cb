"""Shape rules on symbolic and bounded extents (SEMANTICS 3): what they infer, and that a bound never becomes exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_ref.dims import DimOp, Extent, InputDim, Unknown, UpperBound, expr_of, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, ShapeMismatch, TenferroError
from tenferro_ref.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Compare,
    CompareDir,
    Concatenate,
    DotGeneral,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    EmbedDiag,
    ExtractDiag,
    Gather,
    Maximum,
    Multiply,
    Op,
    Pad,
    PadToMatch,
    ReduceSum,
    Reshape,
    Reverse,
    Scatter,
    Select,
    Slice,
    TensorType,
    Transpose,
    Tril,
)

N, M, D = InputDim(0, 0), InputDim(1, 0), InputDim


def t(*shape: Extent, dtype: DType = DType.F64) -> TensorType:
    return TensorType(dtype, shape)


I64 = t(dtype=DType.I64)


def op(kind: str, a: Extent, b: Extent) -> DimOp:
    return DimOp(kind, expr_of(a), expr_of(b))  # type: ignore[arg-type]


RULES: list[tuple[Op, tuple[TensorType, ...], TensorType]] = [
    # two distinct symbols infer their maximum, equal ones themselves
    (Add(), (t(N, 3), t(M, 3)), t(op("max", N, M), 3)),
    (Multiply(), (t(N), t(N)), t(N)),
    (Add(), (t(N), t(5)), t(op("max", N, 5))),
    (Add(), (t(UpperBound(4)), t(UpperBound(4))), t(UpperBound(4))),
    (Add(), (t(UpperBound(4)), t(4)), t(UpperBound(4))),
    (Add(), (t(UpperBound(4)), t(6)), t(UpperBound(6))),
    (Add(), (t(UpperBound(N)), t()), t(UpperBound(N))),
    (Maximum(), (t(N), t(M)), t(N)),
    (Compare(CompareDir.Lt), (t(N), t(3)), t(N, dtype=DType.Bool)),
    (Transpose((1, 0)), (t(N, UpperBound(3)),), t(UpperBound(3), N)),
    (Reshape((D(1, 0), D(2, 0))), (t(12), t(N), t(M)), t(N, M)),
    (Reshape((op("mul", N, D(0, 1)),)), (t(UpperBound(5), 3),), t(UpperBound(15))),
    (Reshape((op("floordiv", N, 2), 2)), (t(M),), t(op("floordiv", M, 2), 2)),
    (BroadcastInDim((D(1, 0), D(0, 0)), (1,)), (t(N), t(M)), t(M, N)),
    (ExtractDiag(0, 1), (t(N, N),), t(N)),
    (ExtractDiag(0, 1), (t(N, M),), t(op("min", N, M))),
    (ExtractDiag(0, 1), (t(UpperBound(4), 3),), t(UpperBound(3))),
    (EmbedDiag(0, 1), (t(UpperBound(N)),), t(UpperBound(N), UpperBound(N))),
    (Tril(0), (t(N, M),), t(N, M)),
    (ReduceSum((0,)), (t(N, UpperBound(M)),), t(UpperBound(M))),
    (Reverse((0,)), (t(N),), t(N)),
    # Pad: interior 0 -> dim+low+high, else (dim-1)(interior+1)+1+edges
    (Pad((1,), (2,), (0,)), (t(N),), t(op("add", N, 3))),
    (Pad((1,), (-3,), (0,)), (t(N),), t(op("sub", N, 2))),
    (Pad((0,), (0,), (0,)), (t(UpperBound(N)),), t(UpperBound(op("add", N, 0)))),
    (Pad((1,), (0,), (2,)), (t(N),), t(op("add", op("add", op("mul", op("sub", N, 1), 3), 1), 1))),
    (Pad((-1,), (0,), (0,)), (t(UpperBound(5)),), t(Unknown(4))),
    # Concatenate sums
    (Concatenate(0), (t(N), t(M), t(2)), t(op("add", op("add", N, M), 2))),
    (Concatenate(0), (t(UpperBound(3)), t(2)), t(UpperBound(5))),
    (Concatenate(1), (t(N, 2), t(N, 3)), t(N, 5)),
    # DynamicTruncate keeps the extent as a bound; PadToMatch takes Max on its axis only
    (DynamicTruncate(1), (t(N, 5), I64), t(N, UpperBound(5))),
    (DynamicTruncate(0), (t(N), I64), t(UpperBound(N))),
    (DynamicTruncate(0), (t(Unknown(N)), I64), t(Unknown(N))),
    (PadToMatch(0), (t(N, 3), t(M, 9)), t(op("max", N, M), 3)),
    (PadToMatch(0), (t(N), t(N)), t(N)),
    (PadToMatch(0), (t(UpperBound(3)), t(7)), t(UpperBound(7))),
    (DynamicSlice((2,)), (t(N), t(1, dtype=DType.I64)), t(2)),
    (DynamicUpdateSlice(), (t(N), t(M), t(1, dtype=DType.I64)), t(N)),
    (Gather((1,), (0,), (0,), 1, (1, 3)), (t(N, 3), t(M, 1, dtype=DType.I64)), t(M, 3)),
    (Scatter((1,), (0,), (0,), 1), (t(N, 3), t(M, 1, dtype=DType.I64), t(M, 3)), t(N, 3)),
    (DotGeneral((1,), (0,), (), ()), (t(N, 3), t(3, M)), t(N, M)),
    (DotGeneral((1,), (1,), (0,), (0,)), (t(UpperBound(4), N, 2), t(4, M, 5)), t(2, 5, UpperBound(4))),
]


@pytest.mark.parametrize(("rule", "inputs", "result"), RULES, ids=lambda v: v.name if isinstance(v, Op) else "")
def test_rule(rule: Op, inputs: tuple[TensorType, ...], result: TensorType) -> None:
    assert rule.result_types(inputs) == (result,)


@pytest.mark.parametrize(
    ("rule", "inputs"),
    [
        (Add(), (t(N, 3), t(M, 4))),
        (Reshape((D(0, 0), 4)), (t(2, 3),)),
        (BroadcastInDim((N, 4), (1,)), (t(3),)),
        (Concatenate(0), (t(N, 2), t(M, 3))),
        (DotGeneral((1,), (0,), (), ()), (t(N, 3), t(4, M))),
        (Select(), (t(N, 2, dtype=DType.Bool), t(N, 2), t(N, 3))),
    ],
)
def test_what_no_run_could_mend_is_refused_at_once(rule: Op, inputs: tuple[TensorType, ...]) -> None:
    with pytest.raises(ShapeMismatch):
        rule.result_types(inputs)


def test_slices_need_constant_sizes() -> None:
    for extent in (N, UpperBound(5), Unknown(5)):
        with pytest.raises(InvalidArgument) as caught:
            Slice((0,), (2,), (1,)).result_types((t(extent),))
        assert caught.value.op == "Slice"


def test_a_bound_of_one_does_not_broadcast_for_sure() -> None:
    """UpperBound(1) may be 0 at run time: inference lets it through and claims nothing."""
    assert BroadcastInDim((5,), (0,)).result_types((t(UpperBound(1)),)) == (t(5),)


_extents = st.sampled_from([UpperBound(4), UpperBound(N), Unknown(4), UpperBound(op("add", N, M))])
#: Ops whose result keeps or combines the first operand's axis 0.
_KEEPERS: tuple[tuple[Op, int], ...] = (
    (Abs(), 1),
    (Add(), 2),
    (Transpose((0,)), 1),
    (Reverse((0,)), 1),
    (Reshape((D(0, 0),)), 1),
    (BroadcastInDim((D(0, 0),), (0,)), 1),
    (Pad((1,), (0,), (0,)), 1),
    (Pad((0,), (0,), (2,)), 1),
    (Concatenate(0), 2),
    (EmbedDiag(0, 0), 1),
    (DotGeneral((), (), (), ()), 1),
    (PadToMatch(0), 2),
    (DotGeneral((), (), (0,), (0,)), 2),
)


@given(st.sampled_from(_KEEPERS), _extents, st.sampled_from([4, N, M, UpperBound(2)]))
def test_a_bound_never_becomes_exact(keeper: tuple[Op, int], bounded: Extent, other: Extent) -> None:
    rule, operands = keeper
    inputs = (t(bounded), t(other) if operands == 2 else t())[: max(operands, rule.arity)]
    try:
        (result,) = rule.result_types(inputs)
    except TenferroError:
        return
    assert not is_exact(result.shape[0])


def test_shapes_print_with_what_is_known_of_them() -> None:
    assert str(t(N, UpperBound(3), Unknown(M))) == "F64[in0.0, <=3, ?in1.0]"
    assert not t(N).is_static
    assert t(2, 3).is_static
