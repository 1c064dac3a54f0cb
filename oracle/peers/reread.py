"""Modules of cases, read again as they go the same for all inputs.

A case's program is what its module is read as for the inputs of the case: with known indices, branches that are taken, loops
that are unrolled. Without them the reader goes other ways, which must lead to the same results. What is read then is written as a
module once more, as `tenferro-ref emit` does, and read again.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle.case import Case
from oracle.peers.expressible import emitting
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, defects_in
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.stablehlo.loader import Loaded, load, lower_loaded
from tenferro_ref.stablehlo.serialized import serialize


def reread(cases: Sequence[Case]) -> list[Case]:
    """The input sets of one module, with the program that its bytecode is read as without inputs.

    If that can be written as a module, which has the arrays of the first one as constants, it is the program of that module.

    Raises
    ------
    UnsupportedOp
        Which way it goes depends on its inputs.
    """
    source = cases[0].source
    if source is None:
        raise Internal(detail="a case without a module")
    with defects_in("the reader of StableHLO"):
        loaded = _written_again(load(serialize(source.code, "bytecode", source.where), source.where, evaluate=evaluate))
    return [Case.of(loaded.program, loaded.inputs(case.arguments)) for case in cases]


def _written_again(loaded: Loaded) -> Loaded:
    """What is read of the module that is written of `loaded`; `loaded` itself if it has an op without a form in StableHLO."""
    try:
        with emitting(loaded.program):
            text = lower_loaded(loaded)
    except UnsupportedOp:
        return loaded
    return load(text, evaluate=evaluate)


def rereadable(case: Case) -> bool:
    """Whether `reread` takes the case."""
    if case.source is None:
        return False
    try:
        reread([case])
    except UnsupportedOp:
        return False
    except TenferroError:
        return True  # which it raises again where it is run
    return True
