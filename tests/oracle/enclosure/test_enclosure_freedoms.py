"""Each freedom alone: what takes it stays inside the model that permits it, and only its own file asks for it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from enclosure_programs import chain, complex_program, random_program

from oracle.enclosure import XLA, Model, enclose, freedoms
from oracle.enclosure.value import Interval
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
