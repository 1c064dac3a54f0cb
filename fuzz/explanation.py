"""What explains a finding, as plain data: made by `fuzz.findings.explain`, shown by bundles and reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One element of a value of a reduced program: what it may be, and what the reference computed."""

    value: str
    type: str
    index: str
    enclosure: str
    reference: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A reduced program as a pass of ours, or a compiler, left it; `changes` says in words what was changed."""

    name: str
    changes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SegmentNote:
    """A segment of the compiled program.

    Attributes
    ----------
    kind
        Why it was cut there (`tenferro_ref.runtime.segment.SegmentKind`).
    instructions
        In words: "%2 = Add(%0, %1)".
    fuses
        Whether it is computed block by block where its values are large.
    reclaimed
        Slots whose buffers are given back when it is done.
    """

    kind: str
    instructions: tuple[str, ...]
    fuses: bool
    reclaimed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a reduced finding shows beside program and values.

    Attributes
    ----------
    why, steps
        Why the expected value is right, in words and instruction by instruction.
    model, freedoms
        The executor's arithmetic model, and in words what it permits; empty where no enclosure is involved.
    guilty_lines, guilty_stablehlo
        Numbers, from 0, of the lines of `program_text` and `stablehlo` that hold the guilty instruction.
    snapshots
        The program before and after the passes that change it.
    segments
        How the native executor cuts, fuses and reclaims the compiled program.
    """

    why: str = ""
    steps: tuple[Step, ...] = ()
    model: str = ""
    freedoms: tuple[str, ...] = ()
    guilty_lines: tuple[int, ...] = ()
    guilty_stablehlo: tuple[int, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    segments: tuple[SegmentNote, ...] = ()
