"""JSON Schema of program JSON: what of FORMATS a schema can say, made from the tables that the reader reads by.

Run `python -m tenferro_ref.program.schema` to print it; docs/program.schema.json is that text. A schema sees keys, types
and operand counts. It sees neither references between slots nor the ops' rules, and it takes 2.0 for an integer, which the
reader does not.
"""

from __future__ import annotations

import json
from typing import Any

from tenferro_ref import ops
from tenferro_ref.dims import DIM_KINDS
from tenferro_ref.dtype import DType
from tenferro_ref.ops import BY_NAME, Op
from tenferro_ref.program.json_form import (
    EXTENT_KINDS,
    INPUT_KEYS,
    INSTRUCTION_KEYS,
    INT_LIMIT,
    METADATA_KEYS,
    POLICY_CHOICES,
    PROGRAM_KEYS,
    VERSION,
    array_of,
    attributes,
    optional_attributes,
    ref,
)
from tenferro_ref.program.program import MAX_SLOTS

Schema = dict[str, Any]


def _object(properties: Schema, required: set[str], optional: set[str]) -> Schema:
    """An object with these keys and no others; `properties` must know each."""
    return {
        "type": "object",
        "properties": {key: properties[key] for key in sorted(required | optional)},
        "required": sorted(required),
        "additionalProperties": False,
    }


def _one_key(values: dict[str, Schema]) -> Schema:
    """An object with exactly one of these keys."""
    return {**_object(values, set(), set(values)), "minProperties": 1, "maxProperties": 1}


def _op(op: type[Op]) -> Schema:
    """What an instruction of `op` must have beyond what all have."""
    optional = optional_attributes(op)
    codecs = attributes(op)
    required = set(codecs) - optional
    attrs = _object({name: dict(codec.schema) for name, codec in codecs.items()}, required, optional)
    if op is ops.Constant:
        attrs["allOf"] = [
            {
                "if": {"properties": {"dtype": {"const": dtype.name}}},
                "then": {"properties": {"data": {"minLength": 2 * dtype.itemsize, "maxLength": 2 * dtype.itemsize}}},
            }
            for dtype in DType
        ]
    inputs: Schema = {"minItems": op.arity} if op.variadic else {"minItems": op.arity, "maxItems": op.arity}
    # a family's ops have as many outputs as the family says, every other op has one
    outputs: Schema = {} if op is ops.Extension else {"minItems": 1, "maxItems": 1}
    return {
        "properties": {"attrs": attrs, "inputs": inputs, "outputs": outputs},
        **({"required": ["attrs"]} if required else {}),
    }


def _instruction(*, metadata: bool) -> Schema:
    required, optional = INSTRUCTION_KEYS
    properties = {
        "op": {"enum": list(BY_NAME)},
        "attrs": {"type": "object"},
        "inputs": array_of(ref("slot")),
        "outputs": array_of(ref("slot")),
        "dtype": ref("dtype"),
        "output_shapes": array_of(array_of(ref("dim"))),
        "output_extents": array_of(array_of(ref("extent"))),
        "last_use": array_of({"type": "boolean"}),
    }
    return {
        **_object(properties, required, optional | METADATA_KEYS if metadata else optional),
        "allOf": [{"if": {"properties": {"op": {"const": name}}}, "then": ref(f"op{name}")} for name in BY_NAME],
    }


def _input(*extents: Schema) -> Schema:
    properties = {"slot": ref("slot"), "dtype": ref("dtype"), "shape": array_of({"anyOf": list(extents)})}
    return _object(properties, *INPUT_KEYS)


def _of_kind(kind: str, given: Schema, instruction: Schema) -> Schema:
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"properties": {"inputs": array_of(given), "instructions": array_of(instruction)}},
    }


def program_schema() -> Schema:
    """The schema (draft 2020-12) of program JSON of this version."""
    extent = {"type": "integer", "minimum": 0, "maximum": INT_LIMIT}
    properties = {
        "tenferro_program": {"const": VERSION},
        "kind": {"enum": ["graph", "exec"]},
        "name": {"type": "string"},
        "policy": _object({k: {"enum": list(v)} for k, v in POLICY_CHOICES.items()}, set(), set(POLICY_CHOICES)),
        "n_slots": {"type": "integer", "minimum": 0, "maximum": MAX_SLOTS},
        "inputs": {"type": "array"},
        "instructions": {"type": "array"},
        "outputs": array_of(ref("slot")),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"tenferro program JSON, version {VERSION}",
        **_object(properties, *PROGRAM_KEYS),
        "allOf": [
            _of_kind("graph", _input(extent, ref("inputDim"), ref("symbol")), _instruction(metadata=False)),
            _of_kind("exec", _input(extent, ref("inputDim")), _instruction(metadata=True)),
        ],
        "$defs": {
            "integer": {"type": "integer", "minimum": -INT_LIMIT, "maximum": INT_LIMIT},
            "slot": {"type": "integer", "minimum": 0, "maximum": MAX_SLOTS - 1},
            "dtype": {"enum": list(DType.__members__)},
            "symbol": {"type": "string", "pattern": r"^[^\W\d]\w*$"},
            "inputDim": _object({"input": ref("integer"), "axis": ref("integer")}, {"input", "axis"}, set()),
            "dim": {
                "anyOf": [
                    ref("integer"),
                    ref("inputDim"),
                    _one_key({kind: {**array_of(ref("dim")), "minItems": 2, "maxItems": 2} for kind in DIM_KINDS}),
                ]
            },
            "extent": {"anyOf": [ref("dim"), _one_key({kind: ref("dim") for kind in EXTENT_KINDS})]},
            **{f"op{name}": _op(op) for name, op in BY_NAME.items()},
        },
    }


def schema_text() -> str:
    """The schema as it is checked in."""
    return json.dumps(program_schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
