"""Cases of StableHLO modules that are run as they were given: read as programs for their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oracle.case import Case
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo import Loaded, Source
from tenferro_ref.stablehlo.loader import MOST_OPERATIONS
from tenferro_ref.stablehlo.watched import LAPACK
from tenferro_ref.tensor import Array


def case_of(loaded: Loaded, source: Source, arguments: Sequence[Array]) -> Case:
    """The case of a module that has been read for these arguments."""
    return replace(Case.of(loaded.program, loaded.inputs(arguments), source=source), deciding=loaded.deciding)


def given_case(source: Source, arguments: Sequence[Array], reader: Reader, most: int = MOST_OPERATIONS) -> Case:
    """The case of a module of up to `most` operations; one that calls LAPACK's routines has its watched form beside it.

    Raises
    ------
    TenferroError
        The module cannot be read as a program.
    """
    case = case_of(reader.load(source.code, source.where, arguments, most), source, arguments)
    if not any(name.startswith(f"custom_call:{LAPACK}") for name, _ in source.ops):
        return case
    more = reader.watched(source, arguments)
    return replace(case, watched=case_of(reader.load(more.code, source.where, arguments, most), more, arguments))
