"""Fallback evidence: what jaxlib's StableHLO interpreter gives for a module that has no enclosures.

The module runs on the interpreter as it is, and as its *twins*, in which floats have another width (`stablehlo.twin`): F64 in
place of the narrower ones, F32 in place of F64. How far they are apart tells how much of the result rounding decides (by a
twin of F32, in proportion to the units of the two). It runs once more with each subnormal argument as a zero, since platforms flush. An answer may be off by `SPAN` times that, and by
`ULPS` units in the last place, or flushed; integers and truth values must have the same bits, where they agree. This proves nothing: it is
reported as `evidence: interpreter`, and counted as decided nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from oracle.enclosure.formats import Array, flushed
from oracle.judge import failed
from oracle.peers import Execution, Executor, attempt_source
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, UnsupportedOp
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo import Source

#: How many times the distance of the interpreter from its twin an answer may be off.
SPAN = 8.0
#: And how many units in the last place beside that.
ULPS = 4.0
#: How far the binary exponents of elements of about the same size may differ.
_ALIKE = 10
#: A unit in the last place of F64 in those of F32.
_F64_OF_F32 = float(np.finfo(np.float64).eps / np.finfo(np.float32).eps)
_WIDEST = ("f64", "complex<f64>")
_FLOAT = re.compile(r"b?f\d|complex")


@dataclass(eq=False)
class Evidence:
    """A module with its arguments, as the interpreter sees it."""

    source: Source
    arguments: tuple[Array, ...]
    interpreter: Executor
    reader: Reader

    @cached_property
    def expected(self) -> Execution | TenferroError:
        """What the interpreter gives for the module; the error where it fails, or is not to be asked."""
        for name, element in sorted(self.source.ops):
            if name == "rng":
                return UnsupportedOp(op=name, reason="its result is not determined by the module")
            if element == DType.F8E8M0FNU.value.element:
                return UnsupportedOp(
                    op=name, reason="the interpreter computes F8E8M0FNU as if it had a zero and a sign"
                )
        return attempt_source(self.interpreter, self.source, self.arguments)

    @cached_property
    def bounds(self) -> list[Bounds] | TenferroError:
        """What each result may be; the error where the interpreter cannot be asked."""
        expected = self.expected
        if isinstance(expected, TenferroError):
            return expected
        outputs: list[tuple[tuple[Array, ...], float]] = []
        for narrow, ratio in ((False, 1.0), (True, _F64_OF_F32)):
            if not any((element in _WIDEST) == narrow for _, element in self.source.ops if _FLOAT.match(element)):
                continue
            other = self._twin(narrow)
            if isinstance(other, TenferroError):
                return other
            outputs.append((other.outputs, ratio))
        zeroed = [flushed(np.asarray(a)) for a in self.arguments]
        if any(f is not a for f, a in zip(zeroed, self.arguments, strict=True)):
            zeros = attempt_source(self.interpreter, self.source, zeroed)
            if isinstance(zeros, TenferroError):
                return zeros
            outputs.append((zeros.outputs, 1.0))
        return [_bounds(x, [(twin[i], ratio) for twin, ratio in outputs]) for i, x in enumerate(expected.outputs)]

    def _twin(self, narrow: bool) -> Execution | TenferroError:
        try:
            twin = self.reader.twin(self.source, narrow=narrow)
        except TenferroError as error:
            return error
        with np.errstate(all="ignore"):
            pairs = zip(self.arguments, twin.arguments, strict=True)
            arguments = [np.asarray(a).astype(t.dtype.numpy) for a, t in pairs]
        return attempt_source(self.interpreter, twin, arguments)


@dataclass(frozen=True, eq=False)
class Bounds:
    """What an answer is held to.

    Attributes
    ----------
    expected
        The interpreter's values.
    known
        Where they can be relied on: the twin agrees as far as that can be asked.
    allowance
        How far from them a finite float may be.
    """

    expected: Array
    known: Array
    allowance: Array

    def inside(self, seen: Array) -> Array:
        """Which elements of an answer are permitted."""
        same = np.asarray((seen == self.expected) | ((seen != seen) & (self.expected != self.expected)))
        with np.errstate(invalid="ignore", over="ignore"):
            near = _distance(seen, self.expected) <= self.allowance
        return same | near | ~self.known


def _distance(x: Array, y: Array) -> Array:
    """Of numbers, also complex ones, in the widest format."""
    if np.iscomplexobj(x):
        return np.asarray(np.maximum(_distance(x.real, y.real), _distance(x.imag, y.imag)))
    return np.abs(x.astype(np.longdouble) - y.astype(np.longdouble))


def _bounds(expected: Array, twins: Sequence[tuple[Array, float]]) -> Bounds:
    """What is permitted given the interpreter's result, those of its twins, and what part of their distance counts."""
    dtype = DType.of(expected)
    known = np.ones(expected.shape, bool)
    if not (dtype.is_float or dtype.is_complex):
        for twin, _ in twins:
            known &= np.asarray(expected == twin)
        return Bounds(expected, known, np.zeros(expected.shape))
    units: Any = ml_dtypes.finfo(dtype.real.numpy)  # type: ignore[no-untyped-call]
    finite, off = np.isfinite(expected), np.zeros(expected.shape, np.longdouble)
    with np.errstate(all="ignore"):
        for twin, ratio in twins:
            both = np.isfinite(expected) & np.isfinite(twin)
            known &= both | (np.isnan(expected) & np.isnan(twin)) | np.asarray(expected == twin)
            finite &= both
            off = np.fmax(off, _distance(expected, twin) * ratio)
        typical = _typical(off, finite, np.frexp(np.abs(expected).astype(np.longdouble))[1])
        ulps = ULPS * float(units.eps) * _distance(expected, np.zeros_like(expected)) + float(units.smallest_normal)
        allowance = SPAN * np.maximum(off, typical) + ulps
    return Bounds(expected, known, np.where(finite, allowance, 0))


