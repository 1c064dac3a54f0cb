"""What compilers left of generated programs: HLO opcodes by element type, over all executors that tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.records import Survey

#: Element types in HLO's words, in the order of columns; others follow by name.
_ELEMENTS = ("pred", "s32", "s64", "f32", "f64", "c64", "c128", "tuple")


@dataclass(frozen=True, slots=True)
class SurveyRow:
    """One executor: modules looked into, opcodes, opcodes with an element type, and how many of these only once."""

    executor: str
    modules: int
    opcodes: int
    typed: int
    once: int


@dataclass(frozen=True, slots=True)
class OpcodeRow:
    """One opcode: modules by element type (0 for none), and the executors that never left it."""

    opcode: str
    modules: tuple[int, ...]
    never: str


@dataclass(frozen=True, slots=True)
class OpcodeTable:
    """The whole survey."""

    executors: tuple[SurveyRow, ...]
    elements: tuple[str, ...]
    rows: tuple[OpcodeRow, ...]


def opcode_table(surveys: Sequence[Survey]) -> OpcodeTable:
    """One row an executor, and one an opcode, with its kind where it has one: "fusion kLoop", "custom-call TopK"."""
    counts: Counter[tuple[str, str]] = Counter()
    on: dict[str, set[str]] = {}
    executors = []
    for survey in surveys:
        opcodes = set()
        for words, modules in survey.opcodes.items():
            opcode, element = _split(words)
            opcodes.add(opcode)
            counts[opcode, element] += modules
            on.setdefault(opcode, set()).add(survey.executor)
        once = sum(n == 1 for n in survey.opcodes.values())
        executors.append(SurveyRow(survey.executor, survey.modules, len(opcodes), len(survey.opcodes), once))
    found = {element for _, element in counts}
    elements = (*(e for e in _ELEMENTS if e in found), *sorted(found - {*_ELEMENTS}))
    rows = tuple(
        OpcodeRow(
            opcode,
            tuple(counts[opcode, element] for element in elements),
            ", ".join(s.executor for s in surveys if s.executor not in on[opcode]),
        )
        for opcode in sorted(on)
    )
    return OpcodeTable(tuple(executors), elements, rows)


def _split(words: str) -> tuple[str, str]:
    """`("fusion kLoop", "f32")` of "fusion f32 kLoop"."""
    opcode, _, rest = words.partition(" ")
    element, _, detail = rest.partition(" ")
    return f"{opcode} {detail}".strip(), element
