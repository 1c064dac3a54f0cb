"""Decoding: valid programs whatever the bytes, shrinking to what matters; the reader of bytes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from fuzz.generate import DEFAULT, Config
from fuzz.generate.choices import Choices, Weighted
from fuzz.generate.decode import GENE, decode, motifs, steps
from fuzz.generate.header import HEADER, numbered
from fuzz.generate.motifs import MOTIFS
from fuzz.generate.ops import STRATEGY
from fuzz.generate.strategies import graphs
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import OPS, Op
from tenferro_ref.program import GraphProgram

pytestmark = pytest.mark.once

#: One program in a hundred has both a sine and a clamp: the search for one is to end with it, whatever the seed.
FEW = Config(
    motifs=False,
    ops=(
        ops.Sin,
        ops.Clamp,
        ops.Add,
        ops.Select,
        ops.Transpose,
        ops.DotGeneral,
        ops.ReduceProd,
        ops.Compare,
        ops.Reshape,
    ),
)
SHRINK = settings(
    max_examples=10_000, database=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck)
)


def instructions(program: GraphProgram, kind: type[Op]) -> list[Op]:
    return [ins.op for ins in program.instructions if isinstance(ins.op, kind)]


# --- validity ---------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=HEADER), st.lists(st.binary(max_size=2 * GENE), max_size=20))
def test_any_bytes_decode(header: bytes, genes: list[bytes]) -> None:
    case = decode(DEFAULT, header, genes)
    assert 1 <= len(case.program.instructions) <= DEFAULT.max_instructions
    assert decode(DEFAULT, header, genes).fingerprint == case.fingerprint


@pytest.mark.parametrize("op", [op for op in OPS if op in STRATEGY], ids=lambda op: op.__name__)
def test_each_op_makes_programs_alone(op: type[Op]) -> None:
    @settings(max_examples=15)
    @given(graphs(Config(ops=(op,), max_instructions=3)))
    def check(program: GraphProgram) -> None:
        assert program.slot_types
        assert {type(ins.op) for ins in program.instructions} == {op}

    check()


def test_every_motif_is_possible_by_default() -> None:
    reachable = {
        motif.name for step in steps(DEFAULT, exact=False).entries() if isinstance(step, tuple) for motif in step
    }
    by_turn = {name for name, motif in MOTIFS.items() if not motif.weight}  # in programs that must have them
    assert reachable == set(MOTIFS) - by_turn
    assert by_turn <= {motif.name for motif in motifs(DEFAULT)}


@pytest.mark.parametrize("dtypes", [(DType.F32, DType.I32), (DType.I64,), (DType.C64, DType.Bool)], ids=str)
def test_every_motif_decodes_where_few_dtypes_are_admitted(dtypes: tuple[DType, ...]) -> None:
    """Under every policy: each admits ops on dtypes that another one does not."""
    config, rng = Config(dtypes=dtypes, policies=100), Random(0)
    for number in range(len(motifs(config))):
        for _ in range(5):
            header = numbered(rng.randbytes(HEADER), 0, 1 + number)
            made = decode(config, header, [rng.randbytes(GENE)]).program.instructions
            assert made
            # of sizes, places and conditions the dtypes are not chosen
            assert {i.op.to for i in made if isinstance(i.op, ops.Convert)} <= {
                *dtypes,
                DType.I32,
                DType.I64,
                DType.Bool,
            }


def test_nothing_to_generate_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        decode(Config(ops=(ops.Exp,), dtypes=(DType.I32,)), b"", [])


# --- shrinking --------------------------------------------------------------------------------------------------------


def _shrunk(
    programs: st.SearchStrategy[GraphProgram],
    wanted: Callable[[GraphProgram], bool],
    most: int,
    rng: Random,
    searches: int = 4,
) -> GraphProgram:
    """What a search ends with; it may be a local minimum some times in a hundred, but not so many times in a row."""
    for _ in range(searches):
        found = find(programs, wanted, settings=SHRINK, random=rng)
        if len(found.instructions) <= most:
            break
    return found


def _batched(program: GraphProgram) -> bool:
    return any(isinstance(op, ops.DotGeneral) and op.lhs_batch_dims for op in instructions(program, ops.DotGeneral))


def _transposed_dot(program: GraphProgram) -> bool:
    turned = {ins.output_slots[0] for ins in program.instructions if isinstance(ins.op, ops.Transpose)}
    return any(isinstance(ins.op, ops.DotGeneral) and turned & {*ins.input_slots} for ins in program.instructions)


def _product_of_five(program: GraphProgram) -> bool:
    types = program.slot_types
    return any(
        isinstance(ins.op, ops.ReduceProd) and 5 in types[ins.input_slots[0]].shape for ins in program.instructions
    )


#: What a program should have, and how many instructions the smallest one needs.
WANTED: dict[str, tuple[Callable[[GraphProgram], bool], int]] = {
    "anything": (lambda p: True, 1),
    "batched dot": (_batched, 2),
    "dot of a transpose": (_transposed_dot, 3),
    "product of five": (_product_of_five, 2),
    "select": (lambda p: bool(instructions(p, ops.Select)), 2),
    "sin and clamp": (lambda p: bool(instructions(p, ops.Sin)) and bool(instructions(p, ops.Clamp)), 3),
    "six instructions": (lambda p: len(p.instructions) >= 6, 6),
}


@pytest.mark.parametrize(("wanted", "most"), WANTED.values(), ids=WANTED)
def test_programs_shrink(wanted: Callable[[GraphProgram], bool], most: int, rng: Random) -> None:
    found = _shrunk(graphs(FEW), wanted, most, rng)
    assert len(found.instructions) <= most, found
    assert len(found.output_slots) <= 2
    assert all(prod(e for e in t.shape if isinstance(e, int)) <= 64 for t in found.slot_types.values())


def test_programs_with_motifs_shrink_to_one_of_them(rng: Random) -> None:
    # of forty searches nineteen ended above four instructions, so that four in a row do one time in twenty
    found = _shrunk(graphs(), _batched, 4, rng, searches=16)
    assert len(found.instructions) <= 4, found


# --- the reader of bytes ----------------------------------------------------------------------------------------------


@given(st.binary(max_size=8), st.integers(1, 1000))
def test_decisions_stay_in_range(data: bytes, n: int) -> None:
    choices = Choices(data)
    for _ in range(6):
        assert 0 <= choices.pick(n) < n
        assert 0 <= choices.near(n) < n
    assert sorted(Choices(data).permutation(n % 7)) == list(range(n % 7))


def test_no_bytes_are_the_simplest_choices() -> None:
    choices = Choices(b"")
    assert (choices.pick(9), choices.near(9), choices.chance(99), choices.choose("abc")) == (0, 0, False, "a")
    assert choices.permutation(5) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("percent", [1, 10, 50, 99])
def test_chances_are_what_they_say(percent: int) -> None:
    hits = sum(Choices(bytes([byte])).chance(percent) for byte in range(256))
    assert abs(hits - 2.56 * percent) < 1


def test_weights_are_shares_and_nothing_named_is_unreachable() -> None:
    table = Weighted([("a", 3), ("b", 1), ("c", 1e-9)])
    drawn = [table(Choices(i.to_bytes(2, "big"))) for i in range(0, 65536, 16)]
    assert 0.73 < drawn.count("a") / len(drawn) < 0.77
    assert drawn.count("c") > 0
    assert drawn[0] == "a"
