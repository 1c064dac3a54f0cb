"""Shape rules on symbolic and bounded extents (SEMANTICS 3): what they infer, and that a bound never becomes exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, Extent, InputDim, Unknown, UpperBound, expr_of, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, ShapeMismatch, TenferroError
from tenferro_ref.ops import CompareDir, Op, TensorType

N, M, D = InputDim(0, 0), InputDim(1, 0), InputDim


def t(*shape: Extent, dtype: DType = DType.F64) -> TensorType:
    return TensorType(dtype, shape)


I64 = t(dtype=DType.I64)


def op(kind: str, a: Extent, b: Extent) -> DimOp:
    return DimOp(kind, expr_of(a), expr_of(b))  # type: ignore[arg-type]


RULES: list[tuple[Op, tuple[TensorType, ...], TensorType]] = [
    # two distinct symbols infer their maximum, equal ones themselves
    (ops.Add(), (t(N, 3), t(M, 3)), t(op("max", N, M), 3)),
    (ops.Multiply(), (t(N), t(N)), t(N)),
    (ops.Add(), (t(N), t(5)), t(op("max", N, 5))),
    (ops.Add(), (t(UpperBound(4)), t(UpperBound(4))), t(UpperBound(4))),
    (ops.Add(), (t(UpperBound(4)), t(4)), t(UpperBound(4))),
    (ops.Add(), (t(UpperBound(4)), t(6)), t(UpperBound(6))),
    (ops.Add(), (t(UpperBound(N)), t()), t(UpperBound(N))),
    (ops.Maximum(), (t(N), t(M)), t(N)),
    (ops.Compare(CompareDir.Lt), (t(N), t(3)), t(N, dtype=DType.Bool)),
    (ops.Transpose((1, 0)), (t(N, UpperBound(3)),), t(UpperBound(3), N)),
    (ops.Reshape((D(1, 0), D(2, 0))), (t(12), t(N), t(M)), t(N, M)),
    (ops.Reshape((op("mul", N, D(0, 1)),)), (t(UpperBound(5), 3),), t(UpperBound(15))),
    (ops.Reshape((op("floordiv", N, 2), 2)), (t(M),), t(op("floordiv", M, 2), 2)),
    (ops.BroadcastInDim((D(1, 0), D(0, 0)), (1,)), (t(N), t(M)), t(M, N)),
    (ops.ExtractDiag(0, 1), (t(N, N),), t(N)),
    (ops.ExtractDiag(0, 1), (t(N, M),), t(op("min", N, M))),
    (ops.ExtractDiag(0, 1), (t(UpperBound(4), 3),), t(UpperBound(3))),
    (ops.EmbedDiag(0, 1), (t(UpperBound(N)),), t(UpperBound(N), UpperBound(N))),
    (ops.Tril(0), (t(N, M),), t(N, M)),
    (ops.ReduceSum((0,)), (t(N, UpperBound(M)),), t(UpperBound(M))),
    (ops.Reverse((0,)), (t(N),), t(N)),
    # Pad: interior 0 -> dim+low+high, else (dim-1)(interior+1)+1+edges
    (ops.Pad((1,), (2,), (0,)), (t(N),), t(op("add", N, 3))),
    (ops.Pad((1,), (-3,), (0,)), (t(N),), t(op("sub", N, 2))),
    (ops.Pad((0,), (0,), (0,)), (t(UpperBound(N)),), t(UpperBound(op("add", N, 0)))),
    (ops.Pad((1,), (0,), (2,)), (t(N),), t(op("add", op("sub", op("max", op("mul", N, 3), 2), 2), 1))),
    (ops.Pad((-1,), (0,), (0,)), (t(UpperBound(5)),), t(Unknown(4))),
    # Concatenate sums
    (ops.Concatenate(0), (t(N), t(M), t(2)), t(op("add", op("add", N, M), 2))),
    (ops.Concatenate(0), (t(UpperBound(3)), t(2)), t(UpperBound(5))),
    (ops.Concatenate(1), (t(N, 2), t(N, 3)), t(N, 5)),
    # DynamicTruncate keeps the extent as a bound; PadToMatch takes Max on its axis only
    (ops.DynamicTruncate(1), (t(N, 5), I64), t(N, UpperBound(5))),
    (ops.DynamicTruncate(0), (t(N), I64), t(UpperBound(N))),
    (ops.DynamicTruncate(0), (t(Unknown(N)), I64), t(Unknown(N))),
    (ops.PadToMatch(0), (t(N, 3), t(M, 9)), t(op("max", N, M), 3)),
    (ops.PadToMatch(0), (t(N), t(N)), t(N)),
    (ops.PadToMatch(0), (t(UpperBound(3)), t(7)), t(UpperBound(7))),
    (ops.DynamicSlice((2,)), (t(N), t(1, dtype=DType.I64)), t(2)),
    (ops.DynamicUpdateSlice(), (t(N), t(M), t(1, dtype=DType.I64)), t(N)),
    (ops.Gather((1,), (0,), (0,), 1, (1, 3)), (t(N, 3), t(M, 1, dtype=DType.I64)), t(M, 3)),
    (ops.Scatter((1,), (0,), (0,), 1), (t(N, 3), t(M, 1, dtype=DType.I64), t(M, 3)), t(N, 3)),
    (ops.DotGeneral((1,), (0,), (), ()), (t(N, 3), t(3, M)), t(N, M)),
    (ops.DotGeneral((1,), (1,), (0,), (0,)), (t(UpperBound(4), N, 2), t(4, M, 5)), t(2, 5, UpperBound(4))),
]


@pytest.mark.parametrize(("rule", "inputs", "result"), RULES, ids=lambda v: v.name if isinstance(v, Op) else "")
def test_rule(rule: Op, inputs: tuple[TensorType, ...], result: TensorType) -> None:
    assert rule.result_types(inputs) == (result,)


@pytest.mark.parametrize(
    ("rule", "inputs"),
    [
        (ops.Add(), (t(N, 3), t(M, 4))),
        (ops.Reshape((D(0, 0), 4)), (t(2, 3),)),
        (ops.BroadcastInDim((N, 4), (1,)), (t(3),)),
        (ops.Concatenate(0), (t(N, 2), t(M, 3))),
        (ops.DotGeneral((1,), (0,), (), ()), (t(N, 3), t(4, M))),
        (ops.Select(), (t(N, 2, dtype=DType.Bool), t(N, 2), t(N, 3))),
    ],
)
def test_what_no_run_could_mend_is_refused_at_once(rule: Op, inputs: tuple[TensorType, ...]) -> None:
    with pytest.raises(ShapeMismatch):
        rule.result_types(inputs)


def test_slices_need_constant_sizes() -> None:
    for extent in (N, UpperBound(5), Unknown(5)):
        with pytest.raises(InvalidArgument) as caught:
            ops.Slice((0,), (2,), (1,)).result_types((t(extent),))
        assert caught.value.op == "Slice"


def test_a_bound_of_one_does_not_broadcast_for_sure() -> None:
    """UpperBound(1) may be 0 at run time: inference lets it through and claims nothing."""
    assert ops.BroadcastInDim((5,), (0,)).result_types((t(UpperBound(1)),)) == (t(5),)


_extents = st.sampled_from([UpperBound(4), UpperBound(N), Unknown(4), UpperBound(op("add", N, M))])
#: Ops whose result keeps or combines the first operand's axis 0.
_KEEPERS: tuple[tuple[Op, int], ...] = (
    (ops.Abs(), 1),
    (ops.Add(), 2),
    (ops.Transpose((0,)), 1),
    (ops.Reverse((0,)), 1),
    (ops.Reshape((D(0, 0),)), 1),
    (ops.BroadcastInDim((D(0, 0),), (0,)), 1),
    (ops.Pad((1,), (0,), (0,)), 1),
    (ops.Pad((0,), (0,), (2,)), 1),
    (ops.Concatenate(0), 2),
    (ops.EmbedDiag(0, 0), 1),
    (ops.DotGeneral((), (), (), ()), 1),
    (ops.PadToMatch(0), 2),
    (ops.DotGeneral((), (), (0,), (0,)), 2),
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
