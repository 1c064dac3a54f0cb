"""Other implementations of StableHLO: jaxlib's interpreter, and IREE. What each is known not to do is refused here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from oracle.peers.modules import ModuleExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import standard_ops_of
from tenferro_ref.isolation import Worker
from tenferro_ref.ops import Op
from tenferro_ref.program import LoweringView

#: What IREE computes by sine, cosine, hyperbolic tangent or atan2.
_UNLINKED: dict[DType, tuple[type[Op], ...]] = {
    DType.F64: (ops.Sin, ops.Cos, ops.Tanh),
    DType.C64: (ops.Sin, ops.Cos, ops.Tanh, ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sqrt, ops.Rsqrt, ops.Pow),
}


@dataclass(init=False)
class InterpreterExecutor(ModuleExecutor):
    """StableHLO's reference interpreter: denormals kept, one rounding an op.

    Its functions are those of the C library (tanh is off by more than an ULP now and then), so it is held to the model of the
    other executor that keeps denormals and calls such functions.
    """

    plain: ClassVar[bool] = True

    def __init__(self, worker: Worker) -> None:
        ModuleExecutor.__init__(self, "interpreter", worker, "numpy")

    def check(self, view: LoweringView) -> None:
        """It aborts on a contraction over nothing, and on what it does not know: transforms and decompositions."""
        for ins in view.instructions():
            if isinstance(ins.op, ops.Extension) and standard_ops_of(ins.op) is None:
                raise UnsupportedOp(op=ins.op_name, reason=f"the interpreter has no {ins.op.op}, and aborts on it")
            if isinstance(ins.op, ops.DotGeneral):
                lhs = view.static_type(ins.input_slots[0]).shape
                if any(lhs[axis] == 0 for axis in ins.op.lhs_contracting_dims):
                    raise UnsupportedOp(
                        op=ins.op_name, reason="the interpreter aborts on a contraction over no element"
                    )


@dataclass(init=False)
class IreeExecutor(ModuleExecutor):
    """IREE, compiled for the host's CPU."""

    plain: ClassVar[bool] = True

    def __init__(self, worker: Worker) -> None:
        ModuleExecutor.__init__(self, "iree", worker, "xla", programs_a_module=16)

    def check(self, view: LoweringView) -> None:
        """Its run-time library lacks double-precision functions; transforms and decompositions it does not know."""
        for ins in view.instructions():
            if isinstance(ins.op, ops.Extension) and standard_ops_of(ins.op) is None:
                raise UnsupportedOp(op=ins.op_name, reason=f"IREE has no {ins.op.op}")
            if isinstance(ins.op, _UNLINKED.get(ins.dtype, ())):
                raise UnsupportedOp(
                    op=ins.op_name, reason="IREE has no double-precision sine, cosine, atan2 and tanh to link"
                )
