"""The einsum family: metadata rule, contraction path, runtime, standard ops (SEMANTICS 6).

The equation is explicit ("ij,jk->ik"): each character is a label, none an ellipsis (`equations` has other ways to write one). A label that repeats in one operand takes its
diagonal, one that repeats in the output puts the result on a diagonal of zeros; labels that are not in the output are
summed, and a sum over no element is 0. The result's dtype is the fold of promotion. Natively it is computed by NumPy by
way of opt_einsum, along the same path as by standard ops: the one that the op asks for, else opt_einsum's choice. An op with
another path is another op (SEMANTICS C.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from opt_einsum import contract
from opt_einsum.paths import auto

from tenferro_ref import ops
from tenferro_ref.dims import Extent, InputDim, equal_extents, is_exact
from tenferro_ref.dtype import INEXACT, NUMERIC, DType, promote
from tenferro_ref.errors import ShapeMismatch, UsageError
from tenferro_ref.extensions.equations import Labels, explicit, lettered, nested, resolved, wrong_rank
from tenferro_ref.extensions.family import Family, check_count, check_dtype, read_config, register, reject
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.program.slicing import as_integers
from tenferro_ref.tensor import Array

FAMILY = "tenferro-einsum.einsum.v1"

#: As many as NumPy has letters for.
MAX_LABELS = len(ascii_letters)

E = TypeVar("E", bound=Extent)
#: Which operands are multiplied first, as `einsum` has it.
Path: TypeAlias = Literal["auto", "left"] | Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Equation:
    """A parsed equation: labels of each operand, and of the output, and the contraction path if one is asked for."""

    inputs: tuple[str, ...]
    output: str
    path: tuple[tuple[int, ...], ...] = ()

    @property
    def summed(self) -> frozenset[str]:
        """Labels that are not in the output."""
        return frozenset("".join(self.inputs)) - frozenset(self.output)

    @property
    def kept(self) -> str:
        """The output's labels without repetition, in the order in which they first occur."""
        return "".join(dict.fromkeys(self.output))

    def reduced(self, operand: int) -> str:
        """Labels of an operand once its diagonals are taken and what no other operand and not the output has is summed.

        Both the native runtime and the standard ops begin with that, so that they add the same terms in the same steps.
        """
        others = {*self.output, *"".join(labels for i, labels in enumerate(self.inputs) if i != operand)}
        return "".join(label for label in dict.fromkeys(self.inputs[operand]) if label in others)


def parse(op: ops.Extension) -> Equation:
    """The equation of an op of this family, its labels named in the order in which they first occur.

    Names mean nothing, but NumPy sums in an order that follows from them, and takes no others than letters of ASCII.

    Raises
    ------
    InvalidArgument
        No explicit equation, a parenthesis or an ellipsis for a label, an output label that no operand has, more than
        `MAX_LABELS` labels, or a path that does not end with one operand.
    """
    config = read_config(op, {"equation": "", "path": []})
    text = "".join(config["equation"].split())
    left, arrow, output = text.partition("->")
    if not arrow or ">" in output:
        reject(op, f"{text!r} is not of the form 'ij,jk->ik'", "equation")
    inputs = tuple(left.split(","))
    path = _steps(op, config["path"], len(inputs)) if config["path"] else ()
    labels = dict.fromkeys("".join((*inputs, output)))
    for label in sorted(labels):
        if label in ",->().":
            what = "an ellipsis is not supported" if label == "." else f"{label!r} is no label"
            reject(op, what, "equation")
    for label in output:
        if all(label not in part for part in inputs):
            reject(op, f"output label {label!r} is in no operand", "equation")
    if len(labels) > MAX_LABELS:
        reject(op, f"{len(labels)} labels; at most {MAX_LABELS} are supported", "equation")
    named = str.maketrans(dict(zip(labels, ascii_letters, strict=False)))
    return Equation(tuple(part.translate(named) for part in inputs), output.translate(named), path)


def _steps(op: ops.Extension, steps: list[Any], operands: int) -> tuple[tuple[int, ...], ...]:
    """A path as it is in the configuration: pairs of positions in the shrinking list, whose product goes to its end."""
    if len(steps) != operands - 1:
        reject(op, f"{len(steps)} steps for {operands} operands, which take {operands - 1}", "path")
    for i, step in enumerate(steps):
        live = range(operands - i)
        pair = isinstance(step, list) and len(step) == 2 and all(type(position) is int for position in step)
        if not pair or step[0] == step[1] or step[0] not in live or step[1] not in live:
            reject(op, f"step {i} is {step}, not two of {len(live)} positions", "path")
    return tuple(tuple(step) for step in steps)


