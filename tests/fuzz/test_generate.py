"""Batches: the same everywhere, distinct, valid, and reaching everything that the configuration names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from fuzz.generate import describe, generate
from fuzz.strategies import DEFAULT, Config, default_ops
from fuzz.strategies.growth import BIG
from fuzz.strategies.rows import admitted
from oracle.case import Case
from tenferro_ref.compiler import DEFAULT_PIPELINE, PassResult, compile_std_to_exec, run_passes
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Abs, Add, Compare, Constant, Convert, DotGeneral, Negate, ReduceSum
from tenferro_ref.program import dumps, loads, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import same_bits

#: Everything below is reached within this many programs.
PROGRAMS = 3_000


@pytest.fixture(scope="module")
def sample() -> list[Case]:
    return [case for batch in range(10) for case in generate(20, batch, PROGRAMS // 10)]


@pytest.fixture(scope="module")
def reached(sample: list[Case]) -> Counter[str]:
    total: Counter[str] = Counter()
    for case in sample:
        total.update(describe(case))
    return total


def test_every_op_and_dtype_pair_is_reached(reached: Counter[str]) -> None:
    pairs = {
        f"op: {op.__name__} {dtype}"
        for op in default_ops()
        for dtype in admitted(op, DEFAULT.dtypes)
        if op is not Convert
    }
    pairs |= {f"convert: {a} to {b}" for a in DEFAULT.dtypes for b in DEFAULT.dtypes}
    assert sorted(pairs - reached.keys()) == []


def test_integer_faults_are_left_out(reached: Counter[str]) -> None:
    assert not {f"op: {op} {dtype}" for op in ("Divide", "Pow") for dtype in ("I32", "I64")} & reached.keys()


@pytest.mark.parametrize(
    "feature",
    [
        *(f"rank: {rank}" for rank in range(7)),
        *("extent: 0", "extent: 1", "extent: 50-70", "elements: 16384 or more"),
        *(f"instructions: {n}" for n in ("1-2", "3-5", "6-9", "10-14")),
        *("outputs: 1", "outputs: 2", "outputs: 3 or more", "outputs: repeated", "outputs: an input"),
        *("graph: value read twice", "graph: repeated instruction", "graph: dead code"),
        *("operands: rank 0 beside a tensor", "operands: the same twice", "constant: plain", "constant: special"),
        *(f"shape: {op} reads extents{of}" for op in ("Reshape", "BroadcastInDim") for of in ("", " of another operand")),
        *("broadcast: axes permuted", "transpose: identity", "transpose: permuted"),
        *("reduce: no axes", "reduce: some axes", "reduce: all axes", "reduce: with an empty axis kept"),
        *(f"dot: {n} contracted, {m} batch" for n in ("0", "1", "2+") for m in ("0", "1", "2+")),
        *("dot: contraction out of order", "dot: batch out of order", "dot: empty contraction"),
        *("dot: batch, all extents equal", "dot: of Transpose", "dot: of DotGeneral", "dot: of a reshaped Transpose"),
        *("segment: broadcast triplet", "segment: broadcast pair"),
        *(f"values: {kind}" for kind in ("nan", "inf", "-0", "subnormal", "smallest normal", "largest", "huge")),
        "values: extreme integer",
    ],
)  # fmt: skip
def test_every_feature_is_reached(reached: Counter[str], feature: str) -> None:
    assert reached[feature] >= 3


@pytest.mark.parametrize(
    "feature",
    [
        *(f"index: {dtype}" for dtype in ("I32", "I64", "F32", "F64")),
        *(f"index: vectors {where}" for where in ("left out", "last", "not last")),
        *(f"index: {n} axes mapped, {d} dropped" for n in ("1", "2+") for d in ("some", "none")),
        *("index: axes mapped out of order", "slice: strided", "pad: negative edge", "pad: interior"),
        *(f"concatenate: {n} operands" for n in ("1", "2", "3+")),
        *(f"einsum: {what}" for what in ("1 operands", "2 operands", "3 operands", "diagonal taken", "diagonal embedded")),
        *(f"einsum: {what} summed" for what in ("something", "nothing")),
        *(f"extension: {op}" for op in ("einsum", "fft", "ifft", "rfft", "irfft")),
    ],
)  # fmt: skip
def test_every_feature_of_indexing_and_of_extensions_is_reached(reached: Counter[str], feature: str) -> None:
    assert reached[feature] >= 3


def test_every_pass_finds_work_and_every_rule_fires(sample: list[Case]) -> None:
    fired: Counter[str] = Counter()
    for case in sample[:600]:
        for name, result in zip(DEFAULT_PIPELINE, run_passes(to_exec(case.program), DEFAULT_PIPELINE), strict=True):
            fired[f"{name}: {'something' if result.changes else 'nothing'} to do"] += 1
            for change in result.changes:
                fired[f"{name}: {re.sub('slot [0-9]+|[0-9]+', '', change)}"] += 1
            if name == "TransposeFolding":
                fired["TransposeFolding: declined"] += any(f == "dot: of Transpose" for f in describe(_as_case(result)))
    rules = [
        *(f"{name}: {what} to do" for name in DEFAULT_PIPELINE for what in ("something", "nothing")),
        *("TransposeFolding: : lhs", "TransposeFolding: : rhs", "TransposeFolding: declined"),
        # merging either side, both, before or after a transpose, and taking the merged axes apart again
        *(
            f"DotDecomposer: : DotGeneral becomes {steps}"
            for steps in (
                "Transpose, DotGeneral",
                "Transpose, Transpose, DotGeneral",
                "Reshape, DotGeneral, Reshape",
                "Reshape, Reshape, DotGeneral",
                "Reshape, Transpose, Reshape, DotGeneral",
                "Transpose, Reshape, DotGeneral, Reshape",
                "Transpose, Reshape, Transpose, Reshape, DotGeneral",
            )
        ),
        "DotDimensionSorter: : contraction [, ] x [, ]",
        "DotDimensionSorter: : contraction [, , ] x [, , ]",
    ]
    assert [rule for rule in rules if not any(key.startswith(rule) and n for key, n in fired.items())] == []


def _as_case(result: PassResult) -> Case:
    return Case.of(result.program.to_graph(), [])


def test_programs_type_check_and_survive_json(sample: list[Case]) -> None:
    for case in sample[:300]:
        assert loads(dumps(case.program)) == case.program
        assert len(case.program.instructions) <= DEFAULT.max_instructions
        for type_, array in zip(case.program.input_types, case.inputs, strict=True):
            assert (type_.dtype, type_.shape) == (DType.of(array), array.shape)


def test_programs_execute_and_mostly_stay_finite(sample: list[Case]) -> None:
    executor = GraphExecutor()
    useless = 0
    for case in sample[:300]:
        program = compile_std_to_exec(case.program)
        outputs = executor.eval_exec_ir(program, case.inputs)
        again = executor.eval_unsegmented(program, case.inputs)
        assert all(same_bits(a, b) for a, b in zip(outputs, again, strict=True))
        floats = [o for o in outputs if o.dtype.kind == "f" and o.size]
        useless += bool(floats) and all((o != o).all() for o in floats)
    assert useless <= 30  # a program whose every element is NaN proves little


def test_fingerprints_are_distinct_within_a_batch_and_between_batches(sample: list[Case]) -> None:
    batches = [sample[i : i + PROGRAMS // 10] for i in range(0, PROGRAMS, PROGRAMS // 10)]
    assert all(len({case.fingerprint for case in batch}) == PROGRAMS // 10 for batch in batches)
    # the smallest programs may come again
    assert len({case.fingerprint for case in sample}) >= 0.995 * PROGRAMS


def test_a_batch_is_the_same_in_another_process() -> None:
    code = "import json, sys; from fuzz.generate import generate; json.dump([c.fingerprint for c in generate(7, 3, 24)], sys.stdout)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    here = [case.fingerprint for case in generate(7, 3, 24)]
    assert json.loads(told) == here
    assert [case.fingerprint for case in generate(7, 3, 9)] == here[:9]


def test_seed_and_batch_both_matter() -> None:
    prints = {tuple(c.fingerprint for c in generate(seed, batch, 2)) for seed in (0, 1) for batch in (0, 1)}
    assert len(prints) == 4


def test_a_config_of_few_distinct_cases_gives_a_short_batch() -> None:
    config = Config(ops=(Constant,), dtypes=(DType.Bool,), max_instructions=1)
    assert 1 <= len(generate(0, 0, 64, config)) < 64


@pytest.mark.parametrize(
    "config",
    [
        Config(max_instructions=1),
        Config(max_rank=0),
        Config(max_rank=1, max_elements=8, usual_elements=8),
        Config(min_instructions=20, max_instructions=40),
        Config(ops=(Negate,), dtypes=(DType.I32,)),
        Config(ops=(Add, ReduceSum, DotGeneral, Abs, Compare), dtypes=(DType.C64, DType.C32)),
        Config(dtypes=(DType.Bool, DType.I64)),
        Config(dtypes=(DType.C32, DType.C64)),
        Config(dim_exprs=False, max_outputs=1),
    ],
    ids=repr,
)
def test_configs_are_heeded(config: Config) -> None:
    for case in generate(1, 0, 60, config):
        program = case.program
        assert config.min_instructions <= len(program.instructions) <= config.max_instructions
        assert 1 <= len(program.output_slots) <= config.max_outputs
        assert all(type(ins.op) in config.vocabulary for ins in program.instructions)
        given = {t.dtype for t in program.input_types}
        assert given <= {
            *config.dtypes,
            DType.Bool,
            DType.I32,
        }  # predicates, and index tensors where no integer is asked for
        for type_ in program.slot_types.values():
            assert type_.rank <= max(config.max_rank, 0)
            size = 1
            for extent in type_.shape:
                assert isinstance(extent, int)
                size *= extent
            assert size <= config.max_elements


def test_big_shapes_reach_the_fusion_threshold() -> None:
    from tenferro_ref.runtime import FUSION_THRESHOLD

    for shape in BIG:
        size = 1
        for extent in shape:
            size *= extent
        assert FUSION_THRESHOLD <= size <= DEFAULT.max_elements


def test_weights_change_the_mix() -> None:
    def dots(config: Config) -> int:
        return sum(isinstance(i.op, DotGeneral) for c in generate(0, 0, 100, config) for i in c.program.instructions)

    assert dots(Config(weights=(("DotGeneral", 20.0),))) > 2 * dots(DEFAULT)
