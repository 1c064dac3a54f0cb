"""Other implementations of StableHLO: jaxlib's interpreter, and IREE. Programs that they are known not to run are refused here."""

from __future__ import annotations

from typing import ClassVar

from oracle.peers.given import refuse_host_calls
from oracle.peers.modules import ModuleExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import standard_ops_of
from tenferro_ref.ops import Op
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.source import distributed

#: Ops that IREE computes with sine, cosine, hyperbolic tangent, atan2 or fmod.
_UNLINKED: dict[DType, tuple[type[Op], ...]] = {
    DType.F64: (ops.Sin, ops.Cos, ops.Tanh, ops.Remainder),
    DType.C64: (ops.Sin, ops.Cos, ops.Tanh, ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sqrt, ops.Rsqrt, ops.Pow),
}
_NO_DOUBLES = "IREE has no double-precision sine, cosine, tanh, atan2 and fmod to link"
#: The same as StableHLO's names, by element type.
_UNLINKED_NAMES = {
    "f64": ("sine", "cosine", "tan", "tanh", "atan2", "remainder"),
    "complex<f64>": (
        "sine", "cosine", "tan", "tanh", "atan2", "exponential", "exponential_minus_one", "log", "log_plus_one",
        "sqrt", "rsqrt", "power",
    ),
}  # fmt: skip
#: Operations that the interpreter lacks.
_UNINTERPRETED = ("cholesky", "rng_bit_generator", "triangular_solve")


class InterpreterExecutor(ModuleExecutor):
    """StableHLO's reference interpreter: subnormals kept, one rounding an op.

    Its functions are those of the C library (tanh is off by more than an ULP now and then), so it is held to the model of the
    native executor, which keeps subnormals and calls such functions, too.
    """

    def check(self, view: LoweringView) -> None:
        """Refuse what the interpreter aborts on: a contraction over no element, transforms, decompositions."""
        for ins in view.instructions():
            if isinstance(ins.op, ops.Extension) and standard_ops_of(ins.op) is None:
                raise UnsupportedOp(op=ins.op_name, reason=f"the interpreter has no {ins.op.op}, and aborts on it")
            if isinstance(ins.op, ops.DotGeneral):
                lhs = view.static_type(ins.input_slots[0]).shape
                if any(lhs[axis] == 0 for axis in ins.op.lhs_contracting_dims):
                    raise UnsupportedOp(
                        op=ins.op_name, reason="the interpreter aborts on a contraction over no element"
                    )

    def check_source(self, source: Source) -> None:
        """Refuse what the interpreter aborts on: collectives, custom calls, decompositions, random bits, transforms of complex<f32>."""
        refuse_host_calls(source)
        for name, element in sorted(source.ops):
            if reason := distributed(name):
                raise UnsupportedOp(op=name, reason=reason)
            if name.startswith("custom_call:") or name in _UNINTERPRETED:
                raise UnsupportedOp(op=name, reason="the interpreter does not have it, and aborts on it")
            if name == "fft" and element == "complex<f32>":
                raise UnsupportedOp(op=name, reason="the interpreter aborts on a transform of complex<f32>")


class IreeExecutor(ModuleExecutor):
    """IREE, compiled for the host's CPU."""

    plain: ClassVar[bool] = True

    def check(self, view: LoweringView) -> None:
        """Refuse what needs double-precision functions that IREE's library lacks, transforms, and decompositions."""
        for ins in view.instructions():
            if isinstance(ins.op, ops.Extension) and standard_ops_of(ins.op) is None:
                raise UnsupportedOp(op=ins.op_name, reason=f"IREE has no {ins.op.op}")
            if isinstance(ins.op, _UNLINKED.get(ins.dtype, ())):
                raise UnsupportedOp(op=ins.op_name, reason=_NO_DOUBLES)

    def check_source(self, source: Source) -> None:
        """Refuse what needs double-precision functions that IREE's library lacks."""
        for name, element in sorted(source.ops):
            if name in _UNLINKED_NAMES.get(element, ()):
                raise UnsupportedOp(op=name, reason=_NO_DOUBLES)