def path_of_adjoint(path: Sequence[Sequence[int]], place: int) -> list[list[int]]:
    """The path of what is handed back to the operand at `place`, of the cotangent and then the other operands.

    It goes back from the last product to the operand: the cotangent is multiplied with the other factor of each product on the
    way, and each of these factors is computed along the path that is given.
    """
    live: list[Any] = list(range(len(path) + 1))
    for a, b in path:
        node = (live[a], live[b])
        live = [*(n for i, n in enumerate(live) if i not in (a, b)), node]
    (node,) = live
    beside = []
    while isinstance(node, tuple):
        own, other = node if place in _leaves(node[0]) else node[::-1]
        beside.append(other)
        node = own
    live, steps = ["cotangent", *(i for i in range(len(path) + 1) if i != place)], []

    def product(first: Any, second: Any) -> Any:
        pair = [live.index(first), live.index(second)]
        steps.append(pair)
        live[:] = [*(n for i, n in enumerate(live) if i not in pair), (first, second)]
        return live[-1]

    def made(node: Any) -> Any:
        return product(made(node[0]), made(node[1])) if isinstance(node, tuple) else node

    cotangent: Any = "cotangent"
    for other in beside:
        cotangent = product(cotangent, made(other))
    return steps


def _leaves(node: Any) -> set[int]:
    return _leaves(node[0]) | _leaves(node[1]) if isinstance(node, tuple) else {node}


def extents(op: ops.Extension, equation: Equation, shapes: Sequence[Sequence[E]]) -> dict[str, E]:
    """Extent of each label; where operands differ in what is known of it, the most exact.

    Raises
    ------
    RankMismatch
        An operand has another number of axes than labels.
    ShapeMismatch
        A label stands for two extents: none is broadcast.
    """
    found: dict[str, E] = {}
    first: dict[str, Sequence[E]] = {}
    for i, (labels, shape) in enumerate(zip(equation.inputs, shapes, strict=True)):
        if len(labels) != len(shape):
            raise wrong_rank(op.op, i, labels, len(shape))
        for label, extent in zip(labels, shape, strict=True):
            known = found.setdefault(label, extent)
            if equal_extents(known, extent) is False:
                raise ShapeMismatch(op=op.op, lhs=tuple(first[label]), rhs=tuple(shape))
            first.setdefault(label, shape)
            if isinstance(extent, int) or (is_exact(extent) and not is_exact(known)):
                found[label] = extent
    return found


