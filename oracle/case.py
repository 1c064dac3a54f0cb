"""A case: one program with one set of inputs, the unit that is generated, checked, reduced and reported."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphProgram, dumps
from tenferro_ref.tensor import Array, column_major


@dataclass(frozen=True, eq=False)
class Case:
    """A program and the values of its inputs (column-major, in program input order)."""

    program: GraphProgram
    inputs: tuple[Array, ...]

    @classmethod
    def of(cls, program: GraphProgram, inputs: Sequence[Array]) -> Case:
        return cls(program, tuple(column_major(a) for a in inputs))

    def with_inputs(self, inputs: tuple[Array, ...]) -> Case:
        """Another input set of the same program object, whose text is not written again."""
        case = Case(self.program, inputs)
        case.__dict__.update(program_json=self.program_json, _digest=self._digest)
        return case

    @cached_property
    def program_json(self) -> str:
        """The program in its JSON form."""
        return dumps(self.program)

    @cached_property
    def _digest(self) -> hashlib._Hash:
        """Of the program, which all its input sets begin with."""
        return hashlib.sha256(self.program_json.encode())

    @cached_property
    def fingerprint(self) -> str:
        """64 hex digits that identify program and input bits."""
        digest = self._digest.copy()
        for array in self.inputs:
            digest.update(f"{DType.of(array).value}{array.shape}".encode())
            digest.update(array.tobytes("F"))
        return digest.hexdigest()

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Concrete input shapes."""
        return tuple(a.shape for a in self.inputs)


def by_program(cases: Sequence[Case]) -> list[list[int]]:
    """The places of cases that are input sets of one program: those with the same program object and shapes."""
    groups: dict[tuple[int, object], list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault((id(case.program), case.shapes), []).append(i)
    return list(groups.values())


def live(program: GraphProgram) -> GraphProgram:
    """`program` without the instructions that no output depends on."""
    needed, kept = set(program.output_slots), []
    for ins in reversed(program.instructions):
        if not needed.isdisjoint(ins.output_slots):
            needed.update(ins.input_slots)
            kept.append(ins)
    return program if len(kept) == len(program.instructions) else replace(program, instructions=tuple(reversed(kept)))
