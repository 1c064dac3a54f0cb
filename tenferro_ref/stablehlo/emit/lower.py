"""Programs as StableHLO modules: a `LoweringView` is walked, and each op is written by its row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tenferro_ref import ops
from tenferro_ref.dtype import FLOAT, DType
from tenferro_ref.errors import InvalidProgram, UnsupportedDType, UnsupportedOp
from tenferro_ref.extensions import standard_ops_of
from tenferro_ref.ops import PHASE1, Op, Policy, TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView
from tenferro_ref.stablehlo.emit.kernel_call import NONE, OwnKernels, kernel_call
from tenferro_ref.stablehlo.emit.policy import within_policy
from tenferro_ref.stablehlo.emit.table import EMIT
from tenferro_ref.stablehlo.writer import Body, SsaValue


def lower_to_stablehlo(view: LoweringView, *, phase1_only: bool = False) -> str:
    """StableHLO text of a program at the view's input shapes.

    Parameters
    ----------
    phase1_only
        Refuse what the engine's XLA path refuses: ops other than `PHASE1`, dtypes other than F32 and F64.

    Raises
    ------
    UnsupportedOp, UnsupportedDType, NonStaticShape, InvalidProgram
        The program has no form in StableHLO, or none in Phase 1 (SEMANTICS 7.3).
    ValidationError
        A symbolic program whose op's rule breaks at these input shapes: what the native executor raises too.
    """
    body = Body()
    return body.module(lower_into(body, view, phase1_only=phase1_only))


def lower_into(
    body: Body,
    view: LoweringView,
    operands: Sequence[SsaValue] | None = None,
    *,
    phase1_only: bool = False,
    own: OwnKernels = NONE,
) -> list[SsaValue]:
    """Write a program to `body`; the program's outputs. Errors as `lower_to_stablehlo`.

    Parameters
    ----------
    operands
        Values that stand for the program's inputs, of their types; None makes new parameters.
    own
        Instructions that are calls of our own kernels instead.
    """
    view.check()  # a broken rule is the program's error, whatever StableHLO cannot say of what comes before it
    dtypes = FLOAT if phase1_only else frozenset(DType)
    env: dict[int, SsaValue] = {}
    for i, (slot, spec) in enumerate(zip(view.input_slots, view.input_specs, strict=True)):
        if spec.dtype not in dtypes:
            raise UnsupportedDType(dtype=spec.dtype.name, context="program input")
        env[slot] = body.parameter(spec.dtype, spec.static_shape) if operands is None else operands[i]
    for number, ins in enumerate(view.instructions()):
        op, inputs = ins.op, [env[slot] for slot in ins.input_slots]
        input_types = tuple(TensorType(v.dtype, v.shape) for v in inputs)
        types = ins.static_output_types()
        standard = _standard_program(op, input_types, types, view.policy)
        results: Sequence[SsaValue]
        if number in own.instructions:
            results = kernel_call(body, op, view.policy, inputs, types)
        elif standard is not None:
            results = lower_into(body, LoweringView.of(standard), inputs, phase1_only=phase1_only)
        else:
            if phase1_only and type(op) not in PHASE1:
                raise UnsupportedOp(op=op.name, reason="outside Phase 1")
            if types[0].dtype not in dtypes:
                context = _CONTEXTS.get(type(op), "instruction output")
                raise UnsupportedDType(dtype=types[0].dtype.name, context=context)
            try:
                results = _emitted(op, body, types, within_policy(op, body, view.policy, inputs))
            except UnsupportedOp:  # what its row has written by then, nothing reads
                if not own.missing:
                    raise
                results = kernel_call(body, op, view.policy, inputs, types)
        env.update(zip(ins.output_slots, results, strict=True))
    return [env[slot] for slot in view.output_slots]


def _emitted(op: Op, body: Body, types: tuple[TensorType, ...], operands: Sequence[SsaValue]) -> Sequence[SsaValue]:
    row = EMIT[type(op)]
    results = row(op, body, types if isinstance(op, ops.Extension) else types[0].shape, *operands)
    return (results,) if isinstance(results, SsaValue) else results


def _standard_program(
    op: Op, input_types: tuple[TensorType, ...], types: tuple[TensorType, ...], policy: Policy
) -> GraphProgram | None:
    """The standard ops that an extension op is made of, as a program with results of `types`; None for any other op."""
    append = standard_ops_of(op)
    if not isinstance(op, ops.Extension) or append is None:
        return None
    builder = GraphBuilder(policy=policy)
    operands = [builder.input(t.dtype, t.static_shape) for t in input_types]
    results = append(op, *operands)
    if (made := tuple(v.type for v in results)) != types:
        actual, declared = (", ".join(map(str, t)) or "nothing" for t in (made, types))
        detail = f"the standard ops of {op.op} of {op.family!r} give {actual}; its rule says {declared}"
        raise InvalidProgram(detail=detail)
    slots = [v.slot for v in operands]
    # an operand that is a result is copied: every result has an instruction of its own
    return builder.build(*(v.transpose(range(v.ndim)) if v.slot in slots else v for v in results))


#: The context in `UnsupportedDType` for ops where it is not "instruction output" (SEMANTICS 7.3).
_CONTEXTS: dict[type[Op], str] = {
    ops.Constant: "constant",
    ops.Convert: "convert target",
    ops.ReduceSum: "reduce init",
    ops.DotGeneral: "dot_general output",
}


def fingerprint(text: str) -> str:
    """64 hex digits that identify a module's text (its SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()