def _infer(op: ops.Extension, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Type of the one result.

    Raises
    ------
    InvalidArgument, RankMismatch, ShapeMismatch
        As `parse` and `extents`.
    Unsupported
        All operands are Bool.
    """
    equation = parse(op)
    check_count(op, inputs, len(equation.inputs))
    dtype = promote(t.dtype for t in inputs)
    check_dtype(op, dtype, NUMERIC)
    sizes = extents(op, equation, [t.shape for t in inputs])
    return (TensorType(dtype, tuple(sizes[label] for label in equation.output)),)


def _require_equal(op: ops.Extension, inputs: tuple[TensorType, ...]) -> Iterator[tuple[Extent, Extent]]:
    """The extents of equal labels: that of each further one with that of the first."""
    first: dict[str, Extent] = {}
    for labels, type_ in zip(parse(op).inputs, inputs, strict=True):
        for label, extent in zip(labels, type_.shape, strict=True):
            yield first.setdefault(label, extent), extent


def path(equation: Equation, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Which operands to take out at each step, their product going to the end: as asked for, else opt_einsum's choice."""
    if equation.path:
        return equation.path
    if len(shapes) <= 2:
        return (tuple(range(len(shapes))),)
    # numbers for labels: a set of strings has another order in every process, and with it another path among equals
    number = {label: i for i, label in enumerate(dict.fromkeys("".join(equation.inputs)))}
    sizes = {
        number[a]: n
        for labels, shape in zip(equation.inputs, shapes, strict=True)
        for a, n in zip(labels, shape, strict=True)
    }
    operands = [frozenset(number[a] for a in equation.reduced(i)) for i in range(len(shapes))]
    steps = auto(operands, frozenset(number[a] for a in equation.output), sizes)
    return tuple(tuple(step) for step in steps)


def _execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The contraction of all inputs."""
    equation = parse(op)
    dtype = promote(DType.of(x) for x in inputs).numpy
    # copies: NumPy multiplies two operands that are one buffer by another routine, with other roundings
    operands = [np.array(x, dtype, order="F") for x in inputs]
    shapes = tuple(x.shape for x in operands)
    sizes = extents(op, equation, shapes)
    if any(sizes[label] == 0 for label in equation.summed):
        return [np.zeros([sizes[label] for label in equation.output], dtype, order="F")]
    reduced = [equation.reduced(i) for i in range(len(operands))]
    with np.errstate(all="ignore"):
        terms = [
            x if labels == kept else contract(f"{labels}->{kept}", x)
            for x, labels, kept in zip(operands, equation.inputs, reduced, strict=True)
        ]
        text = f"{','.join(reduced)}->{equation.kept}"
        result = np.asarray(contract(text, *terms, optimize=list(path(equation, shapes))))
    return [result if equation.kept == equation.output else _on_diagonal(result, equation.output, equation.kept)]


def _on_diagonal(x: Array, labels: str, kept: str) -> Array:
    """Zeros with axes `labels`, and `x` with axes `kept` where the indices of equal labels agree."""
    result = np.zeros([x.shape[kept.index(label)] for label in labels], x.dtype, order="F")
    index = np.ix_(*(np.arange(n) for n in x.shape))
    result[tuple(index[kept.index(label)] for label in labels)] = x
    return result


# --- standard ops -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """A value and the labels of its axes."""

    value: Value
    labels: str

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.labels, self.value.type.static_shape, strict=True))

    def axes(self, labels: str) -> tuple[int, ...]:
        return tuple(map(self.labels.index, labels))


def lower(op: ops.Extension, *operands: Value) -> tuple[Value, ...]:
    """Append what computes the same from standard ops; all extents must be integers (SEMANTICS 6 has the recipe)."""
    equation = parse(op)
    inputs, dtype = equation.inputs, promote(v.dtype for v in operands)
    values = [v.astype(dtype) for v in operands]
    shapes = tuple(v.type.static_shape for v in values)
    sizes = extents(op, equation, shapes)
    if any(sizes[label] == 0 for label in equation.summed):
        zero = values[0].builder.constant(0, dtype)
        shape = tuple(sizes[label] for label in equation.output)
        return (zero.builder.apply(ops.BroadcastInDim(shape, ()), zero) if shape else zero,)
    terms = [_reduced(v, labels, equation.reduced(i)) for i, (v, labels) in enumerate(zip(values, inputs, strict=True))]
    for step in path(equation, shapes):
        product, *rest = [terms[i] for i in step]
        terms = [term for i, term in enumerate(terms) if i not in step]
        for i, term in enumerate(rest, 1):
            needed = {*equation.output, *"".join(t.labels for t in (*terms, *rest[i:]))}
            product = _product(product, term, needed)
        terms.append(product)
    (term,) = terms
    return (_arranged(term, equation.output),)


def _reduced(value: Value, labels: str, needed: str) -> _Term:
    """Each repeated label reduced to one axis, then the sum over the labels that are not in `needed`."""
    for axis in range(len(labels) - 1, 0, -1):
        first = labels.index(labels[axis])
        if first < axis:
            value = value.builder.apply(ops.ExtractDiag(first, axis), value)
            labels = labels[:axis] + labels[axis + 1 :]
    return _summed(_Term(value, labels), {*needed})


def _summed(term: _Term, needed: set[str]) -> _Term:
    axes = tuple(i for i, label in enumerate(term.labels) if label not in needed)
    if not axes:
        return term
    total = term.value.builder.apply(ops.ReduceSum(axes), term.value)
    return _Term(total, "".join(label for label in term.labels if label in needed))


def _product(a: _Term, b: _Term, needed: set[str]) -> _Term:
    """Product of two terms, summed over the shared labels that are not in `needed`."""
    builder = a.value.builder
    shared = [label for label in a.labels if label in b.labels]
    contracted = "".join(label for label in shared if label not in needed)
    if contracted and a.value.dtype in INEXACT:
        batch = "".join(label for label in shared if label in needed)
        op = ops.DotGeneral(a.axes(contracted), b.axes(contracted), a.axes(batch), b.axes(batch))
        free = "".join(label for label in a.labels + b.labels if label not in shared)
        return _Term(builder.apply(op, a.value, b.value), free + batch)
    # DotGeneral takes no integers; theirs is the same sum, exact in every order
    labels = "".join(dict.fromkeys(a.labels + b.labels))
    sizes = {**a.sizes, **b.sizes}
    shape = tuple(sizes[label] for label in labels)
    wide = [
        t.value
        if t.labels == labels
        else builder.apply(ops.BroadcastInDim(shape, tuple(map(labels.index, t.labels))), t.value)
        for t in (a, b)
    ]
    return _summed(_Term(builder.apply(ops.Multiply(), *wide), labels), needed)


def _arranged(term: _Term, output: str) -> Value:
    """Axes in the order of `output`, repeated labels on a diagonal."""
    value = term.value
    perm = term.axes("".join(dict.fromkeys(output)))
    if perm != tuple(range(len(perm))):
        value = value.transpose(perm)
    for axis, label in enumerate(output):
        first = output.index(label)
        if first < axis:
            value = value.builder.apply(ops.EmbedDiag(first, axis), value)
    return value


EINSUM = register(Family(FAMILY, ("einsum",), _infer, _execute, lower, _require_equal))


# --- front end --------------------------------------------------------------------------------------------------------


def einsum(equation: str | Labels, *operands: Value, path: Path = "auto") -> Value:
    """Einstein summation over labelled axes; without "->" the output has the labels that occur once, in order.

    Parameters
    ----------
    equation
        Such as "ij,jk->ik"; "...ij,...jk->...ik", whose further axes broadcast; "(ij,jk),kl->il", which says what is
        multiplied first; or integer labels, `([[0, 1], [1, 2]], [0, 2])`.
    path
        "auto" for opt_einsum's choice, "left" for operands as they come, or the positions of two operands at each step, in the
        shrinking list whose end their product goes to.

    Raises
    ------
    InvalidArgument, RankMismatch, ShapeMismatch, Unsupported
        As the rule of the op, `equations.nested` and `equations.resolved`.
    """
    for i, operand in enumerate(operands):
        if not isinstance(operand, Value):
            raise UsageError(detail=f"{type(operand).__name__} where a Value is needed: operand {i} of einsum")
    text = explicit(equation if isinstance(equation, str) else lettered(equation))
    steps = _given(path, len(operands))
    op = ops.Extension.of(FAMILY, "einsum", {"equation": text, **({"path": steps} if steps else {})})
    if not operands:
        reject(op, "einsum takes at least one operand", "operands")
    if path != "auto":
        _steps(op, steps, len(operands))
    if "(" in text or ")" in text:
        if steps or "." in text:
            reject(op, "parentheses go with neither a path nor an ellipsis", "equation")
        text, steps = nested(text)
    elif "..." in text:
        text, shapes = resolved(text, [v.shape for v in operands])
        operands = tuple(_spread(v, shape) for v, shape in zip(operands, shapes, strict=True))
    op = ops.Extension.of(FAMILY, "einsum", {"equation": text, **({"path": steps} if steps else {})})
    return operands[0].builder.apply(op, *operands)


def _given(path: object, operands: int) -> list[list[int]]:
    """The steps of a path in each of the ways to say one."""
    if isinstance(path, str) and path in ("auto", "left"):
        return [] if path == "auto" else [[0, 1]] * (operands - 1)
    if not isinstance(path, Sequence) or isinstance(path, str):
        raise UsageError(detail=f"{path!r} where a path is needed: 'auto', 'left', or two positions a step")
    return [list(as_integers(step, "a step of the path")) for step in path]


def _spread(value: Value, shape: Sequence[Extent]) -> Value:
    """`value` broadcast along the axes where `shape` has another extent."""
    if tuple(shape) == tuple(value.shape):
        return value
    extents = tuple(e if isinstance(e, int) else InputDim(0, axis) for axis, e in enumerate(shape))
    return value.builder.apply(ops.BroadcastInDim(extents, tuple(range(value.ndim))), value)
