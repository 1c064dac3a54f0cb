"""Malformed programs: a one-line typed error with the place, never anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dims import InputDim
from tenferro_ref.errors import FormatError, InvalidArgument, InvalidCompiledGraph, TenferroError
from tenferro_ref.program import (
    ExecProgram,
    GraphBuilder,
    GraphProgram,
    Instruction,
    dumps,
    loads,
    parse,
    print_program,
    to_exec,
)
from tests.program.samples import small

Entries = dict[str, Any]


def refused(text: str, read: Callable[[str], object] = loads) -> TenferroError:
    with pytest.raises(TenferroError) as caught:
        read(text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 500
    message.encode("utf-8")
    return caught.value


def edited(edit: Callable[[Entries], object], program: GraphProgram | ExecProgram | None = None) -> str:
    entries = json.loads(dumps(program or small()))
    edit(entries)
    return json.dumps(entries)


def at(*path: str | int, value: Any) -> Callable[[Entries], None]:
    """Edit: put `value` at a place."""

    def edit(entries: Any) -> None:
        for key in path[:-1]:
            entries = entries[key]
        entries[path[-1]] = value

    return edit


def without(*path: str | int) -> Callable[[Entries], None]:
    def edit(entries: Any) -> None:
        for key in path[:-1]:
            entries = entries[key]
        del entries[path[-1]]

    return edit


# --- the JSON text itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (dumps(small())[:-3], "not JSON"),
        (dumps(small())[: len(dumps(small())) // 2], "not JSON"),
        (dumps(small()) + "{}", "not JSON"),
        ("[1, 2", "not JSON"),
        ("nonsense", "not JSON"),
        ("\0\1\2", "not JSON"),
        ("null", "Expected `object`"),
        ("[]", "Expected `object`"),
        ("3", "Expected `object`"),
        ('"graph"', "Expected `object`"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[1e999]", "beyond the largest double"),
        ('{"a": 1, "a": 2}', "'a'|\"a\" occurs twice"),
        ('{"a": {"b": 1, "b": 2}}', '"b" occurs twice'),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        ("[" + "9" * 10_000 + "]", "not JSON"),
        ("\ud800", "not JSON"),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_not_json(text: str, words: str) -> None:
    error = refused(text)
    assert isinstance(error, FormatError)
    assert re.search(words, str(error))


def test_a_syntax_error_says_line_and_column() -> None:
    assert isinstance(error := refused('{\n  "kind": graph\n}'), FormatError)
    assert error.where == "program:2:11"


# --- the JSON values --------------------------------------------------------------------------------------------------

INS = "instructions"
MALFORMED: list[tuple[Callable[[Entries], None], str]] = [
    # keys
    (without("tenferro_program"), "$"),
    (without("kind"), "$"),
    (without("inputs"), "$"),
    (without(INS), "$"),
    (without("outputs"), "$"),
    (without("inputs", 0, "dtype"), "$.inputs[0]"),
    (without("inputs", 1, "shape"), "$.inputs[1]"),
    (without("inputs", 1, "slot"), "$.inputs[1]"),
    (without(INS, 0, "op"), "$.instructions[0]"),
    (without(INS, 1, "inputs"), "$.instructions[1]"),
    (without(INS, 1, "outputs"), "$.instructions[1]"),
    (without(INS, 1, "attrs"), "$.instructions[1]"),
    (without(INS, 0, "attrs", "lhs_batch_dims"), "$.instructions[0].attrs"),
    (at("extra", value=1), "$"),
    (at("two\nlines", value=1), "$"),
    (at("\ud800", value=1), "$"),
    (at("inputs", 0, "name", value="x"), "$.inputs[0]"),
    (at(INS, 0, "last_use", value=[True, True]), "$.instructions[0]"),
    (at(INS, 0, "attrs", "axis", value=0), "$.instructions[0].attrs"),
    (at("policy", "nonsense", value="x"), "$.policy"),
    # types
    (at("tenferro_program", value=3), "$.tenferro_program"),
    (at("tenferro_program", value="1"), "$.tenferro_program"),
    (at("tenferro_program", value=True), "$.tenferro_program"),
    (at("tenferro_program", value=1.0), "$.tenferro_program"),
    (at("kind", value="module"), "$.kind"),
    (at("kind", value=["graph"]), "$.kind"),
    (at("name", value=3), "$.name"),
    (at("policy", value=[]), "$.policy"),
    (at("policy", "dtypes", value="numpy"), "$.policy.dtypes"),
    (at("policy", "dtypes", value=None), "$.policy.dtypes"),
    (at("policy", "dtypes", value={}), "$.policy.dtypes"),
    (at("n_slots", value="4"), "$.n_slots"),
    (at("n_slots", value=4.0), "$.n_slots"),
    (at("n_slots", value=10**30), "$.n_slots"),
    (at("inputs", value={}), "$.inputs"),
    (at("inputs", 0, value=0), "$.inputs[0]"),
    (at("inputs", 0, "slot", value=None), "$.inputs[0].slot"),
    (at("inputs", 0, "slot", value=False), "$.inputs[0].slot"),
    (at("inputs", 0, "dtype", value="f64"), "$.inputs[0].dtype"),
    (at("inputs", 0, "dtype", value=64), "$.inputs[0].dtype"),
    (at("inputs", 0, "shape", value=6), "$.inputs[0].shape"),
    (at("inputs", 0, "shape", value=[2.0, 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 0, "shape", value=[2, -3]), "$.inputs[0].shape[1]"),
    (at("inputs", 0, "shape", value=[2, None]), "$.inputs[0].shape[1]"),
    (at("inputs", 0, "shape", value=["two words", 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 0, "shape", value=["", 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 0, "shape", value=["3", 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 0, "shape", value=[{"input": 1, "axis": 0}, 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 0, "shape", value=[{"input": -1, "axis": 0}, 3]), "$.inputs[0].shape[0]"),
    (at("inputs", 1, "shape", value=[{"input": 0, "axis": 1}, 2]), "$.inputs[1].shape[0]"),
    (at("inputs", 1, "shape", value=[{"input": 0, "axis": 9}, 2]), "$.inputs[1].shape[0]"),
    (at("inputs", 1, "shape", value=[{"add": [1, 2]}, 2]), "$.inputs[1].shape[0]"),
    (at("outputs", value=2), "$.outputs"),
    (at("outputs", value=["2"]), "$.outputs[0]"),
    (at(INS, value=None), "$.instructions"),
    (at(INS, 0, value=[]), "$.instructions[0]"),
    (at(INS, 0, "op", value=1), "$.instructions[0].op"),
    (at(INS, 0, "op", value="dotgeneral"), "$.instructions[0].op"),
    (at(INS, 0, "op", value="Op"), "$.instructions[0].op"),
    (at(INS, 0, "op", value="__class__"), "$.instructions[0].op"),
    (at(INS, 0, "op", value="a\nb"), "$.instructions[0].op"),
    (at(INS, 0, "attrs", value=[]), "$.instructions[0].attrs"),
    (at(INS, 0, "inputs", value=0), "$.instructions[0].inputs"),
    (at(INS, 0, "inputs", value=[0, "1"]), "$.instructions[0].inputs[1]"),
    (at(INS, 0, "outputs", value=[[2]]), "$.instructions[0].outputs[0]"),
    (at(INS, 1, "attrs", "perm", value="10"), "$.instructions[1].attrs.perm"),
    (at(INS, 1, "attrs", "perm", value=[1, 0.0]), "$.instructions[1].attrs.perm[1]"),
    (at(INS, 1, "attrs", "perm", value=[1, 2**63]), "$.instructions[1].attrs.perm[1]"),
    (at(INS, 1, "attrs", "perm", value=[1, int("9" * 4000)]), "$.instructions[1].attrs.perm[1]"),
    # constants
    (at(INS, 2, "attrs", "data", value="00"), "$.instructions[2]"),
    (at(INS, 2, "attrs", "data", value="0"), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "data", value="0x3ff0000000000000"), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "data", value="000000000000F03F"), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "data", value="000000000000f0 3f"), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "data", value="\u0660" * 16), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "data", value=0), "$.instructions[2].attrs.data"),
    (at(INS, 2, "attrs", "dtype", value="F17"), "$.instructions[2].attrs.dtype"),
    # references
    (at("n_slots", value=-1), "$"),
    (at("n_slots", value=3), "$.instructions[1]"),
    (at("n_slots", value=2**40), "$"),
    (at("inputs", 0, "slot", value=-1), "$.inputs[0]"),
    (at("inputs", 1, "slot", value=0), "$.inputs[1]"),
    (at("inputs", 1, "slot", value=99), "$.inputs[1]"),
    (at("outputs", value=[-1]), "$.outputs[0]"),
    (at("outputs", value=[2, 5]), "$.outputs[1]"),
    (at(INS, 0, "inputs", value=[0, 2]), "$.instructions[0]"),
    (at(INS, 0, "inputs", value=[0, 3]), "$.instructions[0]"),
    (at(INS, 0, "inputs", value=[0, -2]), "$.instructions[0]"),
    (at(INS, 0, "inputs", value=[0, 2**62]), "$.instructions[0]"),
    (at(INS, 0, "outputs", value=[0]), "$.instructions[0]"),
    (at(INS, 0, "outputs", value=[]), "$.instructions[0]"),
    (at(INS, 0, "outputs", value=[2, 5]), "$.instructions[0]"),
    (at(INS, 1, "outputs", value=[2]), "$.instructions[1]"),
    (at(INS, 0, "inputs", value=[0]), "$.instructions[0]"),
    (at(INS, 0, "inputs", value=[0, 1, 1]), "$.instructions[0]"),
    # rules
    (at(INS, 1, "attrs", "perm", value=[0, 0]), "$.instructions[1]"),
    (at("inputs", 0, "dtype", value="F32"), "$.instructions[0]"),
    (at("inputs", 1, "shape", value=[4, 2]), "$.instructions[0]"),
    (at("inputs", 1, "shape", value=[2**62, 2**62]), "$.inputs[1]"),
    (at("inputs", 1, "shape", value=[1] * 65), "$.inputs[1]"),
]


@pytest.mark.parametrize(("edit", "path"), MALFORMED)
def test_malformed_values_name_their_json_path(edit: Callable[[Entries], None], path: str) -> None:
    message = str(refused(edited(edit)))
    assert message.startswith(f"program: {path}: ")


def test_swapped_instructions_read_what_is_not_written_yet() -> None:
    def swap(entries: Entries) -> None:
        entries[INS] = [
            {"op": "Negate", "inputs": [3], "outputs": [2]},
            {"op": "Negate", "inputs": [2], "outputs": [3]},
        ]
        entries["outputs"] = [3]

    error = refused(edited(swap))
    assert isinstance(error, InvalidCompiledGraph)
    assert "slot 3 is read before it is written" in str(error)


@pytest.mark.parametrize(
    "dim",
    [
        {"input": 0},
        {"axis": 0},
        {"input": 0, "axis": 0, "more": 1},
        {"input": "0", "axis": 0},
        {"add": [1]},
        {"add": [1, 2, 3]},
        {"add": 3},
        {"add": [1, 2], "mul": [1, 2]},
        {"pow": [1, 2]},
        {},
        {"add": [1, None]},
        [3],
        "n",
        None,
        True,
        1.5,
    ],
    ids=json.dumps,
)
def test_malformed_dim_expressions(dim: object) -> None:
    reshape = {"op": "Reshape", "attrs": {"shape": [dim, 3]}, "inputs": [0], "outputs": [2]}
    error = refused(edited(at(INS, 0, value=reshape)))
    assert isinstance(error, FormatError)
    assert error.where.startswith("program: $.instructions[0].attrs.shape[0]")


def test_deep_dim_expressions_and_configurations() -> None:
    dim: object = {"input": 0, "axis": 0}
    for _ in range(400):
        dim = {"add": [0, dim]}
    deep: object = {}
    for _ in range(200):
        deep = {"a": deep}
    reshape = {"op": "Reshape", "attrs": {"shape": [dim]}, "inputs": [0], "outputs": [2]}
    extension = {
        "op": "Extension",
        "attrs": {"family": "f.v1", "op": "X", "config": deep},
        "inputs": [0],
        "outputs": [2],
    }
    assert "256 operations" in str(refused(edited(at(INS, 0, value=reshape))))
    assert "deep" in str(refused(edited(at(INS, 0, value=extension))))


def test_a_program_of_doubling_extents_is_refused_in_time() -> None:
    b = GraphBuilder()
    x = b.input("F64", ("n",))
    joined = b.apply(ops.Concatenate(0), x, x)
    text = edited(
        at(INS, value=[{"op": "Concatenate", "attrs": {"axis": 0}, "inputs": [s, s], "outputs": [s + 1]} for s in range(60)]),
        b.build(joined),
    )  # fmt: skip
    error = refused(json.dumps({**json.loads(text), "n_slots": 61}))
    assert isinstance(error, InvalidArgument)
    assert error.argument == "ExpressionTooLarge"


def test_exec_programs_have_no_symbols() -> None:
    error = refused(edited(at("inputs", 0, "shape", value=["n", 3]), to_exec(small())))
    assert isinstance(error, FormatError)
    assert error.where == "program: $.inputs[0].shape[0]"


def test_an_axis_may_be_named_by_number() -> None:
    def edit(entries: Entries) -> None:
        entries["inputs"][0]["shape"] = [{"input": 0, "axis": 0}, 3]
        entries["inputs"][1]["shape"] = [3, {"input": 0, "axis": 0}]

    program = loads(edited(edit))
    assert program.input_types[1].shape == (3, InputDim(0, 0))


# --- the text form ----------------------------------------------------------------------------------------------------

TEXT = print_program(small())


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("graph", "module", 1),
        ("slots 5", "slots -5", 1),
        ("slots 5", "slots " + "5" * 5000, 1),
        ("slots 5", "slots ²", 1),
        ("slots 5", "", 1),
        ("%0: F64[n, 3]", "%0: F64[n, 3] %9", 1),
        ("%0: F64[n, 3]", "%0 F64[n, 3]", 1),
        ("%0: F64[n, 3]", "%0: F64[n, 3", 1),
        ("%0: F64[n, 3]", "%0: F64[n,, 3]", 1),
        ("%0: F64[n, 3]", "%0: F64[--3, 3]", 1),
        ("%0: F64[n, 3]", "%0: F64[², 3]", 1),
        ("%0: F64[n, 3]", f"%0: F64[{'1' * 5000}, 3]", 1),
        ("%0: F64[n, 3]", f"%{'1' * 5000}: F64[n, 3]", 1),
        ("%0: F64[n, 3]", "%0: F17[n, 3]", 1),
        ("-> (%2, %3, %4)", "-> (%2 and %3, %4)", 1),
        ("-> (%2, %3, %4)", "-> (%2, %3, %7)", 1),
        ('@"small"', '@"sm\\xall"', 1),
        ('@"small"', "@small", 1),
        ('{"dtypes": "stablehlo"}', '{"dtypes": stablehlo}', 1),
        ('{"dtypes": "stablehlo"}', '{"dtypes": "stablehlo", "dtypes": "engine"}', 1),
        ('{"dtypes": "stablehlo"}', '{"dtypes": "other"}', 1),
        ("%2 = Dot", "%2 := Dot", 2),
        ("(%0, %1)", "(%0 %1)", 2),
        ("(%0, %1)", "(%0, 1)", 2),
        ("(%0, %1)", "(%0, %1!)", 2),
        ("(%0, %1)", "(%0, %4)", 2),
        ("DotGeneral", "Dot General", 2),
        ("DotGeneral", "Dot", 2),
        ('{"perm": [1, 0]}', '{"perm": [1, 0], "perm": [0, 1]}', 3),
        ('{"perm": [1, 0]}', '{"perm": [1, NaN]}', 3),
        ('{"perm": [1, 0]}', '{"perm": [1, 0}', 3),
        ('{"perm": [1, 0]}', '{"perm": ' + "[" * 50_000 + "]" * 50_000 + "}", 3),
        ('{"perm": [1, 0]}', '{"perm": [' + "1" * 9000 + "]}", 3),
        ('{"perm": [1, 0]}', '{"perm": [1, 1]}', 3),
        (' {"perm": [1, 0]}', "", 3),
        (" : F64[3, n]", "", 3),
        ("\n}\n", "\n", 4),
        ("\n}\n", "\n}\n}\n", 6),
    ],
    ids=lambda v: str(v)[:24],
)
def test_malformed_text_names_its_line_and_column(old: str, new: str, line: int) -> None:
    assert old in TEXT
    message = str(refused(TEXT.replace(old, new, 1), parse))
    assert re.match(rf"program:{line}:[0-9]+: ", message)


ONE_OP = "graph (%0: F64[2]) -> (%1) slots 2 {\n  %1 = Exp(%0) : F64[2]\n}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("F64[2]\n", "F32[2]\n", 'program:2:18: the type "F32[2]" contradicts what Exp gives here: F64[2]'),
        ("F64[2]\n", "F64[3]\n", 'program:2:18: the type "F64[3]" contradicts what Exp gives here: F64[2]'),
        ("F64[2]\n", "F64[2], ?\n", 'program:2:18: the type "F64[2], ?" contradicts what Exp gives here: F64[2]'),
        ("Exp", "Exq", "program:2:8: Invalid value 'Exq'; did you mean 'Exp'?"),
        ("%0: F64", "%0: f64", "program:1:12: Invalid enum value 'f64'; did you mean 'F64'?"),
        ("-> (%1)", "-> (%7)", "program:1:24: invalid program: output 0: slot 7 out of range (n_slots is 2)"),
        ("Exp(%0)", 'Exp(%0) {"x": 1}', "program:2:16: Object contains unknown field `x`"),
        ("Exp(%0)", 'Exp(%0) {"x": 1 1}', "program:2:24: not JSON: Expecting ',' delimiter"),
        ("}\n", "}x", "program:3:2: text after the closing }"),
        ("}\n", "}\n\n  x", "program:5:3: text after the closing }"),
        ("}\n", "", "program:2:3: the closing } is missing"),
        ("Exp(%0)", 'Convert(%0) {"to": "F46"}', "program:2:20: to: Invalid enum value 'F46'; did you mean 'F64'?"),
    ],
)
def test_errors_in_text_in_full(old: str, new: str, message: str) -> None:
    assert str(refused(ONE_OP.replace(old, new, 1), parse)) == message


def test_a_question_mark_and_spaces_agree_with_any_type() -> None:
    for type_ in ("?", "F64[ 2 ]"):
        assert parse(ONE_OP.replace("F64[2]\n", f"{type_}\n")) == parse(ONE_OP)


def test_an_unknown_extension_family_names_the_close_one() -> None:
    attrs = {"family": "tenferro-linalg.linalg.v2", "op": "Svd", "config": {}}
    text = ONE_OP.replace("Exp(%0)", f"Extension(%0) {json.dumps(attrs)}")
    assert str(refused(text, parse)).endswith("did you mean 'tenferro-linalg.linalg.v1'?")


@pytest.mark.parametrize("text", ["", "\n\n", "// only a comment", "}", "\0", "graph", TEXT[:40], dumps(small())])
def test_what_is_no_program_text(text: str) -> None:
    assert isinstance(refused(text, parse), FormatError)


def test_an_op_of_a_family_has_a_result() -> None:
    b = GraphBuilder()
    program = b.build(-b.input("F64", (2,)))
    silent = Instruction(ops.Extension.of("t.none.v1", "f", {}), (0,), ())
    with pytest.raises(InvalidCompiledGraph, match="has no result"):
        compile_std_to_exec(replace(program, instructions=(*program.instructions, silent)))
