"""The twin of a module: the same operations on floats of another width, as far as that has a meaning.

Each operation is made again with results of the other type, its regions with it; constants keep their values. What is about
the bits of a float (`bitcast_convert`), or is not known to work on other types (custom calls), stays as it is, between
conversions. Needs the extra `jax`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.signature import signature
from tenferro_ref.stablehlo.source import Source

_FLOATS = r"(f32|f16|bf16|f8\w+)"
_TYPES: dict[str, tuple[re.Pattern[str], str, Any]] = {
    "wide": (re.compile(_FLOATS), "f64", np.float64),
    "narrow": (re.compile("(f64)"), "f32", np.float32),
}
#: Operations that keep their types.
_AS_THEY_ARE = ("stablehlo.bitcast_convert", "stablehlo.custom_call", "stablehlo.reduce_precision")
#: Attributes that speak of the type that a float had.
_DROPPED = {"algorithm", "result_accuracy"}


def twin(source: str | bytes, where: str = "StableHLO", *, narrow: bool = False) -> Source:
    """The module with all floats as F64; with `narrow`, its F64 as F32 and the others as they are.

    Raises
    ------
    UnsupportedOp
        A constant that is not in the module.
    FormatError
        No StableHLO, or the twin does not verify.
    """
    module = bindings.parse(source, where)
    with bindings.reading(where):
        text = str(_Twin(*_TYPES["narrow" if narrow else "wide"]).module(module))
    return signature(text, where)


class _Twin:
    def __init__(self, floats: re.Pattern[str], to: str, numpy: Any) -> None:
        self.ir = bindings.mlir()
        self.floats, self.to, self.numpy = floats, to, numpy
        self.element = re.compile(rf"(?<=[<x]){floats.pattern}(?=[>,])")

    def module(self, module: Any) -> Any:
        made = self.ir.Module.create(self.ir.Location.unknown())
        with self.ir.InsertionPoint(made.body):
            for operation in module.body.operations:
                self.operation(operation.operation, {})
        return made

    def type(self, type_: Any) -> Any:
        """The twin's type for one of the module."""
        text = str(type_)
        other = self.element.sub(self.to, text)
        return type_ if other == text else self.ir.Type.parse(other)

    def operation(self, op: Any, known: dict[Any, Any]) -> None:
        """Make the operation again at the insertion point; its results become known."""
        operands = [known[v] for v in op.operands]
        if op.name in _AS_THEY_ARE:
            results = self._kept(op, operands)
        elif op.name == "stablehlo.constant":
            results = [self._constant(op)]
        else:
            types = [self.type(r.type) for r in op.results]
            results = self._made(op, types, operands, self._attributes(op), known).results
        known.update(zip(op.results, results, strict=True))

    def _made(self, op: Any, types: Sequence[Any], operands: Sequence[Any], attributes: Any, known: Any) -> Any:
        ir, regions = self.ir, list(op.regions)
        made = ir.Operation.create(
            op.name, results=list(types), operands=list(operands), attributes=attributes, regions=len(regions),
            loc=ir.Location.unknown(),
        )  # fmt: skip
        for region, new in zip(regions, made.regions, strict=True):
            for block in region.blocks:
                arguments = [self.type(a.type) for a in block.arguments]
                inner = new.blocks.append(*arguments, arg_locs=[ir.Location.unknown()] * len(arguments))
                inside = {**known, **dict(zip(block.arguments, inner.arguments, strict=True))}
                with ir.InsertionPoint(inner):
                    for operation in block.operations:
                        self.operation(operation.operation, inside)
        return made

    def _attributes(self, op: Any) -> dict[str, Any]:
        made = {}
        for name, value in _named(op.attributes):
            if name not in _DROPPED:
                of_types = isinstance(value, self.ir.TypeAttr)
                made[name] = self.ir.TypeAttr.get(self._function(value.value)) if of_types else value
        return made

    def _function(self, type_: Any) -> Any:
        if not isinstance(type_, self.ir.FunctionType):
            return self.type(type_)
        return self.ir.FunctionType.get([self.type(t) for t in type_.inputs], [self.type(t) for t in type_.results])

    def _kept(self, op: Any, operands: Sequence[Any]) -> list[Any]:
        """The operation with its own types, its operands converted to them and its results from them."""
        from jaxlib.mlir.dialects import stablehlo

        with self.ir.Location.unknown():
            own = [
                x if x.type == v.type else stablehlo.convert(v.type, x)
                for x, v in zip(operands, op.operands, strict=True)
            ]
            attributes = dict(_named(op.attributes))
            made = self._made(op, [r.type for r in op.results], own, attributes, {}).results
            pairs = [(r, self.type(r.type)) for r in made]
            return [r if r.type == t else stablehlo.convert(t, r) for r, t in pairs]

    def _constant(self, op: Any) -> Any:
        ir, own = self.ir, op.results[0].type
        type_ = self.type(own)
        if type_ == own:
            return self._made(op, [own], [], dict(_named(op.attributes)), {}).results[0]
        value = bindings.Operation(op).dense()
        dtype = DType.of(value)
        wide = value.astype(np.result_type(self.numpy, 1j) if dtype.is_complex else self.numpy)
        raw = np.ascontiguousarray(wide).reshape(-1).view(np.uint8)
        attribute = ir.DenseElementsAttr.get(raw, type=type_)
        with ir.Location.unknown():
            return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": attribute}).results[
                0
            ]


def _named(attributes: Any) -> Iterator[tuple[str, Any]]:
    """Names and values, however this version of the bindings lists them."""
    for entry in attributes:
        name = entry if isinstance(entry, str) else entry.name
        yield name, attributes[name]
