"""Programs as StableHLO modules: walks a `LoweringView` and asks each op's row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tenferro_ref import ops
from tenferro_ref.dtype import FLOAT, DType
from tenferro_ref.errors import InvalidProgram, UnsupportedDType, UnsupportedOp
from tenferro_ref.extensions.standard import standard_view
from tenferro_ref.ops import PHASE1, Op
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo.emit.policy import within_policy
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.writer import Body, Value


def lower_to_stablehlo(view: LoweringView, *, phase1_only: bool = False) -> str:
    """StableHLO text of a program at the view's input shapes.

    Parameters
    ----------
    phase1_only
        Refuse what the engine's XLA path refuses: ops other than `PHASE1`, dtypes other than F32 and F64.

    Raises
    ------
    UnsupportedOp, UnsupportedDType, NonStaticShape, InvalidProgram
        The program cannot be said in StableHLO, or not in the asked-for subset (SEMANTICS 7.3).
    ValidationError
        A symbolic program whose op's rule breaks at these input shapes: what the native executor raises too.
    """
    body = Body()
    return body.module(lower_into(body, view, phase1_only=phase1_only))


def lower_into(
    body: Body, view: LoweringView, operands: Sequence[Value] | None = None, *, phase1_only: bool = False
) -> list[Value]:
    """Write a program to `body`; the program's outputs. Errors as `lower_to_stablehlo`.

    Parameters
    ----------
    operands
        Values that stand for the program's inputs, of their types; None makes new parameters.
    """
    view = standard_view(view)
    dtypes = FLOAT if phase1_only else frozenset(DType)
    env: dict[int, Value] = {}

    def read(slot: int, reader: str) -> Value:
        if slot not in env:
            raise InvalidProgram(detail=f"{reader} reads slot {slot}, which has no value there")
        return env[slot]

    for i, (slot, spec) in enumerate(zip(view.input_slots, view.input_specs, strict=True)):
        if spec.dtype not in dtypes:
            raise UnsupportedDType(dtype=spec.dtype.name, context="program input")
        env[slot] = body.parameter(spec.dtype, spec.static_shape) if operands is None else operands[i]
    for ins in view.instructions():
        op, name = ins.op, ins.op_name
        if phase1_only and type(op) not in PHASE1:
            raise UnsupportedOp(op=name, reason="outside Phase 1")
        inputs = [read(slot, name) for slot in ins.input_slots]
        types = ins.static_output_types()
        row = EMIT[type(op)]
        if types[0].dtype not in dtypes:
            raise UnsupportedDType(dtype=types[0].dtype.name, context=_CONTEXTS.get(type(op), "instruction output"))
        adapted = within_policy(op, body, view.policy, inputs)
        if isinstance(op, ops.Extension):
            results = row(op, body, types, *adapted)
        else:
            results = (row(op, body, types[0].shape, *adapted),)
        env.update(zip(ins.output_slots, results, strict=True))
    return [read(slot, f"output {i}") for i, slot in enumerate(view.output_slots)]


#: What a dtype is refused as, for ops where it is not an "instruction output".
_CONTEXTS: dict[type[Op], str] = {
    ops.Constant: "constant",
    ops.Convert: "convert target",
    ops.ReduceSum: "reduce init",
    ops.DotGeneral: "dot_general output",
}


def fingerprint(text: str) -> str:
    """64 hex digits that identify a module's text (its SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()
