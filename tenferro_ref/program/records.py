"""What program JSON holds, as msgspec Structs (FORMATS 1): the reader decodes by them, the schema is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from tenferro_ref import ops
from tenferro_ref.dims import (
    DIM_KINDS,
    INT_LEAST,
    INT_LIMIT,
    USIZE_MAX,
    DimExpr,
    DimOp,
    Extent,
    InputDim,
    Unknown,
    UpperBound,
    expr_of,
    is_exact,
)
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import KNOWN, CompareDir, Op, Policy
from tenferro_ref.ops.boundary import CONFIG_DEPTH, nesting
from tenferro_ref.program.guards import EQUAL, ShapeGuard
from tenferro_ref.program.program import MAX_SLOTS

#: Version 2 has `shape_guards`; a program without them is written as one of version 1.
VERSION = 2

Integer = Annotated[int, Meta(ge=INT_LEAST, le=INT_LIMIT)]
# a slot out of range, or a wrong number of operands, is for the program's checks to refuse: the schema alone names the bounds
Slot = Annotated[int, Meta(ge=INT_LEAST, le=INT_LIMIT, extra_json_schema={"minimum": 0, "maximum": MAX_SLOTS - 1})]
Count = Annotated[int, Meta(ge=INT_LEAST, le=INT_LIMIT, extra_json_schema={"minimum": 0, "maximum": MAX_SLOTS})]
Slots: TypeAlias = tuple[Slot, ...]
if TYPE_CHECKING:
    DTypeName: TypeAlias = str
else:
    DTypeName = Literal[tuple(DType.__members__)]


# --- extents ----------------------------------------------------------------------------------------------------------


class AxisRecord(Struct, forbid_unknown_fields=True, frozen=True):
    """The extent of an axis of an input."""

    input: Integer
    axis: Integer


class DimRecord(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A dim expression that is no integer: `{"input", "axis"}`, or one operation such as `{"add": [x, y]}`."""

    input: Integer | UnsetType = UNSET
    axis: Integer | UnsetType = UNSET
    add: tuple[Dim, Dim] | UnsetType = UNSET
    sub: tuple[Dim, Dim] | UnsetType = UNSET
    mul: tuple[Dim, Dim] | UnsetType = UNSET
    floordiv: tuple[Dim, Dim] | UnsetType = UNSET
    min: tuple[Dim, Dim] | UnsetType = UNSET
    max: tuple[Dim, Dim] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse what is no expression; msgspec adds the JSON path to the ValueError."""
        keys = [key for key in self.__struct_fields__ if getattr(self, key) is not UNSET]
        if keys != ["input", "axis"] and (len(keys) != 1 or keys[0] in ("input", "axis")):
            raise ValueError(f"expected an input and its axis, or one of {', '.join(self.__struct_fields__[2:])}")
        try:
            self.extent()
        except InvalidArgument as error:
            raise ValueError(error.detail) from None

    def extent(self) -> Extent:
        """The expression, or the extent that a subclass may be."""
        for kind in DIM_KINDS:
            operands = getattr(self, kind)
            if operands is not UNSET:
                return DimOp(kind, *map(dim_of, operands))
        return InputDim(cast(int, self.input), cast(int, self.axis))


class ExtentRecord(DimRecord, forbid_unknown_fields=True, frozen=True):
    """A recorded extent: exact, bounded from above, or unknown but for an expression."""

    exact: Dim | UnsetType = UNSET
    upper_bound: Dim | UnsetType = UNSET
    unknown: Dim | UnsetType = UNSET

    def extent(self) -> Extent:
        if not isinstance(self.exact, UnsetType):
            return dim_of(self.exact)
        if not isinstance(self.upper_bound, UnsetType):
            return UpperBound(dim_of(self.upper_bound))
        if not isinstance(self.unknown, UnsetType):
            return Unknown(dim_of(self.unknown))
        return DimRecord.extent(self)


def _one_of(*keys: str) -> Meta:
    """The schema's words for what `DimRecord.__post_init__` checks."""
    axis = {"required": ["input", "axis"], "maxProperties": 2}
    return Meta(extra_json_schema={"oneOf": [axis, *({"required": [key], "maxProperties": 1} for key in keys)]})


# msgspec takes no bound beyond 64 bits with a sign: DimOp and the ops have that of larger ones
DimInteger = Annotated[int, Meta(ge=INT_LEAST, extra_json_schema={"maximum": USIZE_MAX})]
Dim: TypeAlias = DimInteger | Annotated[DimRecord, _one_of(*DIM_KINDS)]
RecordedExtent: TypeAlias = DimInteger | Annotated[ExtentRecord, _one_of(*DIM_KINDS, "exact", "upper_bound", "unknown")]


