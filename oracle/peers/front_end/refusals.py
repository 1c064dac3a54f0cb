"""Equations that the front end must refuse, each made of one that it takes and wrong in one way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters

from oracle.peers.front_end.table import with_axis
from tenferro_ref import frontend as tn
from tenferro_ref.errors import Internal, InvalidCompiledGraph, ValidationError
from tenferro_ref.extensions.einsum import Equation
from tenferro_ref.program import Value


def check_refusals(equation: Equation, operands: Sequence[Value]) -> None:
    """Ask for einsums with a wrong equation.

    Raises
    ------
    Internal
        The front end takes one.
    """
    for text, values in _wrong(equation, operands):
        try:
            tn.einsum(text, *values)
        except (ValidationError, InvalidCompiledGraph):
            continue
        raise Internal(detail=f"the front end takes the equation {text!r} for shapes {[v.shape for v in values]}")


def _wrong(equation: Equation, operands: Sequence[Value]) -> Iterator[tuple[str, Sequence[Value]]]:
    (first, *others), output = equation.inputs, equation.output
    fresh = "\N{GREEK SMALL LETTER ALPHA}"  # those of an equation are of ASCII

    def text(term: str, result: str = output) -> str:
        return f"{','.join((term, *others))}->{result}"

    yield text(first, output + fresh), operands
    yield text(first + fresh), operands
    yield text(f"{first},"), operands
    yield text(f"({first}"), operands
    yield text(f"{first}.."), operands
    yield text(f"...{first}..."), operands
    yield text(first, f"...{output}"), operands
    if first:  # an ellipsis that covers an axis which the output lacks
        used = [label for label in output if any(label in term for term in (first[1:], *others))]
        yield text(f"...{first[1:]}", "".join(used)), operands
        # a label of two axes, one of which has extent 1, is not broadcast within an operand
        x = operands[0]
        if isinstance(x.shape[-1], int) and x.shape[-1] != 1:
            repeated = ascii_letters[: x.ndim] + ascii_letters[x.ndim - 1]
            yield f"...{repeated}->...", [with_axis(x, x.ndim - 1)]
            yield f"{repeated}->", [with_axis(x, x.ndim - 1)]
