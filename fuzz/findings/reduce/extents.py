"""Steps that make tensors smaller: shorter axes, fewer axes, smaller numbers in attributes.

An extent is changed wherever it occurs: axes that must agree form a class (`links`), and extents that depend on them in
another way (the result of a Pad, the other side of a Reshape) follow by inference, repeated until everything fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from fuzz.findings.reduce.draft import Draft, Input, concrete_types
from fuzz.findings.reduce.links import FOLLOW, LINKS, RESULT, Shape
from fuzz.findings.reduce.rank import without_axes
from fuzz.findings.reduce.search import Search
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import expr_of
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import Instruction
from tenferro_ref.tensor import column_major, type_of

#: (slot, axis).
Axis: TypeAlias = tuple[int, int]
#: How often the extents that depend on others are inferred again before a change is given up.
_ROUNDS = 24


@dataclass(frozen=True, slots=True)
class Classes:
    """The axes of a case by class; a class is named by its least axis."""

    shapes: dict[int, Shape]
    root: dict[Axis, Axis]

    @classmethod
    def of(cls, case: Case) -> Classes:
        shapes = {slot: type_.static_shape for slot, type_ in concrete_types(case).items()}
        root: dict[Axis, Axis] = {(s, axis): (s, axis) for s, shape in shapes.items() for axis in range(len(shape))}

        def find(axis: Axis) -> Axis:
            while root[axis] != axis:
                axis = root[axis]
            return axis

        for ins in case.program.instructions:
            if type(ins.op) in LINKS:
                operands = [shapes[s] for s in ins.input_slots]
                for ends in LINKS[type(ins.op)](ins.op, operands, shapes[ins.output_slots[0]]):
                    a, b = (
                        find((ins.output_slots[0] if n == RESULT else ins.input_slots[n], axis)) for n, axis in ends
                    )
                    root[max(a, b)] = min(a, b)
        for axis in root:
            root[axis] = find(axis)
        return cls(shapes, root)

    def extents(self) -> dict[Axis, int]:
        """Extent of each class."""
        return {root: self.shapes[root[0]][root[1]] for root in self.root.values()}

    def shape(self, slot: int, extents: Mapping[Axis, int]) -> Shape:
        """Shape of a slot for such extents of the classes."""
        return tuple(extents[self.root[slot, axis]] for axis in range(len(self.shapes[slot])))


def resized(
    case: Case,
    change: Mapping[Axis, int],
    *,
    tail: bool = False,
    at: Mapping[Axis, int] | None = None,
    changed_ops: Mapping[int, Op] | None = None,
) -> Draft | None:
    """The case with other extents for some classes, and other ops for some instructions; None if it does not fit.

    Inputs keep their leading elements, with `tail` their trailing ones, in classes of `at` those from that index on.
    """
    classes = Classes.of(case)
    extents = {**classes.extents(), **change}
    try:
        for _ in range(_ROUNDS):
            instructions = _propagate(case, classes, extents, changed_ops or {})
            if instructions is not None:
                return _with_extents(case, classes, extents, instructions, tail, at or {})
    except TenferroError:
        return None
    return None


def _propagate(
    case: Case, classes: Classes, extents: dict[Axis, int], changed_ops: Mapping[int, Op]
) -> list[Instruction] | None:
    """The instructions at the given extents; None if a rule infers another extent, which is put into `extents`."""
    types = {
        slot: TensorType(t.dtype, classes.shape(slot, extents))
        for slot, t in zip(case.program.input_slots, map(type_of, case.inputs), strict=True)
    }
    instructions: list[Instruction] = []
    for i, ins in enumerate(case.program.instructions):
        op = changed_ops.get(i, ins.op)
        operands = tuple(types[s] for s in ins.input_slots)
        if i not in changed_ops and type(op) in FOLLOW:
            before = [classes.shapes[s] for s in ins.input_slots]
            wanted = classes.shape(ins.output_slots[0], extents)
            op = FOLLOW[type(op)](op, before, [t.static_shape for t in operands], wanted)
        revised = False
        for slot, type_ in zip(ins.output_slots, op.result_types(operands, case.program.policy), strict=True):
            shape = type_.with_shape(map(expr_of, type_.shape)).static_shape
            types[slot] = TensorType(type_.dtype, shape)
            for axis, extent in enumerate(shape):
                revised |= extents[classes.root[slot, axis]] != extent
                extents[classes.root[slot, axis]] = extent
        if revised:
            return None
        instructions.append(replace(ins, op=op))
    return instructions


def _with_extents(
    case: Case,
    classes: Classes,
    extents: Mapping[Axis, int],
    instructions: list[Instruction],
    tail: bool,
    at: Mapping[Axis, int],
) -> Draft | None:
    draft = Draft.of(case)
    draft.instructions = instructions
    for slot, (declared, array) in draft.inputs.items():
        new, old = classes.shape(slot, extents), classes.shapes[slot]
        if any(n > o for n, o in zip(new, old, strict=True)):
            return None
        # an input may end before that index: the other side of a Pad, for example
        first = (
            min(at.get(classes.root[slot, axis], o - n if tail else 0), o - n)
            for axis, (n, o) in enumerate(zip(new, old, strict=True))
        )
        window = tuple(slice(start, start + n) for start, n in zip(first, new, strict=True))
        shape = (n if isinstance(e, int) else e for e, n in zip(declared.shape, new, strict=True))
        draft.inputs[slot] = Input(declared.with_shape(shape), column_major(array[window]))
    return draft


def narrowed(case: Case, slot: int, index: Sequence[int]) -> Case | None:
    """The case with only the element at `index` left of `slot`, and of the values whose axes are linked to it; None if it does not fit."""
    classes = Classes.of(case)
    shape = classes.shapes[slot]
    if len(index) != len(shape) or all(extent == 1 for extent in shape):
        return None
    place = {classes.root[slot, axis]: i for axis, i in enumerate(index)}
    draft = resized(case, dict.fromkeys(place, 1), at=place)
    return draft.build() if draft else None


def shrink_extents(search: Search) -> None:
    """Everything to 1 or 2, then all extents of one value, then one class after the other."""
    _shrink(search, lambda extents: [sorted(extents)])
    _shrink(search, _by_value)
    _shrink(search, lambda extents: [[root] for root in sorted(extents, key=lambda r: (-extents[r], r))])


def _by_value(extents: Mapping[Axis, int]) -> list[list[Axis]]:
    values = sorted(set(extents.values()), reverse=True)
    return [[root for root in sorted(extents) if extents[root] == value] for value in values]


def _shrink(search: Search, groups: Callable[[Mapping[Axis, int]], list[list[Axis]]]) -> None:
    k = 0
    while k < len(chosen := groups(Classes.of(search.case).extents())):
        if not any(search.attempt(draft, "shorter axes") for draft in _shorter(search.case, chosen[k])):
            k += 1


def _shorter(case: Case, group: Sequence[Axis]) -> Iterator[Draft | None]:
    """The group's axes at most 1, at most 2, half as long, the longest shorter by one. No axis becomes empty."""
    extents = {root: extent for root, extent in Classes.of(case).extents().items() if root in group}
    longest = max(extents.values(), default=0)
    for new in (
        {root: min(e, 1) for root, e in extents.items()},
        {root: min(e, 2) for root, e in extents.items()},
        {root: e - e // 2 for root, e in extents.items()},
        {root: e - (e == longest > 1) for root, e in extents.items()},
    ):
        if new != extents:
            yield resized(case, new)
            yield resized(case, new, tail=True)


def drop_unit_axes(search: Search) -> None:
    """Drop all axes of extent 1 at once, else one class after the other."""
    search.attempt(_without(search.case, _units(search.case)), "drop the unit axes")
    k = 0
    while k < len(units := _units(search.case)):
        if not search.attempt(_without(search.case, [units[k]]), "drop a unit axis"):
            k += 1


def _units(case: Case) -> list[Axis]:
    return [root for root, extent in Classes.of(case).extents().items() if extent == 1]


def _without(case: Case, units: Sequence[Axis]) -> Draft | None:
    classes = Classes.of(case)
    gone = {
        slot: {a for a in range(len(shape)) if classes.root[slot, a] in units} for slot, shape in classes.shapes.items()
    }
    return without_axes(case, gone)


def simplify_attributes(search: Search) -> None:
    """Smaller paddings, offsets and strides; fewer reversed axes."""
    i = 0
    while i < len(search.case.program.instructions):
        case = search.case
        drafts = (resized(case, {}, changed_ops={i: op}) for op in _simpler(case.program.instructions[i].op))
        if not any(search.attempt(draft, "simpler attributes") for draft in drafts):
            i += 1


def _simpler(op: Op) -> Iterator[Op]:
    if isinstance(op, ops.Pad):
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding"):
            amounts = getattr(op, name)
            for axis, amount in enumerate(amounts):
                for less in dict.fromkeys((0, (amount > 0) - (amount < 0))):
                    if abs(less) < abs(amount):
                        yield replace(op, **{name: (*amounts[:axis], less, *amounts[axis + 1 :])})
    elif isinstance(op, ops.Slice):
        sizes = [
            -((start - limit) // stride) for start, limit, stride in zip(op.starts, op.limits, op.strides, strict=True)
        ]
        for axis, size in enumerate(sizes):
            for start, stride in ((0, 1), (0, op.strides[axis]), (op.starts[axis], 1)):
                limit = start + (size - 1) * stride + 1 if size else start
                new = ((*old[:axis], v, *old[axis + 1 :]) for old, v in
                       ((op.starts, start), (op.limits, limit), (op.strides, stride)))  # fmt: skip
                yield ops.Slice(*new)
    elif isinstance(op, ops.Reverse):
        yield from (ops.Reverse(op.axes[:k] + op.axes[k + 1 :]) for k in range(len(op.axes)))
    elif isinstance(op, ops.Tril | ops.Triu) and op.k:
        yield replace(op, k=0)
