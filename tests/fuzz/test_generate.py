"""Batches: the same everywhere, distinct, valid, and reaching everything that the configuration names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from itertools import combinations, count, islice
from math import prod
from unittest import mock

import pytest

from fuzz.findings.reduce.draft import concrete_types
from fuzz.generate import DEFAULT, Config
from fuzz.generate.anchors import anchors
from fuzz.generate.batches import _anchor, _length, generate
from fuzz.generate.config import FOREIGN_DTYPES, admitted
from fuzz.generate.describe import describe
from fuzz.generate.motifs import MOTIFS
from fuzz.generate.ops import STRATEGY
from fuzz.generate.shapes import BIG
from oracle.case import Case
from oracle.enclosure import ENCLOSE
from oracle.peers import NativeExecutor, attempt
from oracle.staged import refuses
from tenferro_ref import ops
from tenferro_ref.compiler import DECOMPOSED, PassResult, compile_std_to_exec, run_passes
from tenferro_ref.dims import evaluate, expr_of
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, LoweringError, NumericalFailure, RankMismatch
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.ops import DEFAULT_POLICY, ELEMENTWISE, OPS, STABLEHLO
from tenferro_ref.program import LoweringView, dumps, loads, to_exec
from tenferro_ref.runtime import FUSION_THRESHOLD, KERNELS, GraphExecutor
from tenferro_ref.runtime.fusion import BLOCK
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import same_bits, type_of

pytestmark = pytest.mark.once


#: Everything below is reached within this many programs, in batches as of a campaign.
BATCH, PROGRAMS = 32, 2_976


@pytest.fixture(scope="module")
def sample() -> list[Case]:
    return [case for batch in range(PROGRAMS // BATCH) for case in generate(20, batch, BATCH)]


@pytest.fixture(scope="module")
def reached(sample: list[Case]) -> Counter[str]:
    total: Counter[str] = Counter()
    for case in sample:
        total.update(describe(case))
    return total


def test_what_is_generated_has_a_kernel_and_an_enclosure() -> None:
    # those of an extension are in tables by family
    assert [op for op in STRATEGY if op is not ops.Extension and not (op in KERNELS and op in ENCLOSE)] == []


def test_every_op_and_dtype_pair_is_reached(reached: Counter[str]) -> None:
    pairs = {
        f"op: {op.__name__} {dtype}"
        for op in OPS
        for dtype in admitted(op, DEFAULT.dtypes)
        if op not in (ops.Convert, ops.DynamicTruncate)
    }
    pairs |= {f"convert: {a} to {b}" for a in DEFAULT.dtypes for b in DEFAULT.dtypes}
    assert sorted(pairs - reached.keys()) == []
    # rare, for no plugin has it
    assert sum(f"op: DynamicTruncate {dtype}" in reached for dtype in DEFAULT.dtypes) >= 4


def test_integers_may_fault_where_the_policy_defines_the_result_and_do_not_elsewhere(sample: list[Case]) -> None:
    faulty = {f"op: {op} {dtype}" for op in ("Divide", "Pow") for dtype in ("I32", "I64")}
    found: dict[str, set[str]] = {"stablehlo": set(), "error": set()}
    for case in sample:
        here, policy = faulty & describe(case).keys(), case.program.policy.integer_faults
        found[policy] |= here
        if here and policy == "error":
            assert not isinstance(attempt(NativeExecutor(), case), NumericalFailure)
    assert found == {"stablehlo": faulty, "error": faulty}


def test_what_only_stablehlo_admits_is_reached_under_its_policy(reached: Counter[str]) -> None:
    wide = {
        f"op: {op.__name__} {dtype}"
        for op in OPS
        for dtype in {*admitted(op, DEFAULT.dtypes, STABLEHLO)} - {*admitted(op, DEFAULT.dtypes)}
    }
    assert len(wide) > 15
    assert len(wide & reached.keys()) >= 0.8 * len(wide)


def test_every_op_that_has_dtypes_which_the_engine_lacks_meets_most_of_them(reached: Counter[str]) -> None:
    pairs = {op: {f"op: {op.__name__} {d}" for d in admitted(op, FOREIGN_DTYPES, STABLEHLO)} for op in OPS}
    pairs = {op: names for op, names in pairs.items() if names and op is not ops.DynamicTruncate}
    assert [op.__name__ for op, names in pairs.items() if len(names & reached.keys()) < len(names) / 4] == []
    assert len(set().union(*pairs.values()) & reached.keys()) >= 0.75 * sum(map(len, pairs.values()))


def test_transforms_of_one_operand_have_two_norms(sample: list[Case]) -> None:
    found = set()
    for case in sample:
        norms: dict[tuple[str, tuple[int, ...]], set[str]] = {}
        for ins in case.program.instructions:
            if isinstance(ins.op, ops.Extension) and ins.op.family == fft.FAMILY:
                norms.setdefault((ins.op.op, ins.input_slots), set()).add(json.loads(ins.op.config)["norm"])
        found |= {(op, *sorted(seen)) for (op, _), seen in norms.items() if len(seen) == 2}
    pairs = [sorted(pair) for pair in combinations(fft.NORMS, 2)]
    assert {(op, *pair) for op in fft.DTYPES for pair in pairs} == found


def test_nine_in_ten_pairs_of_ops_are_reached(sample: list[Case]) -> None:
    wanted = {(a.op, a.reader) for a in anchors(DEFAULT)}
    found = set()
    for case in sample:
        for ins in case.program.instructions:
            made = [case.program.producers.get(slot) for slot in ins.input_slots]
            found |= {(type(case.program.instructions[i].op), type(ins.op)) for i in made if i is not None}
    assert len(wanted & found) >= 0.9 * len(wanted)


def test_one_turn_of_batches_passes_every_anchor_but_a_quarter_and_the_next_one_those() -> None:
    config = Config(ops=(ops.Add, ops.Negate, ops.Abs, ops.DotGeneral), dtypes=(DType.F64, DType.I32))
    count = len(anchors(config))
    passed = {_anchor(5, batch, number, config) for batch in range(8) for number in range(BATCH)}
    assert passed == set(range(count + 1))


def test_one_program_in_eight_is_long_and_some_have_two_hundred_instructions() -> None:
    config = Config(ops=(ops.Add, ops.Negate, ops.Abs), dtypes=(DType.F64,), motifs=False)
    assert (_length(config, 0, 0), _length(config, 65535, 65535)) == (1, 200)
    lengths = [_length(config, kind, 32768) for kind in range(0, 65536, 16)]
    assert 0.11 <= sum(n > 14 for n in lengths) / len(lengths) <= 0.13
    assert 0.015 <= sum(n > 40 for n in lengths) / len(lengths) <= 0.03
    assert 0 < sum(n > 64 for n in lengths) / len(lengths) <= 0.006


FEATURES = [
    *(f"rank: {rank}" for rank in range(7)),
    *("extent: 0", "extent: 1", "extent: 50-70", "elements: 16384 or more"),
    *(f"instructions: {n}" for n in ("1-2", "3-5", "6-9", "10-14", "15-50", "51 or more")),
    *(f"symbols: {n}" for n in (1, 2, 3)),
    *("policy: scatter_bounds=skip", "policy: integer_faults=stablehlo", "policy: empty_reduction=identity"),
    "policy: dtypes=stablehlo",
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
    *(f"index: {dtype}" for dtype in ("I32", "I64", "F32", "F64")),
    *(f"index: vectors {where}" for where in ("left out", "last", "not last")),
    *(f"index: {n} axes mapped, {d} dropped" for n in ("1", "2+") for d in ("some", "none")),
    *("index: axes mapped out of order", "slice: strided", "pad: negative edge", "pad: interior"),
    *(f"concatenate: {n} operands" for n in ("1", "2", "3+")),
    *(f"einsum: {what}" for what in ("1 operands", "2 operands", "3 operands", "diagonal taken", "diagonal embedded")),
    *(f"einsum: {what} summed" for what in ("something", "nothing")),
    *(f"extension: {op}" for op in ("einsum", "fft", "ifft", "rfft", "irfft")),
]  # fmt: skip


def test_every_feature_is_reached(reached: Counter[str]) -> None:
    assert [feature for feature in FEATURES if reached[feature] < 3] == []
    # one program in fifteen has one of these 24: test_linalg_programs asks more where all have one
    assert [op for op in linalg.OPS if not reached[f"extension: {op}"]] == []


def test_each_motif_is_in_one_of_500_programs() -> None:
    programs = islice((case for batch in count() for case in generate(20, batch, BATCH)), 1500)
    rare = dict.fromkeys(MOTIFS.values(), 0)  # found less than three times so far
    for case in programs:
        for motif in [motif for motif in rare if motif.found(case)]:
            rare[motif] += 1
            if rare[motif] == 3:
                del rare[motif]
    assert [(motif.name, found) for motif, found in rare.items()] == []


def test_a_program_walks_past_two_motifs() -> None:
    """Most programs have one motif more than if each walked past one."""
    batches = 12  # of six the difference is anything between 0.4 and 0.9 a program

    def found() -> int:
        cases = [case for batch in range(batches) for case in generate(20, batch, BATCH)]
        return sum(motif.found(case) for case in cases for motif in MOTIFS.values())

    with mock.patch("fuzz.generate.decode._MOTIFS", 1):
        alone = found()
    assert found() - alone > 0.5 * batches * BATCH


def test_one_program_in_200_has_more_than_two_blocks_of_a_fused_kernel(sample: list[Case]) -> None:
    large = [c for c in sample if any(prod(map(int, t.shape)) > 2 * BLOCK for t in concrete_types(c).values())]
    assert 2 * BLOCK >= 32_768
    assert len(large) >= PROGRAMS / 200


def test_every_elementwise_op_works_on_long_arrays(sample: list[Case]) -> None:
    long = set()
    for case in sample:
        types = concrete_types(case)
        shapes = ((type(ins.op), types[ins.output_slots[0]].shape) for ins in case.program.instructions)
        long |= {op for op, shape in shapes if max(map(int, shape), default=0) >= 50}
    assert set(ELEMENTWISE) - long == set()


#: Each pass once.
EVERY = tuple(dict.fromkeys(DECOMPOSED))


def test_every_pass_finds_work_and_every_rule_fires(sample: list[Case]) -> None:
    fired: Counter[str] = Counter()
    for case in sample[:600]:
        for name, result in zip(EVERY, run_passes(to_exec(case.program), EVERY), strict=True):
            fired[f"{name}: {'something' if result.changes else 'nothing'} to do"] += 1
            for change in result.changes:
                fired[f"{name}: {re.sub('slot [0-9]+|[0-9]+', '', change)}"] += 1
            if name == "TransposeFolding":
                fired["TransposeFolding: declined"] += any(f == "dot: of Transpose" for f in describe(_as_case(result)))
    for case in sample:
        for change in run_passes(to_exec(case.program), ["AlgebraicLayoutSimplifier"])[0].changes:
            fired[f"AlgebraicLayoutSimplifier: {re.sub('slot [0-9]+', '', change)}"] += 1
    rules = [
        *(f"AlgebraicLayoutSimplifier: : identity {op} removed" for op in ("Transpose", "Reshape")),
        "AlgebraicLayoutSimplifier: : reads , not its transpose in ",
        *(f"{name}: {what} to do" for name in EVERY for what in ("something", "nothing")),
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
        *("DotConjFolding: : lhs", "DotConjFolding: : rhs", "ConjSinking: : Conj of Conj removed"),
        *(
            f"ConjSinking: : Conj of {op}"
            for op in ("Add", "Multiply", "Transpose", "DotGeneral", "ReduceSum", "Convert")
        ),
        "DotDimensionSorter: : contraction [, ] x [, ]",
        "DotDimensionSorter: : contraction [, , ] x [, , ]",
    ]
    assert [rule for rule in rules if not any(key.startswith(rule) and n for key, n in fired.items())] == []


def _as_case(result: PassResult) -> Case:
    return Case.of(result.program.to_graph(), [])


def test_programs_type_check_and_survive_json(sample: list[Case]) -> None:
    for case in sample[:300]:
        loaded = loads(dumps(case.program))
        assert loaded == case.program
        assert loaded.symbols == case.program.symbols
        assert len(case.program.instructions) <= DEFAULT.max_instructions
        case.program.check_inputs([type_of(array) for array in case.inputs])


def test_what_stablehlo_cannot_say_is_refused_before_anything_is_compiled() -> None:
    texts, refused = 0, 0
    for case in generate(6, 0, 1200, Config(policies=100, symbolic=50)):
        try:
            texts += bool(lower_to_stablehlo(LoweringView.of(case.program, case.shapes)))
        except LoweringError:
            refused += 1
    assert texts > 9 * refused > 0


def test_symbols_stand_for_what_the_inputs_have(sample: list[Case]) -> None:
    """Every rule accepts the symbols, and what it infers of them comes to the shapes of the concrete program."""
    for case in (c for c in sample if not c.program.is_static):
        inferred, concrete = case.program.slot_types, concrete_types(case)
        for slot, type_ in inferred.items():
            assert tuple(evaluate(expr_of(e), case.shapes) for e in type_.shape) == concrete[slot].shape


def test_programs_execute_and_mostly_stay_finite(sample: list[Case]) -> None:
    executor = GraphExecutor()
    useless = 0
    for case in sample[:300]:
        program = compile_std_to_exec(case.program)
        if refuses(attempt(NativeExecutor(), case)):
            useless += 1
            continue
        outputs = executor.eval_exec_ir(program, case.inputs)
        again = executor.eval_unsegmented(program, case.inputs)
        assert all(same_bits(a, b) for a, b in zip(outputs, again, strict=True))
        floats = [o for o in outputs if o.dtype.kind == "f" and o.size]
        useless += bool(floats) and all((o != o).all() for o in floats)
    assert useless <= 30  # a program whose every element is NaN proves little


def test_fingerprints_are_distinct_within_a_batch_and_between_batches(sample: list[Case]) -> None:
    batches = [sample[i : i + BATCH] for i in range(0, PROGRAMS, BATCH)]
    assert all(len({case.fingerprint for case in batch}) == BATCH for batch in batches)
    # the smallest programs may come again
    assert len({case.fingerprint for case in sample}) >= 0.995 * PROGRAMS


def test_a_batch_is_the_same_in_another_process() -> None:
    code = "import json, sys; from fuzz.generate.batches import generate; json.dump([c.fingerprint for c in generate(7, 3, 24)], sys.stdout)"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    here = [case.fingerprint for case in generate(7, 3, 24)]
    assert json.loads(there) == here
    assert [case.fingerprint for case in generate(7, 3, 9)] == here[:9]


def test_seed_and_batch_both_matter() -> None:
    prints = {tuple(c.fingerprint for c in generate(seed, batch, 2)) for seed in (0, 1) for batch in (0, 1)}
    assert len(prints) == 4


def test_a_config_of_few_distinct_cases_gives_a_short_batch() -> None:
    config = Config(ops=(ops.Constant,), dtypes=(DType.Bool,), max_instructions=1)
    assert 1 <= len(generate(0, 0, 64, config)) < 64


def _differences(config: Config) -> str:
    values = ((f.name, getattr(config, f.name)) for f in fields(config))
    return ", ".join(f"{name}={value}" for name, value in values if value != getattr(DEFAULT, name))


@pytest.mark.parametrize(
    "config",
    [
        Config(max_instructions=1),
        Config(max_rank=0),
        Config(max_rank=1, max_elements=8, usual_elements=8),
        Config(min_instructions=20, max_instructions=40),
        Config(ops=(ops.Negate,), dtypes=(DType.I32,)),
        Config(ops=(ops.Add, ops.ReduceSum, ops.DotGeneral, ops.Abs, ops.Compare), dtypes=(DType.C64, DType.C32)),
        Config(dtypes=(DType.Bool, DType.I64)),
        Config(dtypes=(DType.C32, DType.C64)),
        Config(dim_exprs=False, max_outputs=1),
        Config(symbolic=100),
        Config(policies=100, anchors=False),
    ],
    ids=_differences,
)
def test_configs_are_heeded(config: Config) -> None:
    symbolic = 0
    for case in generate(1, 0, 60, config):
        program = case.program
        assert config.min_instructions <= len(program.instructions) <= config.max_instructions
        assert 1 <= len(program.output_slots) <= config.max_outputs
        assert program.policy == DEFAULT_POLICY or config.policies
        symbolic += not program.is_static
        assert all(type(ins.op) in config.ops for ins in program.instructions)
        # Bool for predicates; if the config has no integers, I32 for index tensors and I64 for the size of a DynamicTruncate
        foreign = FOREIGN_DTYPES if program.policy == STABLEHLO and config.dtypes == DEFAULT.dtypes else ()
        assert {t.dtype for t in program.input_types} <= {*config.dtypes, *foreign, DType.Bool, DType.I32, DType.I64}
        sizes = [ins.input_slots[1] for ins in program.instructions if isinstance(ins.op, ops.DynamicTruncate)]
        for slot, type_ in zip(program.input_slots, program.input_types, strict=True):
            assert type_.dtype is not DType.I64 or DType.I64 in config.dtypes or slot in sizes
        for type_ in concrete_types(case).values():
            assert type_.rank <= config.max_rank
            assert prod(map(int, type_.shape)) <= config.max_elements
    assert (symbolic > 40) == (config.symbolic == 100)


def test_big_shapes_reach_the_fusion_threshold() -> None:
    assert all(FUSION_THRESHOLD <= prod(shape) <= DEFAULT.max_elements for shape in BIG)


def test_weights_change_the_mix() -> None:
    def dots(config: Config) -> int:
        made = (ins.op for case in generate(0, 0, 100, config) for ins in case.program.instructions)
        return sum(isinstance(op, ops.DotGeneral) for op in made)

    assert dots(Config(weights=(("DotGeneral", 20.0),))) > 2 * dots(DEFAULT)


def test_a_rule_that_refuses_what_is_valid_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(op: ops.Tanh, *inputs: object) -> None:
        raise RankMismatch(op="Tanh", expected=1, actual=2)

    monkeypatch.setattr(ops.Tanh, "infer", refuse)
    with pytest.raises(Internal, match="an op that its rule refuses: Tanh: expected rank"):
        list(generate(0, 0, 100))
