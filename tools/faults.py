"""Seeded faults: does an enclosure notice an op whose results are a few ULPs off?

`off_by` runs a program natively with every result of one op moved; `detect` counts in how many of the programs that
have the op the outputs leave their enclosures. What a budget admits cannot be seen, nor what later ops round away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from oracle.case import Case
from oracle.enclosure.executor import enclose
from oracle.enclosure.formats import Array
from oracle.enclosure.model import Model
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Op
from tenferro_ref.runtime.kernels.base import run_kernel

#: Sizes of faults, in ULPs, by op: of the functions more than a good implementation is off, of arithmetic one rounding.
FUNCTION_ULPS = (2, 4, 16)
FAULTS: Mapping[type[Op], tuple[int, ...]] = {
    **dict.fromkeys(
        (ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Tanh, ops.Rsqrt, ops.Pow), FUNCTION_ULPS
    ),
    **dict.fromkeys(
        (ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Sqrt, ops.ReduceSum, ops.ReduceProd, ops.DotGeneral), (1,)
    ),
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
        """Chance that it is seen at least once in so many programs; with 99 % confidence not less.

        From the lower bound of Clopper and Pearson (1934) on the rate.
        """
        return 1 - (1 - self.least) ** programs

    @property
    def least(self) -> float:
        """The least rate that makes it likely (1 %) to see as many as were seen."""
        return float(beta.ppf(0.01, self.seen, self.programs - self.seen + 1)) if self.seen else 0.0


def has(case: Case, op: type[Op], dtype: DType) -> bool:
    """Whether the program has `op` with a result of that dtype."""
    types = case.program.slot_types
    return any(type(i.op) is op and types[i.output_slots[0]].dtype is dtype for i in case.program.instructions)


def off_by(case: Case, op: type[Op], dtype: DType, ulps: int, rng: np.random.Generator) -> list[Array]:
    """Outputs of the native kernels where results of `op` and `dtype` are `ulps` floats up or down.

    Infinities, zeros and subnormals stay.
    """
    program = case.program
    values = dict(zip(program.input_slots, case.inputs, strict=True))
    for ins in program.instructions:
        results = run_kernel(ins.op, program.policy, *(values[s] for s in ins.input_slots))
        for slot, result in zip(ins.output_slots, results, strict=True):
            values[slot] = moved(result, ulps, rng) if type(ins.op) is op and result.dtype == dtype.numpy else result
    return [values[s] for s in program.output_slots]


def moved(x: Array, ulps: int, rng: np.random.Generator) -> Array:
    if x.dtype.kind == "c":
        z = np.empty_like(x)
        z.real, z.imag = moved(x.real, ulps, rng), moved(x.imag, ulps, rng)
        return z
    if x.dtype.kind != "f":
        return x
    towards = np.where(rng.random(x.shape) < 0.5, np.inf, -np.inf).astype(x.dtype)
    y = x
    with np.errstate(over="ignore", under="ignore"):
        for _ in range(ulps):
            y = np.nextafter(y, towards)
    fixed = ~np.isfinite(x) | ~np.isfinite(y) | (np.abs(x) < np.finfo(x.dtype).smallest_normal)
    return np.asarray(np.where(fixed, x, y), x.dtype)


def detect(
    cases: Iterable[Case], op: type[Op], dtype: DType, sizes: Sequence[int], model: Model, seed: int = 0
) -> dict[int, Detection]:
    """How often results of `op` and `dtype` that are so many ULPs off leave the enclosures, by the number of ULPs.

    Left out are programs without the op, those that fail or have no rule, and those that native kernels leave already
    without a fault (of which some are less accurate than `model` allows).
    """
    programs, seen = 0, dict.fromkeys(sizes, 0)
    for number, case in enumerate(cases):
        if not has(case, op, dtype):
            continue
        rng = np.random.default_rng((seed, number))
        try:
            enclosures = enclose(case.program, case.inputs, model)
            runs = {ulps: off_by(case, op, dtype, ulps, rng) for ulps in (0, *sizes)}
        except TenferroError:
            continue
        outside = {
            ulps: any(not e.contains(o).all() for e, o in zip(enclosures, outputs, strict=True))
            for ulps, outputs in runs.items()
        }
        if outside[0] and 0 not in sizes:
            continue
        programs += 1
        for ulps in sizes:
            seen[ulps] += outside[ulps]
    return {ulps: Detection(programs, count) for ulps, count in seen.items()}
