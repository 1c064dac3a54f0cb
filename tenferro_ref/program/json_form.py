"""Program JSON, versions 1 and 2 (FORMATS 1): strict reader and writer.

An unknown key, a missing key, a wrong type or a bad reference is a `FormatError` that names the JSON path. What the objects
hold is in `records`; the text form shares the records of attributes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from tenferro_ref.dims import Extent, InputDim, expr_of, simplify
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, TenferroError, UsageError
from tenferro_ref.files import read_text
from tenferro_ref.ops import DEFAULT_POLICY, KNOWN, Policy, TensorType
from tenferro_ref.program.program import Instruction, Program, to_exec
from tenferro_ref.program.records import (
    VERSION,
    AxisRecord,
    ExecRecord,
    GraphRecord,
    dim_of,
    extent_of,
    op_of,
    write_attrs,
    write_dim,
    write_extent,
    write_guard,
)
from tenferro_ref.suggest import did_you_mean


def _fail(path: str, detail: str) -> NoReturn:
    shorter = path if len(path) <= 120 else path[:100] + "..."
    raise FormatError(where=shorter, detail=detail if len(detail) <= 300 else detail[:297] + "...")


def shown(value: Any) -> str:
    """A value as JSON, short enough for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- writing ----------------------------------------------------------------------------------------------------------


def write_policy(policy: Policy) -> dict[str, str]:
    """The flags that differ from the engine's defaults."""
    flags = {name: getattr(policy, name) for name in Policy.__slots__}
    return {name: value for name, value in flags.items() if value != getattr(DEFAULT_POLICY, name)}


def write_program(program: Program) -> dict[str, Any]:
    """The program as JSON values; `exec` programs carry their metadata."""
    names = dict(program.symbols) if program.kind == "graph" else {}

    def input_extent(extent: Extent) -> Any:
        return names[extent] if isinstance(extent, InputDim) and extent in names else write_extent(extent)

    return {
        "tenferro_program": VERSION if program.shape_guards else 1,
        "kind": program.kind,
        **({"name": program.name} if program.name else {}),
        **({"policy": write_policy(program.policy)} if program.policy != DEFAULT_POLICY else {}),
        "n_slots": program.n_slots,
        "inputs": [
            {"slot": slot, "dtype": t.dtype.name, "shape": [input_extent(e) for e in t.shape]}
            for slot, t in zip(program.input_slots, program.input_types, strict=True)
        ],
        "instructions": [_write_instruction(ins, program.kind) for ins in program.instructions],
        "outputs": list(program.output_slots),
        **({"shape_guards": [write_guard(guard) for guard in program.shape_guards]} if program.shape_guards else {}),
    }


def _write_instruction(ins: Instruction, kind: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "op": ins.op.name,
        "attrs": write_attrs(ins.op),
        "inputs": list(ins.input_slots),
        "outputs": list(ins.output_slots),
    }
    if kind == "exec":
        entry["dtype"] = ins.types[0].dtype.name
        entry["output_shapes"] = [[write_dim(expr_of(e)) for e in t.shape] for t in ins.types]
        entry["output_extents"] = [[write_extent(e) for e in t.shape] for t in ins.types]
        entry["last_use"] = list(ins.last_use)
    return entry


