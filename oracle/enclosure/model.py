"""Arithmetic models: what a platform may do that IEEE arithmetic with one rounding an op would not.

The budgets of the functions are data (`budgets.toml`). What each freedom does to an enclosure is in `oracle.enclosure.freedoms`,
a file a freedom.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tenferro_ref.dtype import DType

BUDGETS_FILE = Path(__file__).with_name("budgets.toml")


#: What a model permits where its field of that name is true.
FREEDOMS = {
    "flush": "A subnormal operand or result may be read or written as the zero of its sign.",
    "contract": "A product may go unrounded into an addition (FMA).",
    "reciprocal": "Division by a value that many elements share may be multiplication by its rounded reciprocal.",
    "gather": "Factors of a chain of products, quotients and roots may be grouped otherwise.",
    "merge": "Nested sums may be merged, adding a constant zero may be left out.",
    "either_zero": "A sum of zeros may start from either zero.",
    "contraction_zero": "A contraction of zeros may start from either zero.",
    "conj_moves": "A Conj may be taken to the operands, which changes the signs of zeros that sums cancel to.",
    "either_side": "The sign of a zero imaginary part need not say on which side of a branch cut a number is.",
    "by_parts": "A complex function may be computed from real ones, which give NaN for a limit of 0 times an infinity.",
    "narrow_sums": "A contraction of narrow floats may be added up in F64, or in their own format.",
    "excess": "Results of narrow floats may go on unrounded, in F32.",
    "addends": "A sum of products may start from an addend, as a contraction may.",
    "excess_converted": "A result in BF16 that is converted to F32, or in 8 bits to F16, may go there unrounded.",
    "approximate": "A quotient or square root in F32 may come of an instruction that approximates it.",
    "tf32": "A contraction in F32 may read its operands with 11 bits (TF32).",
    "restart": "A reduction may take in its initial value several times, between any elements.",
    "real": "An operation may give the number that it rounds otherwise.",
}


@dataclass(frozen=True)
class Model:
    """An arithmetic model: its budgets, by name, and the freedoms that it permits.

    `FREEDOMS` says what each of them is.
    """

    name: str
    flush: bool = False
    contract: bool = False
    reciprocal: bool = False
    gather: bool = False
    merge: bool = False
    either_zero: bool = False
    contraction_zero: bool = False
    conj_moves: bool = False
    either_side: bool = False
    by_parts: bool = False
    narrow_sums: bool = False
    excess: bool = False
    addends: bool = False
    excess_converted: bool = False
    approximate: bool = False
    tf32: bool = False
    restart: bool = False
    real: bool = False

    @property
    def keeps_unrounded(self) -> bool:
        """Whether an operation may read what its operands were before they were rounded."""
        return self.contract or self.gather

    def budget(self, op: str, dtype: DType) -> float:
        """ULPs that a result of `op` may be away from the true value.

        A narrow float's function is that of F32, rounded: half an ULP, and what F32 is off; one of 8 bits may be rounded to F16 first.
        """
        known = budgets()
        if dtype.is_narrow_float:
            digits = int(dtype.finfo.nmant)
            by_way = 2.0 ** (digits - 11) if self.excess_converted and dtype.bits <= 8 else 0.0
            return 0.5 + by_way + known[self.name, op, DType.F32.name] * 2.0 ** (digits - 23)
        return known[self.name, op, dtype.name]


@cache
def budgets() -> dict[tuple[str, str, str], float]:
    """`budgets.toml` as `{(model, op, dtype): ulps}`."""
    entries = tomllib.loads(BUDGETS_FILE.read_text())["budget"]
    known = {(e["model"], op, e["dtype"]): float(ulps) for e in entries for op, ulps in e["ulps"].items()}
    return known | {
        (model, op, dtype): ulps
        for model, like in _BUDGETS_OF.items()
        for (measured, op, dtype), ulps in known.items()
        if measured == like
    }


IEEE = Model("ieee")
#: `conj_moves`: ConjSinking is a pass of the reference.
#: `contraction_zero`: BLAS starts as it likes; the reference's own sums start from +0.
#: `narrow_sums`: the reference adds in F64, the StableHLO interpreter in the format itself.
NUMPY = Model("numpy", contraction_zero=True, conj_moves=True, narrow_sums=True)
#: It runs what is emitted, in which no pass has moved a Conj.
INTERPRETER = replace(NUMPY, name="interpreter", conj_moves=False)
XLA = Model(
    "xla", flush=True, contract=True, reciprocal=True, gather=True, merge=True, either_zero=True, either_side=True,
    by_parts=True, excess_converted=True,
)  # fmt: skip
IREE = replace(XLA, name="iree", excess=True, narrow_sums=True, addends=True)
#: XLA on a GPU of NVIDIA.
CUDA = replace(XLA, name="cuda", approximate=True, tf32=True, restart=True, narrow_sums=True)
#: No platform's: what two programs that are equal over the real numbers are compared by.
REAL = Model("ieee", either_zero=True, real=True)
MODELS: dict[str, Model] = {m.name: m for m in (IEEE, NUMPY, INTERPRETER, XLA, CUDA, IREE)}
#: The budgets of `numpy` were measured of the interpreter as well; IREE has been held to those of XLA since it joined.
_BUDGETS_OF = {INTERPRETER.name: NUMPY.name, IREE.name: XLA.name}
