"""The MLIR bindings of jaxlib: a module from text or bytes, and what its attributes, types and locations say.

They are the extra `jax`, imported on first use. What an op means is in the modules of rows. The parser is native code that
ends the process on some hostile inputs (nesting tens of thousands deep, damaged bytecode): files of unknown origin are read
in a worker process, as the commands do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    FormatError,
    MissingDependency,
    NonStaticShape,
    TenferroError,
    UnsupportedDType,
    UnsupportedOp,
)
from tenferro_ref.ops import TensorType
from tenferro_ref.tensor import Array

#: Decompositions that the bindings bring along: composites, `dot` and other ops of the past; `chlo` ops.
_PASSES = ("stablehlo-legalize-composite-to-call", "stablehlo-legalize-deprecated-ops{fail-on-unused=false}")
_CHLO = "chlo-legalize-to-stablehlo"
#: With which bytecode and portable artifacts begin.
MAGIC = b"ML\xefR"
_PORTABLE = b"StableHLO_v"

_DTYPES = {dtype.value.element: dtype for dtype in DType}


@cache
def mlir() -> Any:
    """`jaxlib.mlir.ir`, with StableHLO's passes registered.

    Raises
    ------
    MissingDependency
        There is no jaxlib.
    """
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        raise MissingDependency.of_extra("jaxlib", "jax", "it reads StableHLO") from None
    stablehlo.register_stablehlo_passes()
    return ir


@cache
def context() -> Any:
    """One context for all modules: making one takes longer than reading a small module."""
    ir = mlir()
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    chlo.register_dialect(made)
    sdy.register_dialect(made)
    stablehlo.register_dialect(made)
    return made


@contextmanager
def reading(where: str) -> Iterator[None]:
    """The context of all modules, entered to read one.

    Raises
    ------
    FormatError
        A name or a string in it that is asked for is not UTF-8; the bindings have no error of their own for that.
    """
    try:
        with context():
            yield
    except RuntimeError as error:
        if "conversion error" not in str(error):
            raise
        raise FormatError(where=where, detail="a name or a string in it is not UTF-8") from None


def parse(source: str | bytes, where: str) -> Any:
    """A verified module from text, bytecode or a portable artifact.

    Raises
    ------
    FormatError
        It is none of these, or does not verify; `where` gets the line and column.
    MissingDependency
        There is no jaxlib.
    """
    ir = mlir()
    from jaxlib.mlir.dialects import stablehlo

    if not isinstance(source, str | bytes):
        raise FormatError(where=where, detail=f"{type(source).__name__} where text or bytes are needed")
    if isinstance(source, str) and not source.isascii():
        try:
            source.encode("utf-8")
        except UnicodeEncodeError as error:
            raise FormatError(where=where, detail=f"no text: {error.reason}") from None
    if isinstance(source, bytes) and not source.startswith(MAGIC):
        try:
            source = source.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FormatError(where=where, detail="neither MLIR bytecode nor text (not UTF-8)") from None
    with reading(where):
        try:
            if isinstance(source, bytes) and source[len(MAGIC) + 1 :].startswith(_PORTABLE):
                return stablehlo.deserialize_portable_artifact(context(), source)
            return ir.Module.parse(source)
        except (ir.MLIRError, ValueError) as error:
            raise _refusal(error, where) from None


def legalize(module: Any, where: str, keeps: Callable[[str, bool], bool] = lambda name, is_complex: False) -> None:
    """Decompose in place what the bindings can decompose.

    Parameters
    ----------
    keeps
        Whether a `chlo` op stays as it is, by its name and by whether it has complex operands: an implementation may have a
        polynomial of its own for it, so that the values that it may have are not those of a decomposition.

    Raises
    ------
    FormatError
        A pass failed.
    """
    with reading(where):
        _decompose_chlo(module, where, keeps)
        _run(_PASSES, module, where)


def _decompose_chlo(module: Any, where: str, keeps: Callable[[str, bool], bool]) -> None:
    """Replace each `chlo` op that is not kept by its decomposition.

    The pass takes all of a function, so that each op is copied into a function of its own, in a module apart.
    """
    ir = mlir()
    from jaxlib.mlir.dialects.func import FuncOp, ReturnOp

    found: list[Any] = []

    def visit(op: Any) -> Any:
        is_complex = any("complex" in str(v.type) for v in op.operands)
        if op.name.startswith("chlo.") and not keeps(op.name, is_complex):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not found:
        return
    apart = ir.Module.create(ir.Location.unknown())
    for i, op in enumerate(found):
        with ir.InsertionPoint(apart.body), op.location:
            around: Any = FuncOp(f"f{i}", ([v.type for v in op.operands], [v.type for v in op.results]))
            block = around.add_entry_block()
        with ir.InsertionPoint(block), op.location:
            copy = op.clone()
            for j, argument in enumerate(block.arguments):
                copy.operands[j] = argument
            ReturnOp(copy.results)
    _run((_CHLO,), apart, where)
    for op, function in zip(found, apart.body.operations, strict=True):
        block = function.regions[0].blocks[0]
        *made, returned = block.operations
        for argument, value in zip(block.arguments, op.operands, strict=True):
            argument.replace_all_uses_with(value)
        for part in made:
            part.operation.move_before(op)
        for result, value in zip(op.results, returned.operation.operands, strict=True):
            result.replace_all_uses_with(value)
        op.erase()


def _run(passes: Sequence[str], module: Any, where: str) -> None:
    from jaxlib.mlir.passmanager import PassManager

    try:
        PassManager.parse(f"builtin.module(func.func({','.join(passes)}))").run(module.operation)
    except mlir().MLIRError as error:
        raise _refusal(error, where) from None


def _refusal(error: Exception, where: str) -> FormatError:
    diagnostics = getattr(error, "error_diagnostics", [])
    if not diagnostics:
        return FormatError(where=where, detail=str(error))
    first = diagnostics[0]
    words, advice, _ = first.message.partition(". If this is intended")  # to give options that only MLIR's tools have
    return FormatError(position(first.location, where), f"{words}, one that is not known here" if advice else words)


def position(location: Any, where: str) -> str:
    """`FILE:LINE:COLUMN` of a location, the innermost one where it has several; `where` alone if it has none."""
    found = re.search(r'"([^"]*)":(\d+):(\d+)', str(location))
    if found is None or found[2] == "0":
        return where
    return f"{where if found[1] == '-' else found[1]}:{found[2]}:{found[3]}"


@contextmanager
def located(op: Any, where: str) -> Iterator[None]:
    """Errors of the block that know no place get that of the operation."""
    try:
        yield
    except TenferroError as error:
        error.place = error.place or position(op.location, where)
        raise


def tensor_type(type_: Any, what: str) -> TensorType:
    """The static tensor type that `type_` is.

    Raises
    ------
    UnsupportedDType
        An element type that the engine does not have, or no tensor of a rank at all.
    NonStaticShape
        A dynamic extent.
    """
    text = str(type_)
    found = re.fullmatch(r"tensor<((?:[\d?]+x)*)([^*].*)>", text)
    if found is None:
        raise UnsupportedDType(dtype=text, context=what)
    extents = found[1].split("x")[:-1]
    if "?" in extents:
        raise NonStaticShape(op=what, output_index=None, axis=extents.index("?"), extent=f"dynamic ({text[7:-1]})")
    return TensorType(element_type(found[2], what), tuple(map(int, extents)))


def element_type(text: str, what: str) -> DType:
    """The dtype of a name such as `bf16`.

    Raises
    ------
    UnsupportedDType
        The engine does not have it.
    """
    if text not in _DTYPES:
        raise UnsupportedDType(dtype=text, context=what)
    return _DTYPES[text]


class Operation:
    """One operation of a module, as rows read it.

    Attributes
    ----------
    raw
        The operation of the bindings.
    name
        Its name; without the dialect if that is StableHLO.
    """

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.name: str = raw.operation.name.removeprefix("stablehlo.")

    @property
    def full_name(self) -> str:
        """The name as in `Source.ops`: that of a custom call has its target."""
        return f"{self.name}:{self.attribute('call_target_name')}" if self.name == "custom_call" else self.name

    @property
    def body(self) -> Any:
        """The one block of its first region."""
        (block,) = self.raw.operation.regions[0].blocks
        return block

    def callee(self) -> Any:
        """The block of the function that a `func.call` calls."""
        module = self.raw.operation
        while module.name != "builtin.module":
            module = module.parent
        name = self.attribute("callee")
        found = next(f for f in module.regions[0].blocks[0].operations if Operation(f).attribute("sym_name") == name)
        if found.is_external:
            raise self.refusal(f"function @{name} has no body")
        (block,) = found.operation.regions[0].blocks
        return block

    @property
    def result(self) -> TensorType:
        """Type of the first result."""
        return tensor_type(self.raw.operation.results[0].type, "result")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.result.static_shape

    def refusal(self, reason: str) -> TenferroError:
        """The error that refuses the operation; its place is added where the program is read."""
        return UnsupportedOp(op=self.raw.operation.name, reason=reason)

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute: an int, a bool, a string, a (nested) list of these, or its text; `default` if there is none."""
        if name not in self.raw.attributes:
            return default
        value, ir = self.raw.attributes[name], mlir()
        if isinstance(value, (ir.IntegerAttr, ir.BoolAttr, ir.StringAttr, ir.FlatSymbolRefAttr)):
            return value.value
        if isinstance(value, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr)):
            return list(value)
        if isinstance(value, ir.DenseIntElementsAttr):
            return np.asarray(value).tolist()
        return str(value)

    def axes(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        return tuple(self.attribute(name, ()))

    def enum(self, name: str) -> str:
        """The value of an attribute such as `#stablehlo<comparison_direction EQ>`; "" if there is none."""
        return str(self.attribute(name, "")).split(" ")[-1].rstrip(">")

    def fields(self, name: str) -> dict[str, Any]:
        """The entries of an attribute such as `#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`."""
        entries = re.findall(r"(\w+) = (\[[\d, ]*\]|\d+)", str(self.raw.attributes[name]))
        return {
            key: [int(n) for n in re.findall(r"\d+", text)] if text[0] == "[" else int(text) for key, text in entries
        }

    def dense(self) -> Array:
        """The value of a `constant`, bit for bit.

        Raises
        ------
        UnsupportedOp
            The value is not in the module (`dense_resource`).
        """
        dtype = self.result.dtype
        if (
            dtype.is_complex or dtype.numpy.kind == "V" or (dtype.bits == 8 and dtype.is_float)
        ):  # elements that the bindings do not know
            return _spelled(str(self.raw), dtype, self.shape)
        value, ir = self.raw.attributes["value"], mlir()
        readable = isinstance(value, (ir.DenseIntElementsAttr, ir.DenseFPElementsAttr))
        if not readable or not str(value.type).startswith("tensor<"):
            raise self.refusal("only dense values can be read")
        return np.array(value, dtype.numpy).reshape(self.shape)


def _spelled(text: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The elements of a dense constant from its text, in which the value follows all other attributes."""
    body = text.rpartition("dense<")[2].rpartition("> : tensor<")[0]
    part = dtype.real.numpy
    if body.startswith('"0x'):
        values = np.frombuffer(bytes.fromhex(body[3:-1]), dtype.numpy)
    else:
        words = re.findall(r"[^\s,()\[\]]+", body)
        values = np.array([_number(word, part) for word in words], part).view(dtype.numpy)
    return values.reshape(shape) if values.size == prod(shape) else np.broadcast_to(values, shape)


def _number(word: str, dtype: np.dtype[Any]) -> Any:
    if word.startswith("0x"):
        return np.array(int(word, 16), f"<u{dtype.itemsize}").view(dtype)[()]
    if dtype.kind == "f" and dtype.itemsize > 1:
        return dtype.type(word)
    return np.array(float(word) if DType.of(np.empty(0, dtype)).is_float else int(word)).astype(dtype)[()]
