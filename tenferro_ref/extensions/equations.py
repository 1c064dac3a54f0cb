"""Ways to write an einsum: integer labels, parentheses, an ellipsis (SEMANTICS C.1).

All become what the op holds: one letter a label, no ellipsis, and a contraction path where parentheses give the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters
from typing import TypeAlias

from tenferro_ref.dims import Extent
from tenferro_ref.errors import InvalidArgument, RankMismatch, ShapeMismatch, UsageError
from tenferro_ref.program.slicing import as_integers

#: Positions of two operands in the shrinking list; their product goes to its end.
Path: TypeAlias = list[list[int]]
#: Labels of each operand, and of the output.
Labels: TypeAlias = tuple[Sequence[Sequence[int]], Sequence[int]]

#: Groups within groups.
MAX_DEPTH = 64


def _fault(detail: str) -> InvalidArgument:
    return InvalidArgument("einsum", "equation", detail)


def wrong_rank(op: str, operand: int, labels: Sequence[str], rank: int) -> RankMismatch:
    """The error of an operand that has another rank than the equation has labels for it."""
    words = f"{op}: operand {operand} has rank {rank}, and labels for rank {len(labels)} in the equation"
    return RankMismatch(op, len(labels), rank).saying(words)


def lettered(labels: Labels) -> str:
    """The equation of integer labels.

    Raises
    ------
    InvalidArgument
        More labels than there are letters.
    UsageError
        No labels of operands and of an output.
    """
    if not isinstance(labels, Sequence) or len(labels) != 2 or not all(isinstance(part, Sequence) for part in labels):
        raise UsageError(detail=f"{labels!r} where labels of each operand, and of the output, are needed: einsum")
    inputs, output = (
        [as_integers(part, "labels of an operand") for part in labels[0]],
        as_integers(labels[1], "labels of the output"),
    )
    distinct = list(dict.fromkeys(label for part in (*inputs, output) for label in part))
    if len(distinct) > len(ascii_letters):
        raise _fault(f"{len(distinct)} labels; at most {len(ascii_letters)} are supported")
    letter = dict(zip(distinct, ascii_letters, strict=False))
    terms = ["".join(letter[label] for label in part) for part in (*inputs, output)]
    return f"{','.join(terms[:-1])}->{terms[-1]}"


def explicit(equation: str) -> str:
    """The equation without spaces and with an output: what an ellipsis covers, then the labels that occur once, in order."""
    text = "".join(equation.split())
    if "->" in text:
        return text
    counts = Counter(character for character in text if character not in ",().")
    once = sorted(label for label, n in counts.items() if n == 1)
    return f"{text}->{'...' * ('...' in text)}{''.join(once)}"


# --- parentheses ------------------------------------------------------------------------------------------------------

Tree: TypeAlias = "str | list[Tree]"


def nested(equation: str) -> tuple[str, Path]:
    """The equation without its parentheses, and the path that they ask for; what is in one group folds from left to right.

    Raises
    ------
    InvalidArgument
        The parentheses do not match, or are somewhere else than around operands.
    """
    left, _, output = equation.partition("->")
    tree, end = _group(left, 0, 0)
    live = list(range(left.count(",") + 1))
    terms: list[str] = []
    path: Path = []
    if end != len(left) or {"(", ")"} & {*output}:
        raise _fault(f"{equation!r}: parentheses do not match, or do not enclose operands")

    def number(node: Tree) -> int:
        """Of an operand, or of the product of a group: behind the operands, in the order in which they are made."""
        if isinstance(node, str):
            terms.append(node)
            return len(terms) - 1
        product, *others = node
        made = number(product)
        for other in others:
            second = number(other)
            path.append([live.index(made), live.index(second)])
            live.remove(made)
            live.remove(second)
            made = left.count(",") + len(path)
            live.append(made)
        return made

    number(tree)
    return f"{','.join(terms)}->{output}", path


def _group(text: str, at: int, depth: int) -> tuple[list[Tree], int]:
    """Operands and groups that commas separate, from a position on, and where that ends."""
    if depth > MAX_DEPTH:
        raise _fault(f"parentheses are nested more than {MAX_DEPTH} deep")
    children: list[Tree] = []
    while True:
        if text.startswith("(", at):
            inner, at = _group(text, at + 1, depth + 1)
            if not text.startswith(")", at):
                raise _fault(f"{text!r}: a ( without a )")
            children.append(inner)
            at += 1
        else:
            end = next((i for i in range(at, len(text)) if text[i] in "(),"), len(text))
            children.append(text[at:end])
            at = end
        if not text.startswith(",", at):
            return children, at
        at += 1


# --- ellipsis ---------------------------------------------------------------------------------------------------------


def resolved(equation: str, shapes: Sequence[Sequence[Extent]]) -> tuple[str, list[list[Extent]]]:
    """The equation with labels in place of each ellipsis, and the shapes that the operands must be broadcast to.

    An ellipsis covers the axes that have no label, aligned at the right. Where there is one, axes of extent 1 are as long as
    others of their label; in the output it has the axes of the widest.

    Raises
    ------
    InvalidArgument
        Two ellipses in a term, one in the output without one in an operand or the other way round; or symbols leave open
        whether an axis is broadcast.
    RankMismatch, ShapeMismatch
        Fewer axes than labels; extents of a label that are neither equal nor 1.
    """
    left, _, output = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise _fault(f"{len(terms)} terms for {len(shapes)} operands")
    named = [term.replace("...", "", 1) for term in (*terms, output)]
    if any("." in term for term in named):
        raise _fault(f"{equation!r}: an ellipsis is three dots, once in a term")
    covered = []
    for i, (term, labels, shape) in enumerate(zip(terms, named, shapes, strict=False)):
        if len(labels) > len(shape) or ("..." not in term and len(labels) != len(shape)):
            raise wrong_rank("einsum", i, labels, len(shape))
        covered.append(len(shape) - len(labels))
    given = any("..." in term for term in terms)
    if ("..." in output) > given or (max(covered) and "..." not in output):
        raise _fault(f"{equation!r}: an ellipsis is in an operand and in the output, or in neither")
    fresh = "".join(label for label in ascii_letters if label not in equation)[: max(covered)]
    if len(fresh) < max(covered):
        raise _fault(f"no {max(covered)} letters are left for what the ellipsis covers")
    filled = [
        term.replace("...", fresh[len(fresh) - width :])
        for term, width in zip((*terms, output), (*covered, len(fresh)), strict=True)
    ]
    extents: dict[str, Extent] = {}
    for labels, shape in zip(filled, shapes, strict=False):
        own: dict[str, Extent] = {}
        for label, extent in zip(labels, shape, strict=True):
            if own.setdefault(label, extent) != extent:
                raise ShapeMismatch("einsum", tuple(shape), tuple(shape))
            extents[label] = _broadcast(label, extents.get(label, extent), extent)
    return f"{','.join(filled[:-1])}->{filled[-1]}", [[extents[label] for label in term] for term in filled[:-1]]


def _broadcast(label: str, a: Extent, b: Extent) -> Extent:
    if a == b:
        return a
    if not (isinstance(a, int) and isinstance(b, int)):
        raise _fault(f"label {label!r}: symbols leave open whether {a} and {b} are equal or one of them is 1")
    if 1 not in (a, b):
        raise ShapeMismatch("einsum", (a,), (b,))
    return b if a == 1 else a