def dumps(program: Program) -> str:
    """JSON text, one instruction per line."""
    lines = []
    for key, value in write_program(program).items():
        if key in ("inputs", "instructions", "shape_guards") and value:
            body = ",\n".join("    " + json.dumps(entry) for entry in value)
            lines.append(f'  "{key}": [\n{body}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


# --- reading ----------------------------------------------------------------------------------------------------------


_UNKNOWN = re.compile(r"Invalid (?:enum )?value '(.*)'")
_DTYPE_KEYS = {"dtype", *(f.name for op in KNOWN.values() for f in fields(op) if f.type == "DType")}


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [k for k, _ in pairs]
        raise FormatError(where="JSON", detail=f"key {shown(next(k for k in keys if keys.count(k) > 1))} occurs twice")
    return result


def _no_constant(name: str) -> NoReturn:
    raise FormatError(where="JSON", detail=f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise FormatError(where="JSON", detail=f"{shown(text)} is beyond the largest double")
    return number


def read_json(text: str, where: str, at: Callable[[int, int], str] | None = None) -> Any:
    """JSON values, more strictly than Python and msgspec: no duplicate keys, no NaN, no infinity.

    Parameters
    ----------
    at
        What an error's `where` is for a line and a column of `text`, if that is a part of a file.

    Raises
    ------
    FormatError
        Not JSON; `where` becomes `FILE:LINE:COLUMN` if that is known.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = at(error.lineno, error.colno) if at else f"{where}:{error.lineno}:{error.colno}"
        raise FormatError(where=place, detail=f"not JSON: {error.msg}") from None
    except RecursionError:
        raise FormatError(where=where, detail="nested too deeply") from None
    except ValueError as error:  # an integer literal of thousands of digits
        raise FormatError(where=where, detail=f"not JSON: {error}") from None
    except FormatError as error:
        raise FormatError(where=f"{where}: {error.where}", detail=error.detail) from None


def loads(text: str, where: str = "program", *, infer: bool = True) -> Program:
    """Read a program.

    Parameters
    ----------
    infer
        Infer types, and so check every rule; False for a graph program that is to be refused later.

    Raises
    ------
    FormatError
        Not JSON, or not a program of this version; `where` is `FILE: JSON path`.
    TenferroError
        A well-formed file whose program breaks a rule; its `place` is `FILE: JSON path`.
    UsageError
        It is no `str`.
    """
    if not isinstance(text, str):
        raise UsageError(detail=f"{type(text).__name__} where the JSON of a program is needed")
    return read_located(read_json(text, where), where, infer=infer)


def load(path: str | Path) -> Program:
    """Read a program file.

    Raises
    ------
    FormatError
        The file cannot be read, is not UTF-8, or is not a program.
    TenferroError
        The program breaks a rule.
    """
    return loads(read_text(path), str(path))


def read_located(value: Any, where: str, *, infer: bool = True, locate: Callable[[str], str] | None = None) -> Program:
    """`read_program`, with the file's name in the errors; `locate` gives a JSON path's place in another form's file."""
    located = locate or (lambda path: f"{where}: {path}")
    try:
        return read_program(value, infer=infer)
    except RecursionError:
        raise FormatError(where=where, detail="nested too deeply") from None
    except FormatError as error:
        raise FormatError(where=located(error.where), detail=error.detail) from None
    except TenferroError as error:
        error.place = located(error.place) if error.place else where
        raise


def read_program(value: Any, *, infer: bool = True) -> Program:
    """A program from JSON values, checked: types are inferred, and recorded metadata must agree with them."""
    record = _decode(value)
    input_types, symbols = _input_types(record)
    instructions = tuple([_instruction(i, ins) for i, ins in enumerate(record.instructions)])
    input_slots = tuple(i.slot for i in record.inputs)
    n_slots = record.n_slots
    if n_slots is UNSET:
        n_slots = 1 + max(
            (*input_slots, *record.outputs, *(s for i in instructions for s in (*i.input_slots, *i.output_slots))),
            default=-1,
        )
    policy = Policy(**msgspec.structs.asdict(record.policy))
    graph = Program(instructions, input_slots, input_types, record.outputs, n_slots, policy, record.name, symbols)
    if infer:
        graph.slot_types  # noqa: B018 - inference is the check
    if isinstance(record, GraphRecord):
        return graph
    if record.shape_guards and record.tenferro_program < VERSION:
        _fail("$.shape_guards", f"they are of version {VERSION}, the program is of {record.tenferro_program}")
    guards = tuple(guard.guard() for guard in record.shape_guards)
    return _with_metadata(replace(graph, shape_guards=guards), record.instructions)


def _instruction(index: int, record: Any) -> Instruction:
    try:
        op = op_of(KNOWN[record.__struct_config__.tag], record.attrs)
    except TenferroError as error:
        error.place = f"$.instructions[{index}].attrs"
        raise
    return Instruction(op, record.inputs, record.outputs)


def _decode(value: Any) -> Any:
    """The record of a program; msgspec's errors become ours."""
    version = value.get("tenferro_program") if isinstance(value, dict) else None
    if type(version) is int and version not in (1, VERSION):
        _fail("$.tenferro_program", f"version {shown(version)}; this reader knows 1 and {VERSION}")
    try:
        return msgspec.convert(value, GraphRecord | ExecRecord)
    except msgspec.ValidationError as error:
        detail, _, path = str(error).rpartition(" - at `")
        path = path.removesuffix("`") if detail else "$"
        _fail(path, (detail or str(error)) + _meant(detail, path))
    except UnicodeEncodeError:
        _fail("$", "a key or a name has half of a surrogate pair, which is no text")


def _meant(detail: str, path: str) -> str:
    """The op or dtype that msgspec's message about an unknown one probably means."""
    match = _UNKNOWN.fullmatch(detail)
    key = path.rpartition(".")[2]
    if not match or (key != "op" and key not in _DTYPE_KEYS):
        return ""
    return did_you_mean(match[1], KNOWN if key == "op" else DType.__members__)


def _input_types(record: Any) -> tuple[tuple[TensorType, ...], tuple[tuple[InputDim, str], ...]]:
    """Types of the inputs, and the names of their symbols."""
    symbols: dict[str, InputDim] = {}
    known: set[Extent] = set()
    types: list[TensorType] = []
    for i, entry in enumerate(record.inputs):
        shape: list[Extent] = []
        for axis, extent in enumerate(entry.shape):
            where, dim = f"$.inputs[{i}].shape[{axis}]", extent
            if isinstance(extent, str):
                if not extent.isidentifier():
                    _fail(where, f"symbol {shown(extent)} is not an identifier")
                dim = symbols.setdefault(extent, InputDim(i, axis))
            elif isinstance(extent, AxisRecord):
                dim = InputDim(extent.input, extent.axis)
                if dim != InputDim(i, axis) and dim not in known:
                    _fail(where, "expected an integer, a symbol, this axis, or an earlier one that names itself")
            known.add(dim)
            shape.append(dim)
        types.append(TensorType(DType[entry.dtype], tuple(shape)))
    return tuple(types), tuple((dim, name) for name, dim in symbols.items())


def _with_metadata(graph: Program, records: Sequence[Any]) -> Program:
    """The exec program: what the records leave out is inferred, what they have must agree with that."""
    program = to_exec(graph)
    for i, (ins, record) in enumerate(zip(program.instructions, records, strict=True)):
        inferred: dict[str, Any] = {
            "dtype": ins.types[0].dtype.name if ins.types else None,
            "output_shapes": tuple(tuple(map(expr_of, t.shape)) for t in ins.types),
            "output_extents": tuple(t.shape for t in ins.types),
            "last_use": ins.last_use,
        }
        recorded: dict[str, Any] = {
            "dtype": record.dtype,
            "output_shapes": _folded(record.output_shapes, dim_of),
            "output_extents": _folded(record.output_extents, extent_of),
            "last_use": record.last_use,
        }
        for key, value in recorded.items():
            if value is not UNSET and value != inferred[key]:
                rule = ", ".join(map(str, ins.types)) if key != "last_use" else f"last_use {json.dumps(ins.last_use)}"
                text = shown(msgspec.to_builtins(getattr(record, key)))
                _fail(f"$.instructions[{i}].{key}", f"{text} contradicts what {ins.op.name} gives here: {rule}")
    return program


def _folded(shapes: Any, read: Any) -> Any:
    return shapes if shapes is UNSET else tuple(tuple(simplify(read(e)) for e in shape) for shape in shapes)
