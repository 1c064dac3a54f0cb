"""The oracle on seeded faults: who is to blame."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.generate import Config
from fuzz.generate.batches import generate
from fuzz.mutants import find
from fuzz.mutants.looks import fresh
from oracle.attribution import attribute
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def test_a_pass_of_ours(pool: Pool) -> None:
    mutant, right = find("folding-inverse-perm"), NativeExecutor()
    with mutant.patch():
        guilty = next(
            case
            for batch in range(40)
            for case in generate(3, batch, config=Config(ops=(ops.Transpose, ops.DotGeneral)))
            if judge(right, Reference(case, right)).verdict is Verdict.MISMATCH
        )
        assert attribute(right, guilty, pool) == "our pass: TransposeFolding"
    sound = fresh(guilty)  # what the faulty pass made of the program is kept with it
    assert judge(right, Reference(sound, right)).verdict is Verdict.PASS


def test_native_asked_for_by_name_is_held_to_the_enclosure_too() -> None:
    """It equals the reference's own executor without being the same object."""
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (3, 2))
    program = b.build(b.apply(ops.Exp(), x @ y), x.sum([0]), b.apply(ops.Negate(), x))
    rng = np.random.default_rng(0)
    case = Case.of(program, [rng.standard_normal((2, 3)), rng.standard_normal((3, 2))])
    with find("sum-without-last").patch():
        answer = judge(Pool().make("native"), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.MISMATCH
    assert answer.comparison is not None
    assert answer.comparison.worst_output == 1
