"""By which freedom of its arithmetic model an answer is outside IEEE arithmetic: flushing, contraction, rewriting, functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oracle.case import Case, live
from oracle.enclosure import MODELS, enclose
from oracle.enclosure.formats import Array
from oracle.enclosure.model import IEEE, Model

#: What the freedoms of a model are called, with its fields; "functions" is less accurate functions, by its budgets alone.
FREEDOMS: dict[str, tuple[str, ...]] = {
    "functions": (),
    "flush": ("flush",),
    "FMA": ("contract",),
    "approximation": ("approximate", "tf32"),
    "excess": ("excess", "excess_converted", "narrow_sums"),
    "rewrite": (
        "reciprocal",
        "gather",
        "merge",
        "either_zero",
        "contraction_zero",
        "conj_moves",
        "either_side",
        "by_parts",
        "restart",
        "addends",
    ),
}
#: Where no freedom alone is enough.
TOGETHER = "several together"


def beyond_ieee(case: Case, outputs: Sequence[Array], model: str) -> dict[str, int]:
    """How many elements are outside IEEE arithmetic but inside `model`, by the first of `FREEDOMS` that is enough by itself.

    Raises
    ------
    UnsupportedOp
        The program has an op without an enclosure.
    """
    permitted = _inside(case, outputs, MODELS[model])
    left = [own & ~strict for own, strict in zip(permitted, _inside(case, outputs, IEEE), strict=True)]
    found: dict[str, int] = {}
    for name, part in _parts(MODELS[model]):
        if not any(np.count_nonzero(mask) for mask in left):
            break
        inside = _inside(case, outputs, part)
        found[name] = sum(int(np.count_nonzero(mask & i)) for mask, i in zip(left, inside, strict=True))
        left = [mask & ~i for mask, i in zip(left, inside, strict=True)]
    found[TOGETHER] = sum(int(np.count_nonzero(mask)) for mask in left)
    return {name: count for name, count in found.items() if count}


def _parts(model: Model) -> Iterator[tuple[str, Model]]:
    flags = {flag for flags in FREEDOMS.values() for flag in flags}
    for name, granted in FREEDOMS.items():
        kept: dict[str, Any] = {flag: flag in granted and getattr(model, flag) for flag in flags}
        yield name, replace(model, **kept)


def _inside(case: Case, outputs: Sequence[Array], model: Model) -> list[Array]:
    enclosures = enclose(live(case.program), case.inputs, model, arguments=len(case.arguments))
    return [np.asarray(e.contains(o)) for e, o in zip(enclosures, outputs, strict=True)]
