"""Invalid cases: a valid program of any bytes, with one fault (SEMANTICS 2.7: refused before anything is compiled or run)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fuzz.generate.choices import Choices
from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.decode import grow
from fuzz.generate.faults.fault import Fault
from fuzz.generate.faults.table import FAULTS, faults
from oracle.case import Case

#: The most instructions before the faulty one.
LONGEST = 4


def decode_invalid(config: Config, kind: str | None, header: bytes, genes: Sequence[bytes], gene: bytes) -> Case:
    """The invalid case of these bytes, with a fault of any kind of error or of one; the last gene decides about the fault."""
    choices = Choices(gene)
    return decode_fault(config, choices.choose(faults(config, kind)), header, genes, choices)


def decode_fault(config: Config, fault: Fault, header: bytes, genes: Sequence[bytes], choices: Choices) -> Case:
    """The invalid case of these bytes, with the given fault."""
    # symbols and other policies make valid what is a fault here; a decomposition may refuse its matrix first; a fault needs inputs
    config = replace(config, policies=0, symbolic=0, folded=0, linalg=0, motifs=config.motifs and not fault.late)
    g = grow(config, header, genes)
    g.choices, g.output_style = choices, "leaves"  # nothing that a fault may read is left out
    program, refusal, declared = fault.build(g)
    return Case.of(declared(program), g.inputs(program), refusal)


def simplest_of(name: str) -> Case | None:
    """The simplest case with the fault of that name; None if there is no such fault any more."""
    return next((decode_fault(DEFAULT, f, b"", (), Choices(b"")) for f in FAULTS if f.name == name), None)
