"""Each freedom alone: what takes it stays inside the model that permits it, and only its own file asks for it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from enclosure_programs import chain, complex_program, random_program

from oracle.enclosure import MODELS, XLA, Model, enclose, freedoms
from oracle.enclosure.value import Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder
from tests.oracle.enclosure.enclosure_report import escapes, with_all_slots

pytestmark = pytest.mark.once


FREEDOMS = [f.name for f in fields(Model) if f.name != "name"]
NONE = Model(XLA.name)  # the budgets of XLA, and nothing else
MAKERS = {
    "chains": chain,
    "real": lambda rng: random_program(rng, 6),
    "complex": lambda rng: complex_program(rng, 5),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("freedom", FREEDOMS)
def test_what_takes_one_freedom_stays_inside(freedom: str, kind: str) -> None:
    model = replace(NONE, **{freedom: True})
    for seed in range(40):
        program, inputs = MAKERS[kind](np.random.default_rng((31, seed)))
        found, first = escapes(with_all_slots(program), inputs, model, model, 2, seed)
        assert not found, f"seed {seed}: {first}"


def _holds(wide: Interval, narrow: Interval) -> bool:
    """Whether every result of one enclosure is in another."""
    inside = narrow.empty | ((wide.lo <= narrow.lo) & (narrow.hi <= wide.hi))
    flags = ((narrow.nan, wide.nan), (narrow.pos_zero, wide.pos_zero), (narrow.neg_zero, wide.neg_zero))
    return bool(inside.all()) and all(not (a & ~b).any() for a, b in flags)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_a_freedom_takes_nothing_away(freedom: str) -> None:
    """And widens something."""
    wider = 0
    for seed in range(80):
        program, inputs = chain(np.random.default_rng((32, seed)))
        program = with_all_slots(program)
        narrow, wide = (enclose(program, inputs, m) for m in (NONE, replace(NONE, **{freedom: True})))
        for a, b in zip(narrow, wide, strict=True):
            assert _holds(b, a), program
            wider += not _holds(a, b)
    assert wider > 0 or freedom in (
        "either_zero",
        "contraction_zero",
        "conj_moves",
        "excess",
        "excess_converted",
        "either_side",
        "by_parts",
        "narrow_sums",
        "restart",
        "addends",
    ), "nothing shows that the freedom is taken"


def test_only_the_file_of_a_freedom_asks_for_it() -> None:
    asked = re.compile(rf"model\.({'|'.join(FREEDOMS)})\b")
    folder = Path(freedoms.__file__).parent
    for path in folder.parent.rglob("*.py"):
        names = set(asked.findall(path.read_text()))
        assert len(names) <= (path.parent == folder), (path, names)


def test_every_freedom_is_documented_in_its_file() -> None:
    folder = Path(freedoms.__file__).parent
    files = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert len(files) == len(FREEDOMS)
    for name in files:
        assert f"`{name}`" in (freedoms.__doc__ or "")
        assert "*Bound.*" in (folder / f"{name}.py").read_text()


F16_QUOTIENT = ops.Divide(), [np.float16([2.434]), np.float16([1.991])], np.float16([1.2226562])
F16_ROOT = ops.Sqrt(), [np.float16([0.00024402141571044922])], np.float16([0.015625])


@pytest.mark.parametrize(("op", "operands", "approximated"), [F16_QUOTIENT, F16_ROOT], ids=["quotient", "root"])
def test_an_approximated_quotient_of_narrow_numbers_is_one_in_f32_that_is_rounded(
    op: ops.Op, operands: list[np.ndarray], approximated: np.ndarray
) -> None:
    """Two units of F32 above a number beside the middle of two of F16."""
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.apply(op, *(b.input(DType.F16, (1,)) for _ in operands)))
    for model, permitted in ((MODELS["cuda"], True), (XLA, False)):
        assert bool(enclose(program, operands, model)[0].contains(approximated).all()) is permitted


def test_a_shared_divisor_may_be_inverted_by_an_approximated_quotient() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal(4096).astype(np.float32), np.float32([1.7])
    reciprocal = np.nextafter(np.nextafter(1 / y, np.float32(9)), np.float32(9))
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.input(DType.F32, (4096,)) / b.input(DType.F32, (1,))[0])
    assert enclose(program, [x, y], MODELS["cuda"])[0].contains(x * reciprocal).all()
    assert not enclose(program, [x, y], XLA)[0].contains(x * reciprocal).all()
    assert not enclose(program, [x, y], MODELS["cuda"])[0].contains(x * reciprocal * np.float32(1 + 1e-6)).any()


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16], ids=str)
def test_an_approximated_quotient_in_a_chain_is_off_by_units_of_f32_not_of_a_narrow_format(dtype: DType) -> None:
    """x / 1.7 less the rounded quotient: half an ULP that was rounded off, one of a rounded reciprocal at most, and little more."""
    x = np.linspace(1.71, 3.39, 200).astype(dtype.numpy)
    y = dtype.numpy.type(1.7)
    quotient = (x.astype(float) / float(y)).astype(dtype.numpy)
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.input(dtype, (200,)) / b.constant(y, dtype).broadcast_to((200,)) - b.input(dtype, (200,)))
    (made,) = enclose(program, [x, quotient], MODELS["cuda"])
    ulp = float(dtype.finfo.eps)  # of quotients between 1 and 2
    assert np.abs([made.lo, made.hi]).max() <= 1.6 * ulp


def test_another_element_says_nothing_of_the_sign_of_a_sum_of_zeros() -> None:
    """-0 * 0.5 + -0 is -0, beside a NaN as well, which leaves the unrounded products without signs."""
    b = GraphBuilder(policy=STABLEHLO)
    x, y = b.input(DType.F32, (2, 2)), b.input(DType.F32, (2,))
    program = b.build(x * 0.5 + b.apply(ops.BroadcastInDim((2, 2), (1,)), y))
    for other in (3.0, np.nan, 1e-40):
        values = np.float32([[other, -0.0], [3.0, -0.0]])
        (made,) = enclose(program, [values, values[0]], XLA)
        assert not made.pos_zero[:, 1].any()
        assert made.contains(np.float32([[np.nan, -0.0], [np.nan, -0.0]]))[:, 1].all()
