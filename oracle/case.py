"""A case: one program with one set of inputs, the unit that is generated, checked, reduced and reported.

A program may be invalid: then the case says which error it must raise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from typing import TypeVar

from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphProgram, dumps
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array, column_major

#: Elements of many cases that are computed at once: more are no faster, and take memory.
AT_ONCE = 1 << 16

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error that an invalid program must raise (SEMANTICS 2.7); if types show the fault, before anything is compiled.

    Attributes
    ----------
    fault
        Which rule was broken, and where: "axis out of range: Transpose".
    kind, op, axis, argument
        As in `tenferro_ref.errors`; None where the error has no such fact. Parity compares the first three.
    at
        Index of the faulty instruction; None where the graph itself is broken.
    late
        Only values show the fault, so that the error comes when the program runs; an executor that cannot raise it then must
        refuse the program.
    """

    fault: str
    kind: str
    op: str | None = None
    axis: int | None = None
    argument: str | None = None
    at: int | None = None
    late: bool = False

    def __str__(self) -> str:
        return error_words(self.kind, self.op, self.axis)


def error_words(kind: str, op: object, axis: object) -> str:
    """What is compared of two errors, in words: "AxisOutOfBounds of Transpose, axis 5"."""
    return f"{kind}{f' of {op}' if op else ''}{'' if axis is None else f', axis {axis}'}"


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a program was derived from another one (`oracle.derivation`).

    Attributes
    ----------
    primal
        The program that was differentiated; its inputs are the first ones of the derivative.
    transforms
        "jvp" and "vjp", in the order in which they were applied.
    """

    primal: GraphProgram
    transforms: tuple[str, ...]

    def __str__(self) -> str:
        return " of ".join(reversed(self.transforms))


@dataclass(frozen=True, eq=False)
class Case:
    """A program and the values of its inputs (column-major, in program input order).

    Attributes
    ----------
    refusal
        The error that the program must raise, known by construction; None for a valid program.
    source
        The StableHLO module that the program was loaded from. Executors that take StableHLO are given this module, unchanged,
        and not the program; its arguments are the first inputs, the others are arrays in the module.
    deciding
        The program with other outputs: what decided, while the module was read for these inputs, which way it goes. Where
        these are not certain the program says nothing of the module.
    derivation
        What the program is a derivative of, if it was made as one.
    watched
        The case whose module has what goes into and comes out of decompositions as further results, in which it is judged in
        stages (`oracle.staged`); None where the program can have such outputs itself.
    """

    program: GraphProgram
    inputs: tuple[Array, ...]
    refusal: Refusal | None = None
    source: Source | None = None
    deciding: GraphProgram | None = None
    derivation: Derivation | None = None
    watched: Case | None = None

    @classmethod
    def of(
        cls,
        program: GraphProgram,
        inputs: Sequence[Array],
        refusal: Refusal | None = None,
        source: Source | None = None,
        derivation: Derivation | None = None,
    ) -> Case:
        """A case with inputs of any layout."""
        return cls(program, tuple(column_major(a) for a in inputs), refusal, source, derivation=derivation)

    @property
    def arguments(self) -> tuple[Array, ...]:
        """The inputs without those that the module brings along."""
        return self.inputs if self.source is None else self.inputs[: len(self.source.arguments)]

    @property
    def written(self) -> Case:
        """The case without its module: executors get the program, written as StableHLO."""
        return self if self.source is None else replace(self, source=None, watched=None)

    @property
    def primal(self) -> GraphProgram:
        """The program that it is a derivative of; its own if it is none."""
        return self.program if self.derivation is None else self.derivation.primal

    @cached_property
    def program_json(self) -> str:
        """The program in its JSON form."""
        return dumps(self.program)

    @cached_property
    def fingerprint(self) -> str:
        """64 hex digits that identify program and input bits."""
        digest = hashlib.sha256(self.program_json.encode())
        if self.source is not None:
            code = self.source.code
            digest.update(code.encode() if isinstance(code, str) else code)
        for array in self.inputs:
            digest.update(f"{DType.of(array).value.numpy}{array.shape}".encode())
            digest.update(array.tobytes("F"))
        return digest.hexdigest()

    @property
    def unmade(self) -> bool:
        """Whether it stands for a derivative or the reading of a module that this project failed to make (`oracle.unmade`).

        A derivative has seeds as further inputs, and a module that was read has outputs.
        """
        if self.source is not None:
            return bool(self.source.results) and not self.program.output_slots
        return self.derivation is not None and len(self.inputs) == len(self.derivation.primal.input_slots)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Concrete input shapes."""
        return tuple(a.shape for a in self.inputs)


def by_program(cases: Sequence[Case]) -> list[list[int]]:
    """Indices of the cases, grouped by program object and input shapes: each group is the input sets of one program."""
    groups: dict[tuple[int, int, object], list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault((id(case.program), id(case.source), case.shapes), []).append(i)
    return list(groups.values())


def live(program: GraphProgram) -> GraphProgram:
    """`program` without the instructions that no output depends on."""
    needed, kept = set(program.output_slots), []
    for ins in reversed(program.instructions):
        if not needed.isdisjoint(ins.output_slots):
            needed.update(ins.input_slots)
            kept.append(ins)
    return program if len(kept) == len(program.instructions) else replace(program, instructions=tuple(reversed(kept)))


def in_parts(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in their order, cut into parts of about `AT_ONCE` elements."""
    items = list(items)
    ends = accumulate(map(size, items))
    for _, part in groupby(zip(items, ends, strict=True), lambda entry: entry[1] // AT_ONCE):
        yield [item for item, _ in part]