def dim_of(record: int | DimRecord) -> DimExpr:
    """The dim expression of a record."""
    return record if isinstance(record, int) else expr_of(record.extent())


def extent_of(record: int | DimRecord) -> Extent:
    """The extent of a record."""
    return record if isinstance(record, int) else record.extent()


def write_dim(expr: DimExpr) -> Any:
    """A dim expression as a JSON value."""
    if isinstance(expr, InputDim):
        return {"input": expr.input, "axis": expr.axis}
    return {expr.kind: [write_dim(expr.lhs), write_dim(expr.rhs)]} if isinstance(expr, DimOp) else expr


def write_extent(extent: Extent) -> Any:
    """An extent as a JSON value."""
    expr = write_dim(expr_of(extent))
    return expr if is_exact(extent) else {"upper_bound" if isinstance(extent, UpperBound) else "unknown": expr}


def write_guard(guard: ShapeGuard) -> dict[str, Any]:
    """A shape guard as a JSON value."""
    index = {} if guard.instruction_index is None else {"instruction_index": guard.instruction_index}
    source = {"family": guard.family, **index}
    return {"source": source, "relation": EQUAL, "lhs": write_dim(guard.lhs), "rhs": write_dim(guard.rhs)}


# --- attributes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Codec:
    """How attributes of one type are decoded: what JSON holds, and how the attribute is made of it and written to it."""

    record: Any
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value


