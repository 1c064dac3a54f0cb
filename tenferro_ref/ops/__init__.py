"""The vocabulary: every ExecOp of the engine, declared once (SEMANTICS 2).

`OPS` lists them in the order of the seeds; a layer that handles ops keeps a `tenferro_ref.table.Table` keyed by class.
"""

from tenferro_ref.ops.attributes import CompareDir
from tenferro_ref.ops.base import (
    DEFAULT_POLICY,
    MAX_ELEMENTS,
    MAX_RANK,
    STABLEHLO,
    Category,
    Op,
    Policy,
    TensorType,
    check_admitted,
    check_size,
)
from tenferro_ref.ops.boundary import FAMILIES, Constant, Extension, ExtensionFamily
from tenferro_ref.ops.contraction import DotGeneral, DotGeneralWithConj, free_axes
from tenferro_ref.ops.elementwise import (
    Abs,
    Add,
    Clamp,
    Compare,
    Conj,
    Cos,
    Divide,
    Exp,
    Expm1,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Pow,
    Remainder,
    Rsqrt,
    Select,
    Sign,
    Sin,
    Sqrt,
    Subtract,
    Tanh,
)
from tenferro_ref.ops.indexing import (
    Concatenate,
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    Gather,
    GatherDynamicSliceSizes,
    Pad,
    PadToMatch,
    Reverse,
    Scatter,
    ShapeOf,
    Slice,
)
from tenferro_ref.ops.reduction import ReduceMax, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquares
from tenferro_ref.ops.reference import (
    REFERENCE,
    Bitcast,
    Bits,
    Complex,
    Imag,
    ReducePrecision,
    ReferenceOp,
    Repeated,
    Special,
    Special2,
    Whole,
)
from tenferro_ref.ops.structural import BroadcastInDim, Convert, EmbedDiag, ExtractDiag, Reshape, Transpose, Tril, Triu

ELEMENTWISE: tuple[type[Op], ...] = (
    Add, Multiply, Negate, Conj, Divide, Abs, Sign, Maximum, Minimum, Compare, Select, Clamp,
    Exp, Log, Sin, Cos, Tanh, Sqrt, Rsqrt, Pow, Expm1, Log1p, Subtract, Remainder,
)  # fmt: skip
#: Two operands of one shape, or one of rank 0 beside the other.
ARITHMETIC: tuple[type[Op], ...] = (Add, Subtract, Multiply, Divide, Pow, Remainder)
#: What the engine refuses of the right operand of these for integers, unless `integer_faults` admits it.
INTEGER_FAULTS: dict[type[Op], str] = {
    Divide: "a zero divisor",
    Remainder: "a zero divisor",
    Pow: "a negative exponent",
}
STRUCTURAL: tuple[type[Op], ...] = (
    Transpose, Reshape, BroadcastInDim, Convert, ExtractDiag, EmbedDiag, Tril, Triu,
)  # fmt: skip
REDUCTIONS: tuple[type[Op], ...] = (ReduceSum, ReduceProd, ReduceMax, ReduceMin, ReduceSumSquares)
CONTRACTIONS: tuple[type[Op], ...] = (DotGeneral, DotGeneralWithConj)
INDEXING: tuple[type[Op], ...] = (
    Gather, GatherDynamicSliceSizes, Scatter, Slice, DynamicSlice, DynamicUpdateSlice, Pad, Concatenate, Reverse,
    ShapeOf, DynamicTruncate, PadToMatch,
)  # fmt: skip
OPS: tuple[type[Op], ...] = (*ELEMENTWISE, *STRUCTURAL, *REDUCTIONS, *INDEXING, *CONTRACTIONS, Extension, Constant)
BY_NAME: dict[str, type[Op]] = {op.__name__: op for op in OPS}
#: All that a program may have: those of the reference alone, too.
KNOWN: dict[str, type[Op]] = BY_NAME | {op.__name__: op for op in REFERENCE}
#: What the engine's XLA path supports at present.
PHASE1: tuple[type[Op], ...] = (
    Constant, Add, Multiply, Negate, Divide, Abs, Exp, Log, Sin, Cos, Tanh, Sqrt, Rsqrt, Pow, Expm1, Log1p, Convert,
    Reshape, BroadcastInDim, Transpose, ReduceSum, ReduceSumSquares, DotGeneral,
)  # fmt: skip
