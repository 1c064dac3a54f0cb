"""The StableHLO reference interpreter in jaxlib's MLIR bindings: no compiler, IEEE arithmetic on every element.

Requests and answers as those of `tenferro_ref.isolation.engines.pjrt`. The interpreter knows StableHLO alone: `chlo` operations
and composites are decomposed first, by the bindings' own passes. The bindings cannot hand over some types of results;
then a function around the module's `main` gives their bits.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np

from oracle.peers.errors import EngineFault
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.isolation.engine import Engine, library, run_sets
from tenferro_ref.isolation.wire import Message
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.signature import functions_of
from tenferro_ref.tensor import Array, column_major

#: Results of these kinds of NumPy's the bindings hand over as they are; of others their bits.
_READABLE = ("float16", "float32", "float64", "bool")


def open(settings: Message) -> Engine:
    """Load the bindings and make a context with the dialects of a module."""
    library("jaxlib.mlir.ir", "jax")
    ir, context = bindings.mlir(), bindings.context()
    stablehlo = library("jaxlib.mlir.dialects.stablehlo", "jax")
    context.enable_multithreading(False)

    def own_operands(module: Any) -> None:
        """Give each scatter copies of its operands: the interpreter writes the updates into the operands themselves."""

        def visit(operation: Any) -> Any:
            if operation.name == "stablehlo.scatter":
                with ir.InsertionPoint(operation), ir.Location.unknown():
                    for i, x in enumerate(list(operation.operands)[: len(operation.results)]):
                        operation.operands[i] = stablehlo.reshape(x.type, x)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.POST_ORDER)

    def answer(request: Message) -> Message:
        dtypes = [DType[name] for name, _ in request["results"]]
        shapes = [tuple(shape) for _, shape in request["results"]]

        def parse() -> Any:
            module = bindings.parse(request["code"], "module")
            bindings.legalize(module, "module")
            if not request.get("as_written"):
                own_operands(module)
                _order_totally(module)
            _make_readable(module, dtypes)
            return module

        def execute(module: Any, inputs: list[Array]) -> list[Array]:
            main = functions_of(module)["main"]
            pairs = zip(inputs, main.type.inputs, strict=True)
            arguments = [ir.DenseElementsAttr.get(_bytes(x), type=type_) for x, type_ in pairs]
            values = iter(stablehlo.eval_module(module, arguments))
            outputs = (_read(dtype, values) for dtype in dtypes)
            return [column_major(x.reshape(shape)) for x, shape in zip(outputs, shapes, strict=True)]

        with context:
            try:
                return run_sets(request, parse, execute)
            except (ir.MLIRError, ValueError, FormatError) as error:
                raise EngineFault(engine="interpreter", detail=str(error)) from None

    facts = {"jaxlib": metadata.version("jaxlib"), "StableHLO": stablehlo.get_current_version()}
    return Engine(facts, answer)


def _order_totally(module: Any) -> None:
    """Compare bits where a total order of floats is asked for: the interpreter compares as if none was."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import stablehlo

    def visit(operation: Any) -> Any:
        op = bindings.Operation(operation)
        if op.name == "compare" and op.enum("compare_type") == "TOTALORDER":
            with ir.InsertionPoint(operation), ir.Location.unknown():
                for i, x in enumerate(list(operation.operands)):
                    shape, width = list(x.type.shape), x.type.element_type.width
                    type_ = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(width))
                    # negative floats count downwards: all but the sign is turned round
                    bits, most = stablehlo.bitcast_convert(type_, x), (1 << (width - 1)) - 1
                    integers = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, most))
                    signs = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, width - 1))
                    spread = stablehlo.shift_right_arithmetic(bits, stablehlo.constant(signs))
                    turned = stablehlo.and_(spread, stablehlo.constant(integers))
                    operation.operands[i] = stablehlo.xor(bits, turned)
                operation.attributes["compare_type"] = ir.Attribute.parse("#stablehlo<comparison_type SIGNED>")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)


def _bytes(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _bits(dtype: DType) -> np.dtype[Any] | None:
    """The integers as which results of this dtype are handed over; None for those that need none."""
    numpy = dtype.numpy
    if (
        dtype.is_complex
        or numpy.name in _READABLE
        or (numpy.name.startswith(("int", "uint")) and numpy.name[-2:] not in ("t2", "t4"))
    ):
        return None
    return np.dtype(f"uint{8 * numpy.itemsize}")


def _make_readable(module: Any, dtypes: list[DType]) -> None:
    """Put a function around `main` that gives complex results as two, and bits where the bindings know no elements."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import func, stablehlo

    main = functions_of(module)["main"]
    flat = not any("tuple<" in str(t) for t in main.type.results)
    if flat and not any(d.is_complex or _bits(d) for d in dtypes):
        return
    given = "main_given"
    ir.SymbolTable.replace_all_symbol_uses("main", given, module.operation)
    ir.SymbolTable.set_symbol_name(main.operation, given)
    with ir.Location.unknown(), ir.InsertionPoint(module.body):
        outer: Any = func.FuncOp("main", ir.FunctionType.get(main.type.inputs, []))
        with ir.InsertionPoint(outer.add_entry_block()):
            values = _untupled(func.CallOp(main.type.results, given, outer.entry_block.arguments).results)
            parts = []
            for value, dtype in zip(values, dtypes, strict=True):
                bits = _bits(dtype)
                if dtype.is_complex:
                    parts += [stablehlo.real(value), stablehlo.imag(value)]
                elif bits is None:
                    parts.append(value)
                else:
                    if not dtype.numpy.name.startswith(("int", "uint")):
                        value = stablehlo.bitcast_convert(_unsigned(value, dtype.bits), value)
                    parts.append(stablehlo.convert(_unsigned(value, 8 * bits.itemsize), value))
            func.ReturnOp(parts)
        outer.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(main.type.inputs, [part.type for part in parts])
        )


def _unsigned(value: Any, bits: int) -> Any:
    """The type of unsigned integers of this width in the shape of a value."""
    ir = bindings.mlir()
    return ir.RankedTensorType.get(value.type.shape, ir.IntegerType.get_unsigned(bits))


def _untupled(values: Any) -> list[Any]:
    from jaxlib.mlir.dialects import stablehlo

    flat: list[Any] = []
    for value in values:
        if str(value.type).startswith("tuple<"):
            count = bindings.mlir().TupleType(value.type).num_types
            flat += _untupled([stablehlo.get_tuple_element(value, i) for i in range(count)])
        else:
            flat.append(value)
    return flat


def _read(dtype: DType, values: Any) -> Array:
    """One result from the attributes that were handed over."""
    if dtype.is_complex:
        real, imag = np.array(next(values)), np.array(next(values))
        made = np.empty(real.shape, dtype.numpy)
        made.real, made.imag = real, imag
        return made
    bits, array = _bits(dtype), np.array(next(values))
    if bits is None:
        return array
    small = dtype.numpy.name.startswith(("int", "uint"))
    return array.astype(dtype.numpy) if small else array.view(dtype.numpy)
