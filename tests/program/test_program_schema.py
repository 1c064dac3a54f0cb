"""The JSON Schema of programs: current, true of every program, and false of what the reader finds malformed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from test_program_malformed import MALFORMED, Entries, edited, refused, small

from fuzz.generate.batches import generate
from tenferro_ref.errors import FormatError
from tenferro_ref.ops import KNOWN, OPS, Policy
from tenferro_ref.program import GraphProgram, dumps, to_exec
from tenferro_ref.program.schema import schema_text
from tests.program.samples import every_op, programs, symbolic

pytestmark = pytest.mark.once


SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
CHECKED_IN = Path(__file__).parents[2] / "docs" / "program.schema.json"


def valid(entries: Any) -> bool:
    try:
        return bool(VALIDATOR.is_valid(entries))
    except UnicodeEncodeError:  # a lone surrogate
        return False


def test_the_file_is_current() -> None:
    """`python -m tenferro_ref.program.schema > docs/program.schema.json`."""
    assert CHECKED_IN.read_text("utf-8") == schema_text()


def test_it_is_a_schema_and_knows_every_op_and_flag() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    for kind in ("graph", "exec"):
        assert {name.removeprefix(kind) for name in SCHEMA["$defs"] if name.startswith(kind)} == set(KNOWN)
    assert set(SCHEMA["$defs"]["Policy"]["properties"]) == {f.name for f in fields(Policy)}


@pytest.mark.parametrize("program", [every_op(), symbolic()], ids=["every op", "symbolic"])
def test_every_op_and_symbol_is_valid(program: GraphProgram) -> None:
    for form in (program, to_exec(program)):
        VALIDATOR.validate(json.loads(dumps(form)))


@settings(max_examples=25)
@given(programs())
def test_random_programs_are_valid(program: GraphProgram) -> None:
    VALIDATOR.validate(json.loads(dumps(program)))


def test_generated_programs_are_valid() -> None:
    for case in generate(5, 0, 40):
        VALIDATOR.validate(json.loads(dumps(to_exec(case.program))))


def _whole_floats(value: Any) -> bool:
    """JSON Schema takes 2.0 for an integer."""
    if isinstance(value, dict | list):
        return any(map(_whole_floats, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and value.is_integer()


@pytest.mark.parametrize(("edit", "path"), MALFORMED)
def test_what_the_reader_finds_malformed_is_invalid(edit: Callable[[Entries], None], path: str) -> None:
    text = edited(edit)
    error = refused(text)
    if isinstance(error, FormatError) and "names itself" not in error.detail and not _whole_floats(json.loads(text)):
        assert not valid(json.loads(text))


def _small(op: str, **changes: Any) -> Entries:
    program = every_op()
    (ins, *_) = [i for i in json.loads(dumps(program))["instructions"] if i["op"] == op]
    return {"tenferro_program": 1, "kind": "graph", "inputs": [], "instructions": [{**ins, **changes}], "outputs": []}


@pytest.mark.parametrize("op", [op.__name__ for op in OPS])
def test_operand_counts_and_attributes_of_every_op(op: str) -> None:
    kind = KNOWN[op]
    assert valid(_small(op))
    if kind.arity:
        assert not valid(_small(op, inputs=[0] * (kind.arity - 1)))
    assert valid(_small(op, inputs=[0] * (kind.arity + 1))) == kind.variadic
    assert valid(_small(op, outputs=[7, 8])) == (op == "Extension")
    attrs = _small(op)["instructions"][0]["attrs"]
    assert not valid(_small(op, attrs={**attrs, "surplus": 1}))
    assert not valid(_small(op, last_use=[True]))
    for name in attrs:
        if (op, name) != ("Extension", "config"):
            assert not valid(_small(op, attrs={k: v for k, v in attrs.items() if k != name}))
        assert not valid(_small(op, attrs={**attrs, name: None}))


def test_symbols_and_metadata_belong_to_one_kind_each() -> None:
    entries = json.loads(dumps(symbolic()))
    assert not valid({**entries, "kind": "exec"})
    assert not valid({**json.loads(dumps(to_exec(small()))), "kind": "graph"})
    assert not valid({**json.loads(dumps(small())), "kind": "module"})


def test_constants_have_the_bytes_of_their_dtype() -> None:
    for dtype, digits in (("F64", 16), ("Bool", 2), ("C64", 32)):
        for data, holds in (("0" * digits, True), ("0" * (digits - 2), False), ("0" * (digits + 2), False)):
            assert valid(_small("Constant", attrs={"dtype": dtype, "data": data})) == holds
