"""The StableHLO reference interpreter in jaxlib's MLIR bindings: no compiler, IEEE arithmetic on every element.

Requests and answers as those of `tenferro_ref.isolation.engines.pjrt`; arrays are of real numbers, since the bindings take and give nothing
else.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np

from oracle.peers.errors import EngineFault
from tenferro_ref.isolation.engine import Engine, library, run_sets
from tenferro_ref.isolation.wire import Message
from tenferro_ref.tensor import Array, column_major


def open(settings: Message) -> Engine:
    """Load the bindings and make a context with the dialects of an emitted module."""
    ir = library("jaxlib.mlir.ir", "jax")
    stablehlo = library("jaxlib.mlir.dialects.stablehlo", "jax")
    registry = ir.DialectRegistry()
    library("jaxlib.mlir._mlir_libs._jax_mlir_ext", "jax").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.enable_multithreading(False)
    stablehlo.register_dialect(context)

    def own_operands(module: Any) -> None:
        """Give each scatter a copy of its operand: the interpreter writes the updates into the operand itself."""

        def visit(operation: Any) -> Any:
            if operation.name == "stablehlo.scatter":
                with ir.InsertionPoint(operation), ir.Location.unknown():
                    operation.operands[0] = stablehlo.reshape(operation.operands[0].type, operation.operands[0])
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.POST_ORDER)

    def answer(request: Message) -> Message:
        def parse() -> Any:
            module = ir.Module.parse(request["code"])
            if not request.get("as_written"):
                own_operands(module)
            return module

        def execute(module: Any, inputs: list[Array]) -> list[Array]:
            # a view, since the bindings do not know native byte order by another sign than its own
            arrays = [np.array(x, order="C").view(x.dtype.type) for x in inputs]
            results = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(a) for a in arrays])
            return [column_major(np.array(result)) for result in results]

        with context:
            try:
                return run_sets(request, parse, execute)
            except (ir.MLIRError, ValueError) as error:
                raise EngineFault(engine="interpreter", detail=str(error)) from None

    facts = {"jaxlib": metadata.version("jaxlib"), "StableHLO": stablehlo.get_current_version()}
    return Engine(facts, answer)
