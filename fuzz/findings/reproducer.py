"""What a bundle says beside its data: a name of the executor that is good elsewhere, and the case as StableHLO."""

from __future__ import annotations

from oracle.case import Case
from oracle.peers import Executor, PjrtExecutor
from tenferro_ref.errors import TenferroError
from tenferro_ref.escape import line
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo


def portable_name(executor: Executor) -> str:
    """A name by which `Pool.make` finds the executor on another machine: a plugin by its package."""
    if isinstance(executor, PjrtExecutor):
        return f"pjrt:{executor.plugin.package or executor.plugin.path}@{executor.lane}"
    return executor.name


def module_text(case: Case) -> str:
    """StableHLO of a case, or a comment that says why there is none."""
    try:
        return lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
    except TenferroError as error:
        return f"// cannot be lowered: {line(str(error))}\n"
