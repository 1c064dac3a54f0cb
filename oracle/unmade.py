"""Cases that could not be made: a derivative whose rule has a defect, a valid module that the reader refuses.

Such a case stands for its making, which is done again where it is judged: a defect of this project is found, reduced and reported
as one of anybody else's is, and ends no campaign.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle.case import Case
from oracle.derivation import derive, rules_applied
from tenferro_ref.autodiff.errors import UnsupportedAdRule, UnsupportedMetadata
from tenferro_ref.errors import TenferroError, defects_in
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder
from tenferro_ref.stablehlo import Loaded, Source
from tenferro_ref.stablehlo.loader import load
from tenferro_ref.tensor import Array


def unread(source: Source, arguments: Sequence[Array]) -> Case:
    """The case of a module that could not be read: its program has the arguments and nothing else."""
    builder = GraphBuilder("unread", STABLEHLO)
    for type_ in source.arguments:
        builder.typed_input(type_)
    return Case.of(builder.build(), arguments, source=source)


def read(source: Source, arguments: Sequence[Array]) -> Loaded:
    """The program of a module of this project's own making, read for these arguments in this process.

    Raises
    ------
    TenferroError
        As `stablehlo.load`.
    """
    with defects_in("the reader of StableHLO"):
        return load(source.code, source.where, evaluate=evaluate, inputs=arguments)


def why(case: Case) -> TenferroError | None:
    """The error that keeps a case from being made; None if there is none any more."""
    try:
        if case.source is not None:
            read(case.source, case.arguments)
        elif case.derivation is not None:
            with rules_applied(case.derivation.primal):
                derive(case.derivation.primal, case.derivation.transforms)
    except (UnsupportedAdRule, UnsupportedMetadata):  # an answer, and no defect
        return None
    except TenferroError as error:
        return error
    return None
