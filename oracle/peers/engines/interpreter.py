"""The StableHLO reference interpreter in jaxlib's MLIR bindings: no compiler, IEEE arithmetic on every element.

Requests and answers as those of `tenferro_ref.isolation.engines.pjrt`; parameters and results are real numbers, since the bindings take
and give nothing else.
"""

from __future__ import annotations

import time
from importlib import metadata
from typing import Any

import numpy as np

from tenferro_ref.errors import EngineFault
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Message, Opened, library
from tenferro_ref.tensor import column_major


def open(settings: Message) -> Opened:
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

    def serve(request: Message) -> Message:
        start = time.perf_counter()
        with context:
            try:
                module = ir.Module.parse(request["code"])
            except ir.MLIRError as error:
                raise EngineFault(engine="interpreter", detail=str(error)) from None
            if not request.get("as_written"):
                own_operands(module)
            parsed = time.perf_counter()
            output_sets = []
            for inputs in request["input_sets"]:
                # a view, since the bindings do not know native byte order by another sign than its own
                arrays = [np.array(x, order="C").view(x.dtype.type) for x in map(wire.unpack, inputs)]
                try:
                    results = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(a) for a in arrays])
                except ValueError as error:
                    raise EngineFault(engine="interpreter", detail=str(error)) from None
                output_sets.append([wire.pack(column_major(np.array(r))) for r in results])
        done = time.perf_counter()
        return {"output_sets": output_sets, "seconds": {"compile": parsed - start, "execute": done - parsed}}

    facts = {"jaxlib": metadata.version("jaxlib"), "StableHLO": stablehlo.get_current_version()}
    return facts, serve
