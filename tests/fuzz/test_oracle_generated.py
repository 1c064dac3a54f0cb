"""The oracle on generated programs and seeded faults: sets and comparisons at once, and who is to blame."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from unittest import mock

import numpy as np
import pytest

from fuzz.generate import Config
from fuzz.generate.batches import generate
from fuzz.generate.input_sets import batch_of
from fuzz.mutants import find
from oracle.attribution import attribute
from oracle.case import Case, live
from oracle.compare import Observation, compare, compare_sets
from oracle.enclosure import IEEE, MODELS, XLA, Enclosure, enclose, enclose_sets, of_set
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import OPS
from tenferro_ref.program import GraphBuilder

SETS = 5


def stacks(seed: int, batches: int) -> list[list[Case]]:
    """Programs with several input sets."""
    cases = [case for number in range(batches) for case in batch_of(seed, number, 32 * SETS, SETS)]
    groups = [list(group) for _, group in groupby(cases, key=lambda case: id(case.program))]
    return [group for group in groups if len(group) > 1]


def alike(a: Enclosure, b: Enclosure) -> bool:
    """The same sets, to the last bit of the wide type: sums over another layout are rounded otherwise."""
    return all(
        np.allclose(getattr(p, name).astype(float), getattr(q, name).astype(float), rtol=1e-6, atol=0, equal_nan=True)
        for p, q in zip(a.parts, b.parts, strict=True)
        for name in ("lo", "hi", "nan", "pos_zero", "neg_zero")
    )


def meet(a: Enclosure, b: Enclosure) -> bool:
    """Some value, or NaN, is in both, for each element."""
    both = (
        ((np.maximum(p.lo, q.lo) <= np.minimum(p.hi, q.hi)) | (p.nan & q.nan)).all()
        for p, q in zip(a.parts, b.parts, strict=True)
    )
    return all(both)


@pytest.mark.parametrize("model", ["ieee", "xla"])
def test_together_as_alone(model: str) -> None:
    seen: Counter[str] = Counter()
    other = outputs = 0
    for group in stacks(11, 4):
        program = live(group[0].program)
        try:
            alone = [enclose(program, case.inputs, MODELS[model]) for case in group]
        except TenferroError:
            continue
        together = enclose_sets(program, [case.inputs for case in group], MODELS[model])
        seen.update({ins.op.name for ins in program.instructions})
        for i, expected in enumerate(alone):
            for a, b in zip(expected, (of_set(e, i) for e in together), strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                assert meet(a, b), program
                outputs += 1
                other += not alike(a, b)
    # cheap tests of a whole operand ("is every element finite?") may say less, or more, of several sets than of one
    assert other <= 0.03 * outputs, (other, outputs)
    # an extent that values say is decided for one set only
    assert seen.keys() >= {op.__name__ for op in OPS} - {ops.DynamicTruncate.__name__}


def bent(outputs, number):
    """The outputs with one element changed, by a unit in the last place or by far, or with one output of another form."""
    way, place = number % 5, number // 5 % max(1, len(outputs))
    if not outputs or not outputs[place].size or way == 0:
        return outputs
    o = outputs[place].copy("F")
    at = np.unravel_index(number % o.size, o.shape)
    o[at] = {
        1: np.nextafter(o[at].real, o.real.dtype.type(9)) if o.dtype.kind in "fc" else o[at],
        2: np.nan if o.dtype.kind in "fc" else ~o[at],
        3: o[at],
        4: o.dtype.type(3),
    }[way]
    return (*outputs[:place], o.ravel() if way == 3 else o, *outputs[place + 1 :])


def one_set(enclosures):
    return [e.map(lambda a: a[..., np.newaxis]) for e in enclosures]


@pytest.mark.parametrize("at_once", [1, 40, 1 << 16])
@pytest.mark.parametrize("finer", [False, True])
def test_many_at_once_get_the_comparisons_of_each_alone(at_once, finer):
    """Programs of every dtype, some right, some wrong; as many in one go as `at_once` says."""
    observations = []
    for number, case in enumerate(generate(11, 0, 48)):
        try:
            native = NativeExecutor().run(case).outputs
            own, strict = (enclose(case.program, case.inputs, model) for model in (XLA, IEEE))
        except TenferroError:
            continue
        observations.append((own if finer else strict, strict if finer else None, bent(native, number), native))
    with mock.patch("oracle.case.AT_ONCE", at_once), np.errstate(all="ignore"):
        together = compare_sets([Observation(one_set(e), s and one_set(s), [o], [n]) for e, s, o, n in observations])
        alone = [compare(*o) for o in observations]
    assert together == [[one] for one in alone]
    assert len([one for one in alone if one.outside]) > 5
    assert len([one for one in alone if one.widths and not one.outside]) > 10
    assert compare_sets([]) == []


def test_a_pass_of_ours() -> None:
    mutant, right, pool = find("folding-inverse-perm"), NativeExecutor(), Pool()
    with mutant.patch():
        guilty = next(
            case
            for batch in range(40)
            for case in generate(3, batch, config=Config(ops=(ops.Transpose, ops.DotGeneral)))
            if judge(right, Reference(case, right)).verdict is Verdict.MISMATCH
        )
        assert attribute(right, guilty, pool) == "our pass: TransposeFolding"
    assert judge(right, Reference(guilty, right)).verdict is Verdict.PASS


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
