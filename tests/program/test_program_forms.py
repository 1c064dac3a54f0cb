"""JSON and text form: what is written is read back as the same program."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.generate.batches import generate
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import DIM_KINDS, DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import FormatError, InvalidArgument
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import OPS, STABLEHLO, CompareDir, Op, Policy
from tenferro_ref.program import (
    GraphBuilder,
    Program,
    dumps,
    load,
    loads,
    parse,
    print_program,
    to_exec,
)
from tenferro_ref.program.json_form import write_program
from tenferro_ref.program.records import write_attrs
from tests.program.samples import every_op, programs, symbolic

SAMPLES = {
    "every op": every_op(),
    "symbolic": symbolic(),
    "every op, exec": to_exec(every_op()),
    "symbolic, exec": to_exec(symbolic()),
    "empty": GraphBuilder().build(),
    "empty, exec": to_exec(GraphBuilder().build()),
    "imported": GraphBuilder("x", STABLEHLO).build(),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_handcrafted_programs_survive_both_forms(name: str) -> None:
    program = SAMPLES[name]
    assert loads(dumps(program)) == program
    assert parse(print_program(program)) == program


@settings(max_examples=60)
@given(programs())
def test_random_programs_survive_both_forms(program: Program) -> None:
    for form in (program, to_exec(program)):
        back = loads(dumps(form))
        assert json.loads(dumps(form)) == write_program(form)
        assert back == form
        assert dumps(back) == dumps(form)
        again = parse(print_program(form))
        assert again == form
        assert print_program(again) == print_program(form)


def test_generated_programs_survive_both_forms() -> None:
    """What the fuzzer writes: any op, deep chains, special constants."""
    for case in generate(9, 0, 60):
        for program in (case.program, to_exec(case.program)):
            assert loads(dumps(program)) == program
            assert parse(print_program(program)) == program


_numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 9)
_dims = st.recursive(
    _numbers | st.builds(InputDim, _numbers, _numbers),
    lambda inner: st.builds(DimOp, st.sampled_from(DIM_KINDS), inner, inner),
    max_leaves=8,
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
#: A strategy for each type of attribute that there is.
_ATTRIBUTES = {
    "int": _numbers,
    "bool": st.booleans(),
    "str": st.text(max_size=8),
    "bytes": st.binary(max_size=16),
    "DType": st.sampled_from(ENGINE_DTYPES),
    "CompareDir": st.sampled_from(CompareDir),
    "tuple[int, ...]": st.lists(_numbers, max_size=4).map(tuple),
    "tuple[DimExpr, ...]": st.lists(_dims, max_size=3).map(tuple),
}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_any_attributes_survive(op: type[Op], data: st.DataObject) -> None:
    """Whether or not they make sense: what an op holds is not the form's business."""
    given_ = {f.name: data.draw(_ATTRIBUTES[str(f.type)]) for f in fields(op)}
    if op is ops.Extension:
        config = data.draw(st.dictionaries(st.text(max_size=8), _json, max_size=3))
        made: Op = ops.Extension.of(given_["family"], given_["op"], config)
    else:
        made = op(**given_)
    attrs = json.loads(json.dumps(write_attrs(made)))
    instruction = {"op": op.__name__, "attrs": attrs, "inputs": [], "outputs": []}
    program = {"tenferro_program": 1, "kind": "graph", "inputs": [], "instructions": [instruction], "outputs": []}
    back = loads(json.dumps(program), infer=False).instructions[0].op
    assert back == made
    assert write_attrs(back) == attrs


@given(st.sampled_from(ENGINE_DTYPES), st.binary(min_size=16, max_size=16))
def test_constants_keep_every_bit(dtype: DType, data: bytes) -> None:
    """NaN payloads, signalling NaNs, Bool bytes that are neither 0 nor 1."""
    b = GraphBuilder()
    program = b.build(b.apply(ops.Constant(dtype, data[: dtype.itemsize])))
    for back in (loads(dumps(program)), parse(print_program(program))):
        assert back.instructions[0].op == ops.Constant(dtype, data[: dtype.itemsize])


def test_the_engines_own_families_survive_both_forms() -> None:
    b = GraphBuilder("families")
    x, y = b.input("F64", (3, 3)), b.input("F32", (3, 4, 2))
    product = tn.einsum("ij,jkl->ikl", x, y)
    values = b.apply_many(ops.Extension.of("tenferro-linalg.linalg.v1", "Svd", {}), x)
    program = b.build(product, *values)
    for form in (program, to_exec(program)):
        assert loads(dumps(form)) == form
        assert parse(print_program(form)) == form


def test_the_samples_have_every_op() -> None:
    assert {type(i.op) for i in every_op().instructions} == set(OPS)


def test_names_of_symbols_survive() -> None:
    program = symbolic()
    for back in (loads(dumps(program)), parse(print_program(program))):
        assert back.kind == "graph"
        assert back.symbols == program.symbols == ((InputDim(0, 0), "n"), (InputDim(0, 2), "m"))
    assert "%0: F32[n, 4, m], %1: F32[m, n]" in print_program(program)


