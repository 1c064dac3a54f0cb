"""Programs with the linalg family: every op at every dtype, matrices that are what their class says, failures that shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from fuzz.campaign.work import environment
from fuzz.findings.bundle import write_bundle
from fuzz.findings.reduce.draft import concrete_types
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from fuzz.generate import DEFAULT, Config
from fuzz.generate.batches import generate
from fuzz.generate.decode import decode
from fuzz.generate.header import HEADER
from fuzz.generate.ops.linalg import MATRICES as CLASSES
from fuzz.generate.values import matrices as m
from fuzz.generate.values.matrices import DEFINITE, HERMITIAN, MATRICES, ONE_SIDED, REGULAR, SINGULAR, matrices
from fuzz.generate.values.recipes import FULL, Recipe, array_of
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor, Pool, attempt
from oracle.staged import decomposing, refuses
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.extensions import linalg

pytestmark = pytest.mark.once


LINALG = Config(linalg=100)
#: Within this many programs of a config that has the family in all of them.
PROGRAMS = 768


@pytest.fixture(scope="module")
def sample() -> list[Case]:
    return [case for batch in range(PROGRAMS // 32) for case in generate(12, batch, 32, LINALG)]


def test_every_op_is_reached_at_every_dtype(sample: list[Case]) -> None:
    found = {
        (ins.op.op, case.program.slot_types[ins.input_slots[0]].dtype)
        for case in sample
        for ins in case.program.instructions
        if isinstance(ins.op, ops.Extension) and ins.op.family == linalg.FAMILY
    }
    assert CLASSES.keys() == linalg.OPS.keys()
    assert {(name, dtype) for name in linalg.OPS for dtype in INEXACT} == found


def test_matrices_of_subnormal_numbers_are_reached(sample: list[Case]) -> None:
    """Of every dtype, and for each op that divides by pivots; right-hand sides are subnormal beside them."""
    found = set()
    for case in sample:
        values = dict(zip(case.program.input_slots, case.inputs, strict=True))
        for ins in decomposing(case.program):
            assert isinstance(ins.op, ops.Extension)
            a, *_, b = [values.get(slot) for slot in ins.input_slots] * 2
            tiny = 0 if a is None else np.finfo(a.dtype).tiny
            if a is None or not 0 < np.abs(a).max(initial=0) < tiny:
                continue
            found |= {ins.op.op, DType.of(a)}
            assert b is None or not np.isfinite(b).all() or np.abs(b).max(initial=0) < tiny
    assert found >= {"Lu", "LuFactor", "LuSolvePrepared", "Solve", "TriangularSolve", *INEXACT}


def test_shapes_flags_and_gauges_are_reached(sample: list[Case]) -> None:
    found = set()
    for case in sample:
        for ins in decomposing(case.program):
            assert isinstance(ins.op, ops.Extension)
            m, n, *batch = concrete_types(case)[ins.input_slots[0]].shape
            found |= {f"{k}={v}" for k, v in linalg.config_of(ins.op).items()}
            found.add("square" if m == n else "tall" if m > n else "wide")
            found |= {what for what, holds in (("batch", batch), ("empty", 0 in (m, n)), ("1x1", m == n == 1)) if holds}
    flags = ("left_side", "lower", "transpose_a", "unit_diagonal", "conjugate_a")
    gauges = {f"gauge={g}" for g in ("Raw", "CanonicalPivot", "PositiveDiagonal")}
    wanted = {f"{flag}={value}" for flag in flags for value in (True, False)} | gauges
    assert wanted | {"square", "tall", "wide", "batch", "empty", "1x1"} <= found


def test_some_tangents_are_regularised(sample: list[Case]) -> None:
    found = set()
    for case in sample:
        for ins in decomposing(case.program):
            assert isinstance(ins.op, ops.Extension)
            if ins.op.op in ("Eigh", "Svd"):
                found.add((ins.op.op, linalg.derivative_eps(ins.op)))
    assert found == {(name, eps) for name in ("Eigh", "Svd") for eps in (linalg.DERIVATIVE_EPS, 0.5, 2.0)}


def test_settings_are_shown_changed_as_well(sample: list[Case]) -> None:
    """Of the same operands: every gauge beside none, each flag beside its opposite, but for the side, and other thresholds."""
    found = set()
    for case in sample:
        taken: dict[tuple[str, tuple[int, ...]], dict[str, object]] = {}
        for ins in decomposing(case.program):
            assert isinstance(ins.op, ops.Extension)
            config = linalg.config_of(ins.op)
            other = taken.setdefault((ins.op.op, ins.input_slots), config)
            found |= {(ins.op.op, key) for key, value in config.items() if other[key] != value}
    settings = ("gauge", "lower", "transpose_a", "unit_diagonal", "conjugate_a", "rtol", "atol")
    assert {(name, key) for name, op in linalg.OPS.items() for key in op.config if key in settings} == found


def test_some_determinants_are_beyond_the_range(sample: list[Case]) -> None:
    beyond = set()
    for case in sample:
        program, result = case.program, None
        for ins in program.instructions:
            if isinstance(ins.op, ops.Extension) and ins.op.op == "LogAbsDetFromLuFactor":
                result = result or attempt(NativeExecutor(), case)
                if isinstance(result, TenferroError) or ins.output_slots[0] not in program.output_slots:
                    continue
                logarithm = result.outputs[program.output_slots.index(ins.output_slots[0])]
                if np.any(np.isfinite(logarithm) & (np.abs(logarithm) > np.log(np.finfo(logarithm.dtype).max) + 1)):
                    beyond.add(DType.of(logarithm))
    assert beyond == {DType.F32, DType.F64}


def test_few_matrices_are_refused(sample: list[Case]) -> None:
    results = [attempt(NativeExecutor(), case) for case in sample[:512]]
    errors = [r for r in results if isinstance(r, TenferroError)]
    assert all(refuses(error) for error in errors)
    assert 1 <= len(errors) <= 0.05 * len(results)


def test_other_programs_are_what_they_are_without_it() -> None:
    with_, without = (generate(3, 0, 200, Config(linalg=share)) for share in (DEFAULT.linalg, 0))
    differing = [a for a, b in zip(with_, without, strict=True) if a.fingerprint != b.fingerprint]
    assert 1 <= len(differing) <= 0.02 * DEFAULT.linalg * len(with_)
    # in a few of them it is dead code, and left out
    assert sum(bool(decomposing(case.program)) for case in differing) >= 0.7 * len(differing)


def test_configs_without_it_have_none() -> None:
    for config in (Config(ops=(ops.Add, ops.Multiply), linalg=100), Config(dtypes=(DType.I64,), linalg=100)):
        assert not any(decomposing(case.program) for case in generate(1, 0, 30, config))
    only = Config(ops=(ops.Extension,), dtypes=(DType.F64,), linalg=100, max_rank=2, max_elements=8, usual_elements=8)
    for case in generate(1, 0, 30, only):
        assert {type(ins.op) for ins in case.program.instructions} == {ops.Extension}
        assert all(t.rank <= 2 for t in case.program.slot_types.values())


def test_the_simplest_bytes_have_none() -> None:
    assert not decomposing(decode(DEFAULT, b"", [b"\1" * 8] * 3).program)
    chosen = bytes(44) + b"\xff" * 3 + bytes(HEADER - 47)
    assert decomposing(decode(DEFAULT, chosen, [b"\1" * 8] * 3).program)


# --- matrices ---------------------------------------------------------------------------------------------------------


def _drawn(kind: str, dtype: DType, shape: tuple[int, ...] = (4, 4, 3)) -> np.ndarray:
    return array_of(Recipe(kind, 5), dtype, shape)


@pytest.mark.parametrize("dtype", sorted(INEXACT, key=str), ids=str)
@pytest.mark.parametrize("kind", sorted(MATRICES))
def test_matrices_are_of_their_class(kind: str, dtype: DType) -> None:
    a = _drawn(kind, dtype)
    assert a.dtype == dtype.numpy
    assert np.isfinite(a).all() == (kind != "beside NaN")
    for i in range(3):
        x = a[..., i].astype(complex)
        if kind == "beside NaN":
            assert np.isnan(x[np.triu_indices(4, 1)]).any()
            assert np.isfinite(np.tril(x)).all()
            assert np.linalg.eigvalsh(np.tril(x)).min() > 1e-3
            continue
        values = np.linalg.svd(x, compute_uv=False)
        if kind in HERMITIAN:
            assert (x == x.conj().T).all()
        if kind in ONE_SIDED:
            assert (x != x.conj().T).any()
        if kind in (*DEFINITE, *ONE_SIDED):  # of which this reads the lower triangle
            assert np.linalg.eigvalsh(x).min() > 1e-3
        if kind in REGULAR:
            assert values[-1] > 1e-4 * values[0]
        if kind == "orthogonal":
            assert np.allclose(x @ x.conj().T, np.eye(4), atol=1e-6)
        if kind == "deficient":
            assert (values > 0.5).sum() == 2
            assert values[2] < 1e-6
        if kind == "repeated":
            assert np.allclose(values, np.rint(values), atol=1e-5)
        if kind == SINGULAR:
            assert not x.any(0).all()
        if kind == "one small pair":
            assert (np.abs(x[x != 0]) < 1e-11).sum() == 2
        if kind == m.NEARLY_SINGULAR:
            assert (x == x.conj().T).all()
            assert values[-1] < 1e-6 < values[-2]
        if kind == m.GROWING:
            assert np.abs(x[1, 0]) > 1e15 * np.abs(np.diag(x)).max()


@pytest.mark.parametrize("kind", ["regular", "graded", "dominant", "orthogonal", "integers", "triangular"])
def test_complex_determinants_have_any_phase(kind: str) -> None:
    """They were real: columns had the conjugate phases of the rows, so that a conjugated sign was not seen."""
    drawn = (matrices(kind, Generator(PCG64(seed)), DType.C64, (3, 3)) for seed in range(20))
    values = [np.linalg.det(a) for a in drawn]
    assert sum(abs(value.imag) > 1e-3 * abs(value) for value in values) >= 10


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 1), (2, 5), (5, 2), (3, 3, 0), (1, 4, 2, 2)])
def test_matrices_have_any_shape(shape: tuple[int, ...]) -> None:
    for kind in MATRICES:
        for dtype in (DType.F32, DType.C64):
            assert matrices(kind, Generator(PCG64(1)), dtype, shape).shape == shape
            assert array_of(Recipe(kind, 1, FULL, ((1, 4),)), dtype, shape).shape == shape


# --- failures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WrongQr(NativeExecutor):
    """Its Q of a matrix of more than one column is a little too large."""

    name: str = "wrong-qr"

    def run(self, case: Case) -> Execution:
        execution, program = NativeExecutor.run(self, case), case.program
        wrong = {
            ins.output_slots[0]
            for ins in decomposing(program)
            if isinstance(ins.op, ops.Extension)
            and ins.op.op == "Qr"
            and program.slot_types[ins.input_slots[0]].shape[1] != 1
        }
        outputs = (
            (x * 1.001).astype(x.dtype) if slot in wrong else x
            for slot, x in zip(program.output_slots, execution.outputs, strict=True)
        )
        return replace(execution, outputs=tuple(outputs))

    def bit_exact(self, case: Case) -> bool:
        return False


def test_a_fault_in_qr_shrinks_to_it_and_has_a_bundle(tmp_path: Path, pool: Pool) -> None:
    executor = _WrongQr()
    cases = generate(11, 0, 200, LINALG)
    for case in cases:
        if not any(isinstance(i.op, ops.Extension) and i.op.op == "Qr" for i in decomposing(case.program)):
            continue
        answer = judge(executor, Reference(case, NativeExecutor()))
        if answer.verdict is Verdict.MISMATCH:
            break
    else:
        pytest.fail("it is not found")
    suspect = inspect(executor, case, answer, pool)
    finding, small = to_finding(suspect, pool, (), programs=3, also=(), budget_seconds=20.0)
    (ins,) = small.program.instructions
    assert isinstance(ins.op, ops.Extension)
    assert ins.op.op == "Qr"
    assert all(extent <= 2 for extent in small.inputs[0].shape)
    write_bundle(tmp_path / "bundle", finding, executor, small, environment())
    assert "Qr" in (tmp_path / "bundle" / "README.md").read_text()
