"""Seeded faults: does an enclosure notice an op whose results are a few ULPs off?

`off_by` runs a program natively with every result of one op moved; `detection` counts in how many of the programs that
have the op the outputs leave their enclosures. What a budget admits cannot be seen, nor what later ops round away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from oracle.case import Case
from oracle.enclosure.executor import enclose
from oracle.enclosure.formats import Array
from oracle.enclosure.model import Model
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import (
    Add,
    Cos,
    Divide,
    DotGeneral,
    Exp,
    Expm1,
    Log,
    Log1p,
    Multiply,
    Op,
    Pow,
    ReduceProd,
    ReduceSum,
    Rsqrt,
    Sin,
    Sqrt,
    Tanh,
)
from tenferro_ref.runtime.kernels.base import run_kernel

#: Sizes of faults, in ULPs, by op: of the functions more than a good implementation is off, of arithmetic one rounding.
FUNCTION_ULPS = (2, 4, 16)
FAULTS: Mapping[type[Op], tuple[int, ...]] = {
    **dict.fromkeys((Exp, Expm1, Log, Log1p, Sin, Cos, Tanh, Rsqrt, Pow), FUNCTION_ULPS),
    **dict.fromkeys((Add, Multiply, Divide, Sqrt, ReduceSum, ReduceProd, DotGeneral), (1,)),
}


@dataclass(frozen=True)
class Detection:
    """In how many programs a fault was seeded, and in how many of them it was seen."""

    programs: int
    seen: int

    @property
    def rate(self) -> float:
        return self.seen / self.programs if self.programs else 0.0

    def within(self, programs: int) -> float:
        """Chance that it is seen at least once in so many programs."""
        return 1 - (1 - self.rate) ** programs


def off_by(case: Case, op: type[Op], ulps: int, rng: np.random.Generator) -> list[Array]:
    """Outputs of the native kernels where results of `op` are `ulps` floats up or down; infinities and zeros stay."""
    program = case.program
    values = dict(zip(program.input_slots, case.inputs, strict=True))
    for ins in program.instructions:
        results = run_kernel(ins.op, program.policy, *(values[s] for s in ins.input_slots))
        for slot, result in zip(ins.output_slots, results, strict=True):
            values[slot] = moved(result, ulps, rng) if type(ins.op) is op else result
    return [values[s] for s in program.output_slots]


def moved(x: Array, ulps: int, rng: np.random.Generator) -> Array:
    if x.dtype.kind == "c":
        return np.asarray(moved(x.real, ulps, rng) + 1j * moved(x.imag, ulps, rng)).astype(x.dtype)
    if x.dtype.kind != "f":
        return x
    towards = np.where(rng.random(x.shape) < 0.5, np.inf, -np.inf).astype(x.dtype)
    y = x
    with np.errstate(over="ignore", under="ignore"):
        for _ in range(ulps):
            y = np.nextafter(y, towards)
    fixed = ~np.isfinite(x) | ~np.isfinite(y) | (np.abs(x) < np.finfo(x.dtype).smallest_normal)
    return np.asarray(np.where(fixed, x, y), x.dtype)


def detection(cases: Iterable[Case], op: type[Op], ulps: int, model: Model, seed: int = 0) -> Detection:
    """How often results of `op` that are `ulps` off leave the enclosures; programs that fail or have no rule are left out."""
    rng = np.random.default_rng(seed)
    programs = seen = 0
    for case in cases:
        if not any(type(ins.op) is op for ins in case.program.instructions):
            continue
        try:
            outputs = off_by(case, op, ulps, rng)
            enclosures = enclose(case.program, case.inputs, model)
        except TenferroError:
            continue
        programs += 1
        seen += any(not e.contains(o).all() for e, o in zip(enclosures, outputs, strict=True))
    return Detection(programs, seen)