def _config(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


#: By the annotation of the op's field, so that a new op needs nothing here; "config" is that of an extension.
CODECS: dict[str, Codec] = {
    "int": Codec(Integer),
    "bool": Codec(bool),
    "str": Codec(str),
    "bytes": Codec(Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$(?!\n)")], bytes.fromhex, bytes.hex),
    "DType": Codec(DTypeName, DType.__getitem__, lambda v: v.name),
    "CompareDir": Codec(Literal["Eq", "Lt", "Le", "Gt", "Ge"], CompareDir.__getitem__, lambda v: v.name),
    "tuple[int, ...]": Codec(tuple[Integer, ...], write=list),
    "tuple[DimExpr, ...]": Codec(
        tuple[Dim, ...], lambda v: tuple(map(dim_of, v)), lambda v: [write_dim(expr) for expr in v]
    ),
    "config": Codec(dict[str, Any], _config, json.loads),
}


def _codecs(op: type[Op]) -> dict[str, Codec]:
    config = "config" if op is ops.Extension else ""
    return {f.name: CODECS[config if f.name == config else str(f.type)] for f in fields(op)}


_ATTRIBUTES = {op: _codecs(op) for op in KNOWN.values()}


def write_attrs(op: Op) -> dict[str, Any]:
    """Attributes of an op as JSON values."""
    return {name: codec.write(getattr(op, name)) for name, codec in _ATTRIBUTES[type(op)].items()}


def op_of(op: type[Op], attrs: Struct) -> Op:
    """The op of decoded attributes."""
    codecs = _ATTRIBUTES[op]
    present = {name: value for name in codecs if (value := getattr(attrs, name)) is not UNSET}
    return op(**{name: codecs[name].read(value) for name, value in present.items()})


def _check_config(self: Any) -> None:
    if self.config is not UNSET and nesting(self.config) > CONFIG_DEPTH:
        raise ValueError(f"config is nested more than {CONFIG_DEPTH} deep")


def _attributes_record(op: type[Op]) -> type[Struct]:
    entries: list[Any] = [
        (f.name, codec.record) if f.default is MISSING else (f.name, codec.record | UnsetType, UNSET)
        for f, codec in zip(fields(op), _ATTRIBUTES[op].values(), strict=True)
    ]
    return defstruct(
        f"{op.__name__}Attributes", entries, forbid_unknown_fields=True, kw_only=True,
        namespace={"__post_init__": _check_config} if op is ops.Extension else None,
    )  # fmt: skip


_BYTES = {
    "allOf": [
        {
            "if": {"properties": {"dtype": {"const": dtype.name}}},
            "then": {"properties": {"data": {"minLength": 2 * dtype.itemsize, "maxLength": 2 * dtype.itemsize}}},
        }
        for dtype in DType
    ]
}


# --- programs ---------------------------------------------------------------------------------------------------------


class InstructionRecord(Struct, forbid_unknown_fields=True, kw_only=True):
    """What all instructions have; each op's record has its attributes beside that, under the tag `op`."""

    inputs: Slots
    outputs: Slots


class ExecInstructionRecord(InstructionRecord, kw_only=True):
    """What an exec program may record beyond that."""

    dtype: DTypeName | UnsetType = UNSET
    output_shapes: tuple[tuple[Dim, ...], ...] | UnsetType = UNSET
    output_extents: tuple[tuple[RecordedExtent, ...], ...] | UnsetType = UNSET
    last_use: tuple[bool, ...] | UnsetType = UNSET


def _instruction_record(kind: str, base: type[Struct], op: type[Op], attributes: type[Struct]) -> type[Struct]:
    count = {"minItems": op.arity} if op.variadic else {"minItems": op.arity, "maxItems": op.arity}
    # a family's ops have as many outputs as the family says, every other op has one
    outputs = {} if op is ops.Extension else {"minItems": 1, "maxItems": 1}
    attrs: Any = Annotated[attributes, Meta(extra_json_schema=_BYTES)] if op is ops.Constant else attributes
    required = any(f.default is MISSING for f in fields(op))
    entries: list[Any] = [
        ("attrs", attrs) if required else ("attrs", attrs, msgspec.field(default_factory=attributes)),
        ("inputs", Annotated[Slots, Meta(extra_json_schema=count)]),
        ("outputs", Annotated[Slots, Meta(extra_json_schema=outputs)]),
    ]
    return defstruct(
        f"{kind}{op.__name__}", entries, bases=(base,), tag_field="op", tag=op.__name__, kw_only=True,
        forbid_unknown_fields=True,
    )  # fmt: skip


_RECORDS = {op: _attributes_record(op) for op in KNOWN.values()}


def _union(types: list[Any]) -> Any:
    union = types[0]
    for type_ in types[1:]:
        union |= type_
    return union


GraphInstruction: Any = _union([_instruction_record("graph", InstructionRecord, *row) for row in _RECORDS.items()])
ExecInstruction: Any = _union([_instruction_record("exec", ExecInstructionRecord, *row) for row in _RECORDS.items()])

InputExtent: TypeAlias = Annotated[int, Meta(ge=0, le=INT_LIMIT)] | AxisRecord
Symbol = Annotated[str, Meta(extra_json_schema={"pattern": r"^[^\W\d]\w*$"})]


class ExecInput(Struct, forbid_unknown_fields=True):
    """An input of an exec program."""

    slot: Slot
    dtype: DTypeName
    shape: tuple[InputExtent, ...]


class GraphInput(Struct, forbid_unknown_fields=True):
    """An input of a graph program, whose extents may be symbols."""

    slot: Slot
    dtype: DTypeName
    shape: tuple[InputExtent | Symbol, ...]


PolicyRecord: Any = defstruct(
    "Policy", [(f.name, get_type_hints(Policy)[f.name], f.default) for f in fields(Policy)], forbid_unknown_fields=True
)


class ProgramRecord(Struct, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """What programs of both kinds have."""

    tenferro_program: Literal[1, 2]
    name: str = ""
    policy: PolicyRecord = msgspec.field(default_factory=PolicyRecord)
    n_slots: Count | UnsetType = UNSET
    outputs: Slots


class GraphRecord(ProgramRecord, tag="graph", kw_only=True):
    """A graph program."""

    inputs: tuple[GraphInput, ...]
    instructions: tuple[GraphInstruction, ...]


class GuardSource(Struct, forbid_unknown_fields=True):
    """The extension family whose rule asks for a guard, and which instruction of the graph it was."""

    family: str
    instruction_index: Annotated[int, Meta(ge=0, le=INT_LIMIT)] | None = None


class GuardRecord(Struct, forbid_unknown_fields=True):
    """A shape guard; expressions are over the program's inputs."""

    source: GuardSource
    relation: Literal["Equal"]
    lhs: Dim
    rhs: Dim

    def guard(self) -> ShapeGuard:
        """The guard of a record."""
        return ShapeGuard(dim_of(self.lhs), dim_of(self.rhs), self.source.family, self.source.instruction_index)


class ExecRecord(ProgramRecord, tag="exec", kw_only=True):
    """An exec program; metadata that it leaves out is inferred."""

    inputs: tuple[ExecInput, ...]
    instructions: tuple[ExecInstruction, ...]
    shape_guards: tuple[GuardRecord, ...] = ()
