"""Instructions as custom calls of this project's own kernels, for plugins that have them (`isolation.engines.kernels`).

The call's attribute is a program of the one instruction, in JSON; so every op that runs natively has this form, also those that StableHLO lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import Op, Policy, TensorType
from tenferro_ref.program import GraphBuilder, dumps
from tenferro_ref.stablehlo.writer import Body, SsaValue

#: The custom call's target, and its one attribute.
TARGET, ATTRIBUTE = "tenferro_ref.kernel", "program"


@dataclass(frozen=True)
class OwnKernels:
    """Which instructions are emitted so.

    Attributes
    ----------
    instructions
        By their number in the program.
    missing
        Also those that StableHLO has no form for.
    """

    instructions: frozenset[int] = frozenset()
    missing: bool = False

    def __bool__(self) -> bool:
        return bool(self.instructions) or self.missing


NONE = OwnKernels()


def kernel_call(
    body: Body, op: Op, policy: Policy, operands: Sequence[SsaValue], types: Sequence[TensorType]
) -> list[SsaValue]:
    """The results of an op, computed by our kernel.

    Raises
    ------
    UnsupportedOp
        An attribute is an extent of the program's inputs.
    """
    builder = GraphBuilder(policy=policy)
    results = builder.apply_many(op, *(builder.input(v.dtype, v.shape) for v in operands))
    if tuple(value.type for value in results) != tuple(types):
        raise UnsupportedOp(
            op=op.name, reason="its result types depend on more than its operands, so that it is no call of its own"
        )
    escaped = dumps(builder.build(*results)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    attrs = f'call_target_name = "{TARGET}", api_version = 4 : i32, backend_config = {{{ATTRIBUTE} = "{escaped}"}}'
    return body.several("custom_call", operands, attrs, [(t.dtype, t.static_shape) for t in types])
