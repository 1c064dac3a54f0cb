"""The case of a finding as StableHLO."""

from __future__ import annotations

from oracle.case import Case
from tenferro_ref.errors import TenferroError
from tenferro_ref.escape import line
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo


def module_text(case: Case) -> str:
    """StableHLO of a case, or a comment that says why there is none."""
    try:
        return lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
    except TenferroError as error:
        return f"// cannot be lowered: {line(str(error))}\n"