def test_the_text_form_reads_like_this() -> None:
    b = GraphBuilder("a dot", Policy(dtypes="stablehlo"))
    x, y = b.input("F64", ("n", 3)), b.input("F64", (4, 3))
    program = b.build(x @ y.T)
    assert print_program(program) == (
        'graph @"a dot" policy {"dtypes": "stablehlo"} (%0: F64[n, 3], %1: F64[4, 3]) -> (%3) slots 4 {\n'
        '  %2 = Transpose(%1) {"perm": [1, 0]} : F64[3, 4]\n'
        '  %3 = DotGeneral(%0, %2) {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0], '
        '"lhs_batch_dims": [], "rhs_batch_dims": []} : F64[n, 4]\n'
        "}\n"
    )
    text = print_program(to_exec(program))
    assert "%3 = DotGeneral(%0!, %2!)" in text
    assert text.startswith("exec")


def test_comments_blank_lines_and_indentation_are_free() -> None:
    text = print_program(every_op()).replace("\n", "\r\n\n // a comment\n\t")
    assert parse(text) == every_op()


def test_the_json_form_of_the_format_document() -> None:
    text = """{
      "tenferro_program": 1, "kind": "exec", "name": "optional",
      "policy": {"scatter_bounds": "clamp", "integer_faults": "error", "empty_reduction": "error", "dtypes": "engine"},
      "n_slots": 4,
      "inputs":  [{"slot": 0, "dtype": "F64", "shape": [2, 3]}, {"slot": 1, "dtype": "F64", "shape": [4, 3]}],
      "instructions": [
        {"op": "Transpose",  "attrs": {"perm": [1, 0]}, "inputs": [1], "outputs": [2]},
        {"op": "DotGeneral", "attrs": {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0],
                                       "lhs_batch_dims": [], "rhs_batch_dims": []},
         "inputs": [0, 2], "outputs": [3]}
      ],
      "outputs": [3]
    }"""
    program = loads(text)
    assert program.kind == "exec"
    program.verify()
    assert program.instructions[1].last_use == (True, True)
    assert program.output_types[0].shape == (2, 4)


def test_optional_parts_may_be_left_out() -> None:
    program = loads('{"tenferro_program": 1, "kind": "graph", "inputs": [], "instructions": [], "outputs": []}')
    assert program == GraphBuilder().build()
    constant = {"op": "Constant", "attrs": {"dtype": "Bool", "data": "01"}, "inputs": [], "outputs": [6]}
    program = loads(json.dumps({**json.loads(dumps(program)), "instructions": [constant]} | {"n_slots": 7}))
    assert program.n_slots == 7


@pytest.mark.parametrize("key", ["dtype", "output_shapes", "output_extents", "last_use"])
def test_metadata_is_inferred_where_left_out_and_checked_where_given(key: str) -> None:
    program = to_exec(symbolic())
    entries = json.loads(dumps(program))
    for ins in entries["instructions"]:
        del ins[key]
    assert loads(json.dumps(entries)) == program
    wrong = {"dtype": "I32", "output_shapes": [[7]], "output_extents": [[{"upper_bound": 7}]], "last_use": [None]}
    for value in (wrong[key], [], "x", None, {}):
        entries["instructions"][0][key] = value
        with pytest.raises(FormatError) as caught:
            loads(json.dumps(entries))
        assert f"$.instructions[0].{key}" in caught.value.where


def test_recorded_bounds_may_not_be_claimed_exact() -> None:
    entries = json.loads(dumps(to_exec(symbolic())))
    bounded = next(i for i in entries["instructions"] if i["op"] == "DynamicTruncate")
    bounded["output_extents"] = [[e.get("upper_bound", e) for e in bounded["output_extents"][0]]]
    with pytest.raises(FormatError, match="contradicts"):
        loads(json.dumps(entries))


def test_load_reads_a_file_and_names_it_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(dumps(every_op()))
    assert load(path) == every_op()
    path.write_text(dumps(every_op())[:-40])
    with pytest.raises(FormatError, match=r"p\.json"):
        load(path)
    path.write_bytes(b"\xff\x00")
    with pytest.raises(FormatError, match="not UTF-8"):
        load(path)


def test_expressions_hold_any_unsigned_number() -> None:
    b = GraphBuilder()
    x = b.input("F64", ("n",))
    program = b.build(b.apply(ops.Reshape((DimOp("min", 2**64 - 1, InputDim(0, 0)),)), x))
    for form in (program, to_exec(program)):
        assert loads(dumps(form)) == form
        assert parse(print_program(form)) == form
    for larger in (2**64, 2**70):
        with pytest.raises(FormatError, match=r"attrs\.shape\[0\].*neither an int of 64 bits"):
            loads(dumps(program).replace(str(2**64 - 1), str(larger)))
    reshape = dumps(b.build(b.apply(ops.Reshape((77,)), x))).replace("77", str(2**64))
    with pytest.raises(InvalidArgument, match=r"program: \$\.instructions\[1\]\.attrs: Reshape: shape"):
        loads(reshape)


def test_a_program_of_the_engines_families_is_read_whatever_is_imported(tmp_path: Path) -> None:
    b = GraphBuilder()
    program = b.build(linalg.cholesky(b.input("F64", (2, 2))))
    (tmp_path / "p.json").write_text(dumps(program), "utf-8")
    (tmp_path / "p.txt").write_text(print_program(program), "utf-8")
    for read in ("load('p.json')", "parse(open('p.txt').read())"):
        code = f"from tenferro_ref.program import load, parse; print({read}.instructions[0].op.op)"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == "Cholesky\n", done.stderr
