"""Derivative programs in campaigns: drawn reproducibly, kept in stores and bundles, wrong rules found and shrunk."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fuzz.campaign.work import run_campaign
from fuzz.findings.bundle import read_bundle, replay
from fuzz.generate.batches import generate
from fuzz.generate.config import DEFAULT
from fuzz.generate.derivatives import in_turn
from fuzz.generate.derivatives.primals import entries, primal
from fuzz.generate.describe import describe
from fuzz.generate.input_sets import input_sets_of
from fuzz.generate.settings import config_of
from fuzz.store import Plan
from fuzz.store.model import pack, unpack, unpack_all
from oracle.derivation import derive
from oracle.peers import Pool
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP, TRANSPOSE
from tenferro_ref.autodiff.errors import UnsupportedMetadata
from tenferro_ref.autodiff.rules import Cotangents, Operand
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UsageError
from tenferro_ref.program import Value, dumps
from tenferro_ref.tensor import type_of

pytestmark = pytest.mark.once

HALF, ALL = config_of(("derivatives=1/2",)), config_of(("derivatives=1",))


def test_they_are_drawn_from_seed_batch_and_number_alone() -> None:
    some, again, none = (generate(3, 1, 64, config) for config in (HALF, HALF, config_of(("derivatives=0",))))
    assert [c.fingerprint for c in some] == [c.fingerprint for c in again]
    drawn = [c for c in some if c.derivation]
    assert 15 < len(drawn) < 45
    assert {c.derivation.transforms for c in drawn if c.derivation} == {("jvp",), ("vjp",), ("jvp", "vjp")}
    # the others are those of a campaign without derivatives
    assert {c.fingerprint for c in some if not c.derivation} < {c.fingerprint for c in none}


def test_an_op_comes_three_times_with_attributes_of_its_own() -> None:
    (entry, *_) = (e for e in entries(DEFAULT) if e.key is ops.Slice)
    several = 0
    for round_ in range(40):
        case = primal(DEFAULT, entry, round_, hashlib.shake_256(f"{round_}".encode()))
        slices = [ins.op for ins in case.program.instructions if isinstance(ins.op, ops.Slice)]
        assert 1 <= len(slices) <= 3
        several += len(set(slices)) == 3
    assert several >= 30


def test_a_power_with_a_constant_whole_exponent_is_differentiated_at_0() -> None:
    turns = [e for e in entries(DEFAULT) if e.key is ops.Pow]
    at_zero = 0
    for round_ in range(20):
        for entry in turns:
            case = primal(DEFAULT, entry, round_, hashlib.shake_256(f"{round_} {entry.place}".encode()))
            made = {s: ins for ins in case.program.instructions for s in ins.output_slots}
            inputs = dict(zip(case.program.input_slots, case.inputs, strict=True))
            for ins in case.program.instructions:
                base, exponent = ins.input_slots if isinstance(ins.op, ops.Pow) else (None, None)
                whole = exponent in made and isinstance(made[exponent].op, ops.Constant)
                at_zero += whole and base in inputs and bool((inputs[base] == 0).any())
    assert at_zero >= 10


def test_a_broadcast_of_symbolic_extents_has_a_gradient_that_shows_where_it_belongs() -> None:
    """Each extent is provably that of the operand, and the sum that is differentiated is not a plain one, as a rule."""
    symbolic = config_of(("derivatives=1", "symbolic=100"))
    turns = [e for e in entries(symbolic) if e.key is ops.BroadcastInDim]
    programs = [
        primal(symbolic, entry, round_, hashlib.shake_256(f"{round_} {entry.place}".encode())).program
        for round_ in range(12)
        for entry in turns
    ]
    programs = [p for p in programs if p.symbols]
    assert len(programs) >= 8
    refused, weighed = 0, 0
    for program in programs:
        try:
            derive(program, ("vjp",))
        except UnsupportedMetadata:
            refused += 1
        weighed += any(isinstance(ins.op, ops.Multiply) for ins in program.instructions)
    assert refused <= len(programs) // 4
    assert weighed > len(programs) // 2


def test_every_op_that_has_a_rule_has_its_turn() -> None:
    """In one round, and once more for those with several rules; a derivative has the op that it is due to."""
    known = entries(DEFAULT)
    of_modules = (ops.Complex, ops.Imag, ops.Repeated, ops.Whole)  # which the generator does not make
    due = {key for key in JVP if not isinstance(key, tuple) and key not in of_modules}
    assert {e.key for e in known if not isinstance(e.key, tuple)} == due
    assert {e.key[1] for e in known if isinstance(e.key, tuple)} == {
        key[1] for key in JVP if isinstance(key, tuple)
    } - {"LuFactor"}
    for round_ in range(2):
        for entry in known:
            case = primal(DEFAULT, entry, round_, hashlib.shake_256(f"{entry.name} {entry.place} {round_}".encode()))
            names = {
                ins.op.op if isinstance(ins.op, ops.Extension) else ins.op.name for ins in case.program.instructions
            }
            assert entry.name in names
            assert case.program.at([type_of(a) for a in case.inputs]).error is None


@pytest.mark.parametrize(
    "limits",
    [
        {"dtypes": (DType.C64,)}, {"dtypes": (DType.F32,)}, {"max_rank": 0}, {"max_elements": 1},
        {"ops": (ops.DynamicTruncate, ops.Multiply)}, {"ops": (ops.Extension,)},
    ],
    ids=str,
)  # fmt: skip
def test_they_keep_to_narrow_configurations(limits: dict[str, Any]) -> None:
    config = replace(DEFAULT, **limits)
    for entry in entries(config):
        for round_ in range(3):
            case = primal(config, entry, round_, hashlib.shake_256(f"{entry.name} {entry.place} {round_}".encode()))
            assert case.program.at([type_of(a) for a in case.inputs]).error is None
            used = {type(ins.op) for ins in case.program.instructions}
            assert used <= {*config.ops}


def test_turns_come_evenly_and_four_of_five_are_grown() -> None:
    grown = [in_turn(HALF, 3, 1, n) for n in range(20)]
    assert [g is not None for g in grown] == [n % 2 == 0 and n % 10 != 6 for n in range(20)]
    drawn = {c.fingerprint for c in generate(3, 1, 20, HALF) if c.derivation}
    assert {g.fingerprint for g in grown if g} < drawn


def test_each_is_the_derivative_that_it_says() -> None:
    for case in generate(4, 0, 48, ALL):
        if case.derivation is None:
            continue
        assert dumps(derive(case.derivation.primal, case.derivation.transforms)) == case.program_json
        assert f"derivative: {case.derivation}" in describe(case)
        case.program.check_inputs([type_of(array) for array in case.inputs])


def test_what_they_are_derived_from_is_kept_in_a_store() -> None:
    case = next(c for c in generate(4, 0, 48, ALL) if c.derivation and len(c.inputs) > 1)
    back = unpack(*pack(case))
    assert back.fingerprint == case.fingerprint
    assert back.derivation == case.derivation
    sets = input_sets_of(case, 3)
    assert {c.derivation for c in sets} == {case.derivation}
    assert [c.derivation for c in unpack_all(pack(c) for c in sets)] == [case.derivation] * len(sets)


@pytest.mark.parametrize("text", ["2", "x", "1/0"])
def test_a_rate_is_a_share(text: str) -> None:
    with pytest.raises(UsageError, match="a share"):
        config_of((f"derivatives={text}",))


def test_a_wrong_rule_is_found_and_the_primal_program_reduced(tmp_path: Path, pool: Pool) -> None:
    """The cotangent of a product with the other factor's conjugate lost."""

    def wrong(op: ops.Multiply, x: tuple[Operand, ...], g: Value) -> Cotangents:
        a, b = x
        if isinstance(b, Value):
            return g * b, None
        return None, g * a if isinstance(a, Value) else None

    plan = Plan(
        seed=5, programs=32, batch=32, max_findings=1, reduce_seconds=20.0,
        # among others, derivatives of Divide have products, too
        generate=("derivatives=1", "invalid=0", "dtypes=C64", "linalg=0", "policies=0", "ops=Multiply,Add,Negate,Transpose"),
    )  # fmt: skip
    with mock.patch.dict(TRANSPOSE._rows, {ops.Multiply: wrong}):
        campaign = run_campaign(plan, pool.select(["derivative-adjoint"]), pool, bundles=tmp_path)
        (finding,) = campaign.findings
        assert finding.executor == "derivative-adjoint"
        assert finding.derivation  # a tangent is found as well: it is held to the cotangents
        assert "Multiply" in finding.primal_text
        assert finding.instructions <= 2
        assert finding.signature.startswith(finding.derivation)
        folder = tmp_path / finding.id
        assert replay(folder, pool).outcome == "still fails"
    assert replay(folder, pool).outcome == "gone"
    _, case = read_bundle(folder)
    assert case.derivation is not None
