"""Emission of Extension: what `tenferro_ref.stablehlo.extensions` says of the family's op, or a refusal."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.errors import Internal, UnsupportedOp
from tenferro_ref.ops import TensorType
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.extensions import EXTENSIONS
from tenferro_ref.stablehlo.writer import Body, Value


@EMIT.row(ops.Extension)
def _(op: ops.Extension, body: Body, outputs: tuple[TensorType, ...], *operands: Value) -> tuple[Value, ...]:
    lowering = EXTENSIONS.get((op.family, op.op))
    if lowering is None:
        raise UnsupportedOp(op=op.name, reason=f"{op.op} of {op.family!r} has no lowering to StableHLO")
    results = tuple(lowering(op, body, outputs, *operands))
    given = tuple(TensorType(v.dtype, v.shape) for v in results)
    if given != outputs:
        said = [", ".join(map(str, types)) for types in (given, outputs)]
        raise Internal(detail=f"the lowering of {op.op} of {op.family!r} gave {said[0]}; its rule says {said[1]}")
    return results
