"""Other ways to write an einsum, each of which means the same numbers.

Labels are integers; parentheses say in which order opt_einsum multiplies anyway; an output that follows from the labels is left out; an
ellipsis stands for labels that are aligned at the right. Beside an ellipsis, axes of extent 1 are as long as others: operands get some,
and a part without elements is put beside the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from string import ascii_letters
from typing import Any

from oracle.peers.front_end.table import with_axis
from tenferro_ref import frontend as tn
from tenferro_ref.extensions import einsum as family
from tenferro_ref.extensions.einsum import Equation
from tenferro_ref.program import Value


def spelled(equation: Equation, operands: Sequence[Value], draw: int) -> Value:
    """The einsum in one of these ways; a number decides in which, and about spaces."""
    if equation.path:
        return family.einsum(f"{','.join(equation.inputs)}->{equation.output}", *operands, path=equation.path)
    way, draw = draw % 5, draw // 5
    if way == 0:
        return tn.einsum((list(map(_numbers, equation.inputs)), _numbers(equation.output)), *operands)
    if way == 1 and (order := _order(equation, operands)) is not None:
        text, places = order
        return tn.einsum(_spaced(_short(text, equation.output), draw), *(operands[i] for i in places))
    short = _short(",".join(equation.inputs), equation.output)
    output, runs = equation.output, list(_runs(equation)) if _equal_extents(equation, operands) else []
    # few programs have an output that is not written and has an order, of labels alone or behind those of an ellipsis
    begins = [run for run in runs if run and output.startswith(run) and run != output]
    ordered = [run for run in begins if "->" not in _dotted(equation, run, 0)]
    if ordered and way == 3:
        return _covered(equation, operands, ordered[draw // 4 % len(ordered)], 0, draw // 64)
    runs = [run for run in runs if run or draw % 4 == 0]
    implied = "->" not in short and (way == 2 or len(output) > 1)
    if way == 1 or not runs or implied:
        return tn.einsum(_spaced(short, draw), *operands)
    run, draw = runs[draw // 4 % len(runs)], draw // 64
    return _covered(equation, operands, run, output.index(run) if run else draw % (len(output) + 1), draw)


def _numbers(labels: str) -> list[int]:
    return [ord(label) for label in labels]


def _spaced(text: str, draw: int) -> str:
    return text.replace(",", ", ").replace("->", " -> ") if draw % 2 else text


def _short(terms: str, output: str) -> str:
    """The equation, without its output if that has what is covered and then the labels that occur once; these are named in that order."""
    counts = Counter(label for label in terms if label.isalpha())
    once = {label for label, n in counts.items() if n == 1}
    labels = output.removeprefix("..." if "..." in terms else "")
    if {*labels} != once or len(labels) != len(once):
        return f"{terms}->{output}"
    names = dict(zip([*labels, *(label for label in counts if label not in once)], ascii_letters, strict=False))
    return "".join(names.get(label, label) for label in terms)


# --- parentheses ------------------------------------------------------------------------------------------------------


def _order(equation: Equation, operands: Sequence[Value]) -> tuple[str, list[int]] | None:
    """Terms in the parentheses of the path that is taken without them, and which operands these are; None for other steps than of two."""
    if len(operands) < 2 or not all(v.type.is_static for v in operands):
        return None
    live = [(f"{term}", [i]) for i, term in enumerate(equation.inputs)]
    for step in family.path(equation, tuple(v.type.static_shape for v in operands)):
        if len(step) != 2:
            return None
        (first, own), (second, others) = (live[i] for i in sorted(step))
        live = [entry for i, entry in enumerate(live) if i not in step]
        live.append((f"({first},{second})", own + others))
    return live[0]


# --- ellipsis ---------------------------------------------------------------------------------------------------------


def _equal_extents(equation: Equation, operands: Sequence[Value]) -> bool:
    """Whether nothing is left open that an ellipsis would ask for."""
    found: dict[str, Any] = {}
    pairs = [p for t, v in zip(equation.inputs, operands, strict=True) for p in zip(t, v.shape, strict=True)]
    return all(found.setdefault(label, extent) == extent for label, extent in pairs)


def _runs(equation: Equation) -> Iterator[str]:
    """Labels that an ellipsis can stand for, the longest first; last none.

    They stand together in the output, once, and together in each operand that has the last of them: all of them, or the last ones.
    """
    output = equation.output
    places = range(len(output) + 1)
    for start, end in sorted(combinations(places, 2), key=lambda pair: pair[0] - pair[1]):
        run = output[start:end]
        once = all(t.count(label) <= 1 for label in run for t in (*equation.inputs, output))
        if once and any(run in t for t in equation.inputs) and all(_tail(t, run) is not None for t in equation.inputs):
            yield run
    yield ""


def _tail(term: str, run: str) -> str | None:
    """The labels at the end of a run that a term has, side by side; None if it has others of it."""
    own = "".join(label for label in term if label in run)
    return own if own in term and run.endswith(own) else None


def _dotted(equation: Equation, run: str, at: int) -> str:
    """The equation with an ellipsis for a run of labels, which is at a place of the output."""
    terms = []
    for term in equation.inputs:
        tail = _tail(term, run) or ""
        axis = term.index(tail) if tail else len(term)
        terms.append(f"{term[:axis]}...{term[axis + len(tail) :]}")
    return _short(",".join(terms), f"{equation.output[:at]}...{equation.output[at + len(run) :]}")


def _covered(equation: Equation, operands: Sequence[Value], run: str, at: int, draw: int) -> Value:
    """The einsum with an ellipsis for a run of labels, which is at a place of the output."""
    terms, values = list(equation.inputs), list(operands)
    static = all(v.type.is_static for v in values)
    tails = [_tail(term, run) or "" for term in terms]
    axes = [term.index(tail) if tail else len(term) for term, tail in zip(terms, tails, strict=True)]
    for i, tail in enumerate(tails):
        if not tail and run and static and draw % 2:  # an axis of extent 1, which is as long as the last one of the run
            values[i] = with_axis(values[i], axes[i])
    whole = next((i for i, tail in enumerate(tails) if tail == run), 0)
    front = bool(run) and static and draw // 2 % 2 == 1
    if front:  # one more axis in front, which no other operand has
        values[whole] = with_axis(values[whole], axes[whole])
    text = _dotted(equation, run, at)
    parts = [tn.einsum(_spaced(text, draw // 4), *values)]
    shared = [label for label in run if sum(label in tail for tail in tails) > 1]
    if static and shared:
        axis = at + front + run.index(shared[-1])
        parts.insert(draw // 8 % 2, _empty(text, values, terms, shared[-1], whole, axes, front))
        parts = [tn.concatenate(parts, axis)]
    return parts[0][(*[slice(None)] * at, 0)] if front else parts[0]


def _empty(
    text: str, values: Sequence[Value], terms: Sequence[str], label: str, whole: int, axes: Sequence[int], front: bool
) -> Value:
    """The same einsum of no element along a label: one operand has none, the others have one, which is as long as none."""
    parts = []
    for i, (x, term) in enumerate(zip(values, terms, strict=True)):
        if label in term:
            axis = term.index(label) + (front and i == whole)
            length = x.type.static_shape[axis]
            edges = [(0, 0)] * x.ndim
            edges[axis] = (0, (1 if i != whole else 0) - length)
            x = tn.pad(x, edges)
        parts.append(x)
    return tn.einsum(text, *parts)
