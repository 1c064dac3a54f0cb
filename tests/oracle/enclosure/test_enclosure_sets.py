"""Input sets enclosed at once give what each gives alone."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest

from fuzz.generate.input_sets import batch_of
from oracle.case import Case, live
from oracle.enclosure import MODELS, Enclosure, Interval, enclose, enclose_sets, of_set, sets_at_once
from oracle.enclosure.value import Mixed, Unrounded, merged_with_origin, real_point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
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


def test_what_is_constant_is_the_same_for_all_sets() -> None:
    b = GraphBuilder()
    x = b.input("F32", (2,))
    program = b.build(b.constant(1.5, DType.F32), x)
    together = enclose_sets(program, [[np.full(2, v, np.float32)] for v in (1, 2, 3)], MODELS["xla"])
    assert [e.shape for e in together] == [(3,), (2, 3)]
    assert together[0].lo.tolist() == together[0].hi.tolist() == [1.5] * 3
    assert together[1].lo.tolist() == [[1, 2, 3]] * 2


def test_many_terms_are_not_stacked() -> None:
    """The rule of sums looks at each partial sum up to so many terms, of all sets."""

    def at_once(n: int, *, product: bool) -> int:
        b = GraphBuilder()
        x = b.input("F32", (n, n))
        return sets_at_once(b.build(x @ x if product else x + x), [(n, n)])

    assert (at_once(8, product=False), at_once(8, product=True), at_once(64, product=True)) == (512, 64, 1)


def test_symbolic_programs_are_stacked_as_large_as_their_inputs_are() -> None:
    b = GraphBuilder()
    program = b.build(b.input("F32", ("n", "n")).sum(0))
    assert [sets_at_once(program, [(n, n)]) for n in (8, 64, 512)] == [512, 8, 1]


def test_values_whose_origins_differ_are_not_put_together() -> None:
    x = real_point(np.ones(3))

    def stacked(*values: Interval) -> Interval:
        return merged_with_origin(lambda arrays: np.stack(arrays, -1), values)

    product = x.remembering(Unrounded("product", x.lo, x.hi))
    quotient = x.remembering(Unrounded("quotient", x.lo, x.hi))
    assert stacked(product, product).origin.unrounded.lo.shape == (3, 2)
    for other in (x, quotient):
        with pytest.raises(Mixed):
            stacked(product, other)