def _typical(off: Array, finite: Array, exponent: Array) -> Array:
    """The median distance of the elements that are about as large as each one.

    A sum that cancels to the same digits by chance says nothing of its error: what the others of the result show.
    """
    typical = np.zeros(off.shape, np.longdouble)
    for e in np.unique(exponent[finite]):
        alike = finite & (np.abs(exponent - e) <= _ALIKE)
        typical[finite & (exponent == e)] = np.median(off[alike])
    return typical


def judge_by_evidence(
    executor: Executor, evidence: Evidence, result: Execution | TenferroError | None = None
) -> Answer:
    """The verdict on an executor that runs the module, or gave `result` for the same program, held to the interpreter.

    UNDECIDED where the interpreter or its twin cannot be asked, or all that they say is not to be relied on. The
    interpreter itself is held to nothing, but it may fail.
    """
    if executor == evidence.interpreter:
        own = evidence.expected
        if isinstance(own, TenferroError):
            return failed(executor.name, own)
        reason = "no enclosure, and it is the evidence for the others"
        return Answer(executor.name, Verdict.UNDECIDED, reason=reason, seconds=own.seconds)
    if result is None:
        result = attempt_source(executor, evidence.source, evidence.arguments)
    if isinstance(result, TenferroError):
        return failed(executor.name, result)
    bounds = evidence.bounds
    if isinstance(bounds, TenferroError):
        reason = f"no enclosure, and no evidence from the interpreter: {bounds}"
        return Answer(executor.name, Verdict.UNDECIDED, reason=reason, error=bounds.to_json(), seconds=result.seconds)
    answer = _held(executor.name, bounds, result.outputs)
    return replace(answer, seconds=result.seconds)


def _held(name: str, bounds: Sequence[Bounds], outputs: Sequence[Array]) -> Answer:
    elements = sum(b.expected.size for b in bounds)
    if [(o.dtype, o.shape) for o in outputs] != [(b.expected.dtype, b.expected.shape) for b in bounds]:
        return Answer(name, Verdict.MISMATCH, Comparison(elements, outside=max(1, elements)), "results of other types")
    outside, first = 0, None
    for i, (b, seen) in enumerate(zip(bounds, outputs, strict=True)):
        wrong = ~b.inside(seen)
        outside += int(np.count_nonzero(wrong))
        if first is None and wrong.any():
            first = i, tuple(int(k) for k in np.argwhere(wrong)[0])
    comparison = Comparison(elements, outside=outside)
    if first is not None:
        i, index = first
        expected, observed = str(bounds[i].expected[index]), str(outputs[i][index])
        off = f" (within {float(bounds[i].allowance[index]):.3g})" if bounds[i].allowance[index] else ""
        comparison = replace(
            comparison, worst_output=i, worst_index=index, expected=expected, observed=observed,
            value_class="not what the interpreter gives",
        )  # fmt: skip
        reason = f"output {i}{list(index)}: {observed} where the interpreter gives {expected}{off} ({outside} of {elements} elements)"
        return Answer(name, Verdict.MISMATCH, comparison, reason)
    known = sum(int(np.count_nonzero(b.known)) for b in bounds)
    if elements and not known:
        return Answer(name, Verdict.UNDECIDED, comparison, "the interpreter and its twin agree on no element")
    share = "" if known == elements else f"; {elements - known} of {elements} elements left open"
    return Answer(name, Verdict.PASS, comparison, f"as the interpreter{share}")
