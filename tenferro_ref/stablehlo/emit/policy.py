"""What a program's policy asks for beyond StableHLO's meaning of an op (SEMANTICS 0).

Applied before an op's row. An op is refused where the policy demands an error that depends on values, since XLA has none; the
windows of a Scatter are placed as the policy has them. Dtypes and empty reductions are checked by the op's rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import INTEGER_FAULTS, Op, Policy
from tenferro_ref.stablehlo.writer import Body, SsaValue

#: Which operand of an op holds indices.
_INDICES: dict[type[Op], int] = {
    ops.Gather: 1, ops.GatherDynamicSliceSizes: 1, ops.Scatter: 1, ops.DynamicSlice: 1, ops.DynamicUpdateSlice: 2,
}  # fmt: skip


def within_policy(op: Op, body: Body, policy: Policy, operands: Sequence[SsaValue]) -> Sequence[SsaValue]:
    """Operands for the row of `op` such that StableHLO's meaning is the program's.

    Raises
    ------
    UnsupportedOp
        The policy demands an error that depends on values.
    """
    what = INTEGER_FAULTS.get(type(op))
    if what is not None and operands[0].dtype.is_int and policy.integer_faults == "error":
        raise UnsupportedOp(op=op.name, reason=f'{what} must be an error under integer_faults="error"; XLA has none')
    position = _INDICES.get(type(op))
    if position is not None and operands[position].dtype.is_float:
        reason = "a float index that is no exact integer must be an error, XLA has none; convert the indices to I64"
        raise UnsupportedOp(op=op.name, reason=reason)
    if isinstance(op, ops.Scatter):
        x, indices, updates = operands
        return x, _window_starts(op, body, policy, x, indices, updates), updates
    return operands


def _window_starts(
    op: ops.Scatter, body: Body, policy: Policy, x: SsaValue, indices: SsaValue, updates: SsaValue
) -> SsaValue:
    """Starts whose windows lie wholly inside or, where the policy skips them, wholly outside the operand.

    Of a window that is partly outside, StableHLO's specification skips the outside elements and XLA the whole window
    (measured: jaxlib's interpreter, and every plugin), as the policy has it: no such window is left to disagree about.
    """
    axes = op.scatter_dims_to_operand_dims
    window_axes = (axis for axis in range(x.rank) if axis not in op.inserted_window_dims)
    sizes = dict(zip(window_axes, (updates.shape[dim] for dim in op.update_window_dims), strict=True))
    skip = policy.scatter_bounds == "skip"
    if not axes or (skip and all(sizes.get(axis, 1) <= 1 for axis in axes)):
        return indices
    if skip and max(x.shape[axis] for axis in axes) > indices.dtype.limits[1]:  # no index of this dtype is outside
        indices = body.convert(indices, DType.I64)

    def by_component(values: Sequence[int]) -> SsaValue:
        """`values`, one a component of the index vectors, in the shape of the indices."""
        largest = indices.dtype.limits[1]
        fitting = [min(value, largest) for value in values]
        if len(set(values)) == 1:
            return body.filled(fitting[0], indices.dtype, indices.shape)
        return body.broadcast(body.vector(fitting, indices.dtype), indices.shape, [op.index_vector_dim])

    zero = body.filled(0, indices.dtype, indices.shape)
    inside = body.same("clamp", zero, indices, by_component([x.shape[axis] - sizes.get(axis, 1) for axis in axes]))
    if not skip:
        return inside
    outside = by_component([x.shape[axis] for axis in axes])
    return body.select(body.compare("EQ", inside, indices), indices, outside)
