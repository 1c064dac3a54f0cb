"""Program JSON, version 1 (FORMATS 1): strict reader and writer.

Strict: an unknown key, a missing key, a wrong type or a bad reference is a `FormatError` naming the JSON path. How one
attribute is written is a codec, chosen by the annotation of the op's field, so that a new op needs nothing here. The
text form shares the codecs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from tenferro_ref import ops
from tenferro_ref.dims import DIM_KINDS, DimExpr, DimOp, Extent, InputDim, Unknown, UpperBound, expr_of, fold, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, InvalidArgument, TenferroError
from tenferro_ref.files import read_text
from tenferro_ref.ops import BY_NAME, ENGINE, OPS, CompareDir, Op, Policy, TensorType
from tenferro_ref.program.program import Instruction, Program, to_exec

VERSION = 1
#: Keys of the form's objects: those that must be there, and those that may.
PROGRAM_KEYS = ({"tenferro_program", "kind", "inputs", "instructions", "outputs"}, {"name", "policy", "n_slots"})
INPUT_KEYS: tuple[set[str], set[str]] = ({"slot", "dtype", "shape"}, set())
INSTRUCTION_KEYS = ({"op", "inputs", "outputs"}, {"attrs"})
#: What an instruction of an exec program may record beyond that.
METADATA_KEYS = {"dtype", "output_shapes", "output_extents", "last_use"}
#: Larger integers are not shapes, axes or slots of anything.
INT_LIMIT = 2**63 - 1
#: Nesting of an extension's configuration.
CONFIG_DEPTH = 32


def _fail(path: str, detail: str) -> NoReturn:
    raise FormatError(where=path if len(path) <= 120 else path[:100] + "...", detail=detail)


def shown(value: Any) -> str:
    """A value as JSON, short enough for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _expect(value: Any, kind: type, path: str, what: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        _fail(path, f"expected {what}, got {shown(value)}")
    return value


def _integer(value: Any, path: str) -> int:
    number: int = _expect(value, int, path, "an integer")
    if abs(number) > INT_LIMIT:
        _fail(path, f"{shown(number)} does not fit 64 bits")
    return number


def _sequence(value: Any, path: str) -> list[Any]:
    result: list[Any] = _expect(value, list, path, "a list")
    return result


def _object(value: Any, path: str, required: set[str], optional: set[str]) -> dict[str, Any]:
    entries: dict[str, Any] = _expect(value, dict, path, "an object")
    for key in sorted(required - entries.keys()):
        _fail(path, f"missing key {key!r}")
    for key in sorted(entries.keys() - required - optional):
        _fail(path, f"unknown key {shown(key)}; known here: {', '.join(sorted(required | optional))}")
    return entries


# --- codecs of attribute values ---------------------------------------------------------------------------------------


def read_dim(value: Any, path: str) -> DimExpr:
    """A dim expression: an integer, `{"input", "axis"}`, or `{"add": [x, y]}` and so on."""
    if not isinstance(value, dict):
        return _integer(value, path)
    if "input" in value or "axis" in value:
        entries = _object(value, path, {"input", "axis"}, set())
        return InputDim(_integer(entries["input"], f"{path}.input"), _integer(entries["axis"], f"{path}.axis"))
    if len(value) != 1 or next(iter(value)) not in DIM_KINDS:
        _fail(path, f"expected an integer, an input axis, or one of {', '.join(DIM_KINDS)}")
    ((kind, operands),) = value.items()
    pair = _sequence(operands, f"{path}.{kind}")
    if len(pair) != 2:
        _fail(f"{path}.{kind}", f"expected two operands, got {len(pair)}")
    lhs, rhs = read_dim(pair[0], f"{path}.{kind}[0]"), read_dim(pair[1], f"{path}.{kind}[1]")
    try:
        return DimOp(kind, lhs, rhs)
    except InvalidArgument as error:
        _fail(path, error.detail)


def write_dim(expr: DimExpr) -> Any:
    if isinstance(expr, InputDim):
        return {"input": expr.input, "axis": expr.axis}
    return {expr.kind: [write_dim(expr.lhs), write_dim(expr.rhs)]} if isinstance(expr, DimOp) else expr


def _read_extent(value: Any, path: str) -> Extent:
    for key, wrap in EXTENT_KINDS.items():
        if isinstance(value, dict) and key in value:
            return wrap(read_dim(_object(value, path, {key}, set())[key], f"{path}.{key}"))
    return read_dim(value, path)


EXTENT_KINDS: dict[str, Callable[[DimExpr], Extent]] = {
    "exact": lambda expr: expr,
    "upper_bound": UpperBound,
    "unknown": Unknown,
}


def _write_extent(extent: Extent) -> Any:
    expr = write_dim(expr_of(extent))
    return expr if is_exact(extent) else {"upper_bound" if isinstance(extent, UpperBound) else "unknown": expr}


def _read_enum(kind: type[DType] | type[CompareDir]) -> Callable[[Any, str], Any]:
    def read(value: Any, path: str) -> Any:
        name = _expect(value, str, path, "a name")
        if name not in kind.__members__:
            _fail(path, f"unknown {kind.__name__} {shown(name)}; known: {', '.join(kind.__members__)}")
        return kind[name]

    return read


def _read_bytes(value: Any, path: str) -> bytes:
    text = _expect(value, str, path, "lower-case hex digits")
    if len(text) % 2 or any(c not in "0123456789abcdef" for c in text):
        _fail(path, f"{shown(text)} is not an even number of lower-case hex digits")
    return bytes.fromhex(text)


def _check_depth(value: Any, path: str, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if levels == 0:
            _fail(path, f"nested more than {CONFIG_DEPTH} deep")
        for entry in value.values() if isinstance(value, dict) else value:
            _check_depth(entry, path, levels - 1)


def _read_config(value: Any, path: str) -> str:
    _check_depth(value, path, CONFIG_DEPTH)
    return json.dumps(_expect(value, dict, path, "an object"), sort_keys=True, separators=(",", ":"))


def _list_of(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, path: tuple(read(v, f"{path}[{i}]") for i, v in enumerate(_sequence(value, path)))


@dataclass(frozen=True)
class Codec:
    """How values of one type are read and written, and the JSON Schema of what is read (see `schema`)."""

    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any]
    schema: Mapping[str, Any]


def ref(name: str) -> dict[str, str]:
    """Reference to a definition of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


CODECS: dict[str, Codec] = {
    "int": Codec(_integer, int, ref("integer")),
    "str": Codec(lambda v, p: _expect(v, str, p, "a string"), str, {"type": "string"}),
    "bytes": Codec(_read_bytes, bytes.hex, {"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
    "DType": Codec(_read_enum(DType), lambda v: v.name, ref("dtype")),
    "CompareDir": Codec(_read_enum(CompareDir), lambda v: v.name, {"enum": list(CompareDir.__members__)}),
    "tuple[int, ...]": Codec(_list_of(_integer), list, array_of(ref("integer"))),
    "tuple[DimExpr, ...]": Codec(_list_of(read_dim), lambda v: [write_dim(e) for e in v], array_of(ref("dim"))),
    "config": Codec(_read_config, json.loads, {"type": "object"}),
}


def _attributes(op: type[Op]) -> dict[str, Codec]:
    config = {"config"} if op is ops.Extension else set()
    return {f.name: CODECS["config" if f.name in config else str(f.type)] for f in fields(op)}


_ATTRIBUTES = {op: _attributes(op) for op in OPS}


def attributes(op: type[Op]) -> dict[str, Codec]:
    """Codec of each attribute of an op class, by field name."""
    return _ATTRIBUTES[op]


def optional_attributes(op: type[Op]) -> set[str]:
    """Attributes that may be left out."""
    return {f.name for f in fields(op) if f.default is not MISSING}


def write_attrs(op: Op) -> dict[str, Any]:
    """Attributes of an op as JSON values."""
    return {name: codec.write(getattr(op, name)) for name, codec in attributes(type(op)).items()}


def read_op(name: Any, attrs: Any, path: str) -> Op:
    """The op `name` with attributes `attrs`.

    Raises
    ------
    FormatError
        Unknown op, or attributes that are not exactly those of the op.
    """
    _expect(name, str, f"{path}.op", "an op name")
    if name not in BY_NAME:
        _fail(f"{path}.op", f"unknown op {shown(name)}")
    codecs, defaults = attributes(BY_NAME[name]), optional_attributes(BY_NAME[name])
    entries = _object(attrs, f"{path}.attrs", set(codecs) - defaults, defaults)
    return BY_NAME[name](**{key: codecs[key].read(v, f"{path}.attrs.{key}") for key, v in entries.items()})


def read_policy(value: Any, path: str) -> Policy:
    """Policy flags; those left out have the engine's defaults."""
    entries = _object(value, path, set(), set(POLICY_CHOICES))
    for key, choice in entries.items():
        if choice not in POLICY_CHOICES[key]:
            _fail(f"{path}.{key}", f"expected one of {', '.join(POLICY_CHOICES[key])}, got {shown(choice)}")
    return Policy(**entries)


POLICY_CHOICES: dict[str, tuple[str, ...]] = {
    "scatter_bounds": ("clamp", "skip"),
    "integer_faults": ("error", "stablehlo"),
    "empty_reduction": ("error", "identity"),
    "dtypes": ("engine", "stablehlo"),
}


def write_policy(policy: Policy) -> dict[str, str]:
    """The flags that differ from the engine's defaults."""
    return {k: getattr(policy, k) for k in POLICY_CHOICES if getattr(policy, k) != getattr(ENGINE, k)}


# --- whole programs ---------------------------------------------------------------------------------------------------


def write_program(program: Program) -> dict[str, Any]:
    """The program as JSON values; `exec` programs carry their metadata."""
    return _entries(program, [_write_instruction(i, program.kind) for i in program.instructions])


def _entries(program: Program, instructions: list[Any]) -> dict[str, Any]:
    names = dict(program.symbols) if program.kind == "graph" else {}

    def input_extent(extent: Extent) -> Any:
        return names[extent] if isinstance(extent, InputDim) and extent in names else _write_extent(extent)

    return {
        "tenferro_program": VERSION,
        "kind": "graph" if program.kind == "graph" else "exec",
        **({"name": program.name} if program.name else {}),
        **({"policy": write_policy(program.policy)} if program.policy != ENGINE else {}),
        "n_slots": program.n_slots,
        "inputs": [
            {"slot": slot, "dtype": t.dtype.name, "shape": [input_extent(e) for e in t.shape]}
            for slot, t in zip(program.input_slots, program.input_types, strict=True)
        ],
        "instructions": instructions,
        "outputs": list(program.output_slots),
    }


def _write_instruction(ins: Instruction, kind: str) -> dict[str, Any]:
    entry = {
        "op": ins.op.name,
        "attrs": write_attrs(ins.op),
        "inputs": list(ins.input_slots),
        "outputs": list(ins.output_slots),
    }
    if kind == "exec":
        entry["dtype"] = ins.types[0].dtype.name
        entry["output_shapes"] = [[write_dim(expr_of(e)) for e in t.shape] for t in ins.types]
        entry["output_extents"] = [[_write_extent(e) for e in t.shape] for t in ins.types]
        entry["last_use"] = list(ins.last_use)
    return entry


def dumps(program: Program) -> str:
    """JSON text, one instruction a line."""
    entries = _entries(program, [_instruction_text(i, program.kind) for i in program.instructions])
    lines = []
    for key, value in entries.items():
        if key in ("inputs", "instructions") and value:
            body = ",\n".join(["    " + (v if key == "instructions" else json.dumps(v)) for v in value])
            lines.append(f'  "{key}": [\n{body}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _instruction_text(ins: Instruction, kind: str) -> str:
    """`_write_instruction` as text; what constants hold is not kept."""
    if kind == "exec" or isinstance(ins.op, ops.Constant):
        return json.dumps(_write_instruction(ins, kind))
    return f'{_op_text(ins.op)}, "inputs": {[*ins.input_slots]}, "outputs": {[*ins.output_slots]}}}'


@lru_cache(maxsize=4096)
def _op_text(op: Op) -> str:
    """How the text of an instruction begins; the encoder takes long to begin, and many instructions have the same op."""
    return json.dumps({"op": op.name, "attrs": write_attrs(op)})[:-1]


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


def read_json(text: str, where: str) -> Any:
    """JSON values, more strictly than Python: no duplicate keys, no NaN, no infinity.

    Raises
    ------
    FormatError
        Not JSON; `where` becomes `FILE:LINE:COLUMN` if that is known.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise FormatError(where=f"{where}:{error.lineno}:{error.colno}", detail=f"not JSON: {error.msg}") from None
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
    """
    return read_located(read_json(text, where), where, infer=infer)


def read_located(value: Any, where: str, *, infer: bool = True) -> Program:
    """`read_program`, with the file's name in what it raises."""
    try:
        return read_program(value, infer=infer)
    except RecursionError:
        raise FormatError(where=where, detail="nested too deeply") from None
    except FormatError as error:
        raise FormatError(where=f"{where}: {error.where}", detail=error.detail) from None
    except TenferroError as error:
        error.place = f"{where}: {error.place}" if error.place else where
        raise


def read_program(value: Any, *, infer: bool = True) -> Program:
    """A program from JSON values, checked: types are inferred, and recorded metadata must agree with them."""
    entries = _object(value, "$", *PROGRAM_KEYS)
    version = _integer(entries["tenferro_program"], "$.tenferro_program")
    if version != VERSION:
        _fail("$.tenferro_program", f"version {version}; this reader knows {VERSION}")
    kind = entries["kind"]
    if kind not in ("graph", "exec"):
        _fail("$.kind", f'expected "graph" or "exec", got {shown(kind)}')
    policy = read_policy(entries.get("policy", {}), "$.policy")
    name = _expect(entries.get("name", ""), str, "$.name", "a string")
    slots, types, symbols = _read_inputs(entries["inputs"], kind)
    instructions = [
        _read_instruction(v, f"$.instructions[{i}]", kind)
        for i, v in enumerate(_sequence(entries["instructions"], "$.instructions"))
    ]
    outputs = _list_of(_integer)(entries["outputs"], "$.outputs")
    used = [*slots, *outputs, *(s for ins, _ in instructions for s in (*ins.input_slots, *ins.output_slots))]
    n_slots = _integer(entries.get("n_slots", max(used, default=-1) + 1), "$.n_slots")
    bare = tuple(ins for ins, _ in instructions)
    graph = Program(bare, slots, types, outputs, n_slots, policy, name, symbols)
    if infer:
        graph.slot_types  # noqa: B018 - inference is the check
    return graph if kind == "graph" else _with_metadata(graph, [given for _, given in instructions])


def _read_inputs(
    value: Any, kind: str
) -> tuple[tuple[int, ...], tuple[TensorType, ...], tuple[tuple[InputDim, str], ...]]:
    slots: list[int] = []
    types: list[TensorType] = []
    symbols: dict[str, InputDim] = {}
    named: set[Extent] = set()
    for i, entry in enumerate(_sequence(value, "$.inputs")):
        path = f"$.inputs[{i}]"
        given = _object(entry, path, *INPUT_KEYS)
        shape: list[Extent] = []
        for axis, extent in enumerate(_sequence(given["shape"], f"{path}.shape")):
            where = f"{path}.shape[{axis}]"
            if isinstance(extent, str):
                if kind != "graph":
                    _fail(where, f"symbol {shown(extent)}: only graph programs have symbolic inputs")
                if not extent.isidentifier():
                    _fail(where, f"symbol {shown(extent)} is not an identifier")
                shape.append(symbols.setdefault(extent, InputDim(i, axis)))
                named.add(shape[-1])
                continue
            dim = read_dim(extent, where)
            if isinstance(dim, int) and dim < 0:
                _fail(where, f"extent {dim} is negative")
            if not isinstance(dim, int) and dim != InputDim(i, axis) and dim not in named:
                _fail(where, "expected an integer, a symbol, this axis, or an earlier one that names itself")
            named.add(dim)
            shape.append(dim)
        slots.append(_integer(given["slot"], f"{path}.slot"))
        types.append(TensorType(_read_enum(DType)(given["dtype"], f"{path}.dtype"), tuple(shape)))
    return tuple(slots), tuple(types), tuple((dim, name) for name, dim in symbols.items())


def _read_instruction(value: Any, path: str, kind: str) -> tuple[Instruction, dict[str, Any]]:
    required, optional = INSTRUCTION_KEYS
    entries = _object(value, path, required, optional | METADATA_KEYS if kind == "exec" else optional)
    op = read_op(entries["op"], entries.get("attrs", {}), path)
    slots = [_list_of(_integer)(entries[key], f"{path}.{key}") for key in ("inputs", "outputs")]
    given = {key: entries[key] for key in METADATA_KEYS & entries.keys()}
    return Instruction(op, *slots), given


def _with_metadata(graph: Program, metadata: Sequence[Mapping[str, Any]]) -> Program:
    """The exec program: what is left out of `metadata` is inferred, what is given must agree with that."""
    program = to_exec(graph)
    for i, (ins, given) in enumerate(zip(program.instructions, metadata, strict=True)):
        checks: tuple[tuple[str, Callable[[Any, str], Any], Any], ...] = (
            ("dtype", _read_enum(DType), ins.types[0].dtype),
            (
                "output_shapes",
                _list_of(_list_of(_folded(read_dim))),
                tuple(tuple(map(expr_of, t.shape)) for t in ins.types),
            ),
            ("output_extents", _list_of(_list_of(_folded(_read_extent))), tuple(t.shape for t in ins.types)),
            ("last_use", _list_of(lambda v, p: _expect(v, bool, p, "true or false")), ins.last_use),
        )
        for key, read, inferred in checks:
            path = f"$.instructions[{i}].{key}"
            if key in given and read(given[key], path) != inferred:
                rule = ", ".join(map(str, ins.types)) if key != "last_use" else f"last_use {json.dumps(ins.last_use)}"
                _fail(path, f"{shown(given[key])} contradicts what {ins.op.name} gives here: {rule}")
    return program


def _folded(read: Callable[[Any, str], Extent]) -> Callable[[Any, str], Extent]:
    return lambda value, path: fold(read(value, path))


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
