"""What the configuration of an extension op says, read here: a fault in the engine's reading of it must not be the oracle's, too.

It is asked of valid programs alone and checks nothing. What a configuration may hold, and what holds where it is silent:
`docs/reference/semantics.md` (6) and `semantics-0.7.md` (C).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

from tenferro_ref.ops import Extension

#: Unless an op asks for another one; so small that the derivative is that of the function.
DERIVATIVE_EPS = 1e-12
_GAUGE: dict[str, Any] = {"gauge": "Raw"}
_FLAGS: dict[str, dict[str, Any]] = {
    "LuSolvePrepared": {"transpose_a": False, "conjugate_a": False},
    "FullPivLuSolve": {"transpose_a": False},
    "TriangularSolve": {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": False},
    "RankRevealingQr": {**_GAUGE, "rtol": 0.0, "atol": 0.0},
    "HouseholderQrQColumns": {**_GAUGE, "start": 0, "end": None},
    **dict.fromkeys(("Svd", "Qr", "Eigh", "HouseholderQrR", "HouseholderQrThinQ"), _GAUGE),
}


def flags(op: Extension) -> dict[str, Any]:
    """What the results of an op of the linalg family depend on, beside its operands."""
    given = json.loads(op.config)
    return {key: given.get(key, default) for key, default in _FLAGS.get(op.op, {}).items()}


def derivative_eps(op: Extension) -> float:
    """What keeps tangents of singular vectors and eigenvectors finite: its square is added to the squared gaps of the spectrum."""
    return float(json.loads(op.config).get("derivative_eps", DERIVATIVE_EPS))


@dataclass(frozen=True)
class Equation:
    """An einsum: labels of each operand and of the output, as the first letters of the alphabet in order of appearance.

    `extensions.einsum.Equation` says the same of the engine's reading; the two meet in a test alone.
    """

    inputs: tuple[str, ...]
    output: str

    @property
    def summed(self) -> frozenset[str]:
        """Labels that are not in the output."""
        return frozenset("".join(self.inputs)) - frozenset(self.output)

    @property
    def kept(self) -> str:
        """The output's labels, each once, in order."""
        return "".join(dict.fromkeys(self.output))

    def sizes(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """Extent of each label."""
        pairs = zip(self.inputs, shapes, strict=True)
        return {label: extent for labels, shape in pairs for label, extent in zip(labels, shape, strict=True)}


def equation(op: Extension) -> Equation:
    """The equation of an op of the einsum family."""
    text = "".join(json.loads(op.config)["equation"].split())
    labels = "".join(dict.fromkeys(character for character in text if character not in ",->"))
    left, output = text.translate(str.maketrans(labels, ascii_letters[: len(labels)])).split("->")
    return Equation(tuple(left.split(",")), output)


@dataclass(frozen=True)
class Transform:
    """A transform of the fft family: its length if one is given, its axis counted from 0, its norm as NumPy calls it."""

    n: int | None
    axis: int
    norm: str


def transform(op: Extension, rank: int) -> Transform:
    """The configuration of an op of the fft family for an operand of this rank."""
    given = json.loads(op.config)
    axis = given.get("axis", -1)
    return Transform(given.get("n"), axis + rank if axis < 0 else axis, given.get("norm", "Backward").lower())
