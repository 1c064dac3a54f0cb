"""Short names in which the tables of the ops' type rules and of their errors are written."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import CompareDir, TensorType

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES
D = InputDim
LT = ops.Compare(CompareDir.Lt)
#: Those that take a real scalar beside a complex tensor.
MIXED = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide)
GATHER_ROWS = ops.Gather((1,), (0,), (0,), 1, (1, 3))


def t(dtype: DType, *shape: int) -> TensorType:
    """A type of any dtype."""
    return TensorType(dtype, shape)


def x(*shape: int) -> TensorType:
    """A type of F64."""
    return TensorType(F64, shape)
