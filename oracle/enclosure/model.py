"""Arithmetic models: what a platform may do that IEEE arithmetic with one rounding an op would not.

The budgets of the functions are data (`budgets.toml`); what each freedom does to an enclosure is in the rules.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tenferro_ref.dtype import DType

BUDGETS_FILE = Path(__file__).with_name("budgets.toml")


@dataclass(frozen=True)
class Model:
    """An arithmetic model.

    Attributes
    ----------
    flush
        A denormal operand or result may be read or written as the zero of its sign.
    contract
        A product may go unrounded into an addition (FMA).
    rewrite
        Division by a constant may be multiplication by its rounded reciprocal; a quotient or a root may go unrounded
        into a division; nested sums may be merged; adding a constant zero may be left out.
    any_zero_sum
        A sum of zeros may start from either zero.
    """

    name: str
    flush: bool = False
    contract: bool = False
    rewrite: bool = False
    any_zero_sum: bool = False

    def budget(self, op: str, dtype: DType) -> float:
        """ULPs that a result of `op` may be away from the true value."""
        return budgets()[self.name, op, dtype.name]


@cache
def budgets() -> dict[tuple[str, str, str], float]:
    """`budgets.toml` as `{(model, op, dtype): ulps}`."""
    entries = tomllib.loads(BUDGETS_FILE.read_text())["budget"]
    return {(e["model"], op, e["dtype"]): float(ulps) for e in entries for op, ulps in e["ulps"].items()}


IEEE = Model("ieee")
NUMPY = Model("numpy", contract=False, any_zero_sum=True)
XLA = Model("xla", flush=True, contract=True, rewrite=True, any_zero_sum=True)
MODELS: dict[str, Model] = {m.name: m for m in (IEEE, NUMPY, XLA)}
