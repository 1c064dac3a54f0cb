"""Reproducers: a script that shows one disagreement with nothing but a plugin and this package."""

from __future__ import annotations

from oracle.case import Case
from oracle.peers import Executor, PjrtExecutor
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import LoweringView, dumps
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array

_CHECK = '''\
"""{title}

Run: python reproduce.py   (needs the package tenferro-ref{needs})
Exit status 1 while the disagreement is there, 0 when it is gone.
"""

import sys

import numpy as np

from oracle.case import {names}
from oracle.peers import NativeExecutor, Pool
from oracle.judge import Reference, judge
from tenferro_ref.program import loads

PROGRAM = r"""{program}"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
{inputs}
]
{refusal}
# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
{module}"""


def main() -> int:
    inputs = [np.frombuffer(bytes.fromhex(data), dtype).reshape(shape, order="F") for dtype, shape, data in INPUTS]
    case = {case}
    pool = Pool()
    try:
        executor = pool.make({executor!r})
        answer = judge(executor, Reference(case, NativeExecutor()))
    finally:
        pool.close()
    print(answer.executor, answer.verdict.value, answer.reason)
    return 1 if answer.verdict.is_disagreement else 0


if __name__ == "__main__":
    sys.exit(main())
'''


def script(executor: Executor, case: Case, title: str) -> str:
    """The script for `case` on `executor`."""
    needs = ""
    if isinstance(executor, PjrtExecutor):
        needs = (
            f" and the plugin: pip install {executor.plugin.package}" if executor.plugin.package else " and the plugin"
        )
    return _CHECK.format(
        title=title,
        needs=needs,
        program=dumps(case.program),
        inputs="\n".join(f"    {_literal(a)}," for a in case.inputs),
        **_made(case),
        module=module_text(case),
        executor=portable_name(executor),
    )


def _made(case: Case) -> dict[str, str]:
    """How the script makes the case; an invalid program comes with the error that it must raise."""
    if case.refusal is None:
        return {"names": "Case", "refusal": "", "case": "Case.of(loads(PROGRAM), inputs)"}
    return {
        "names": "Case, Refusal",
        "refusal": f"\n# the program is invalid, and must raise this\nREFUSAL = {case.refusal!r}\n",
        "case": "Case.of(loads(PROGRAM, infer=False), inputs, REFUSAL)",
    }


def portable_name(executor: Executor) -> str:
    """A name by which `Pool.make` finds the executor on another machine: a plugin by its package."""
    if isinstance(executor, PjrtExecutor):
        return f"pjrt:{executor.plugin.package or executor.plugin.path}@{executor.lane}"
    return executor.name


def _literal(array: Array) -> str:
    return repr((DType.of(array).value, array.shape, array.tobytes("F").hex()))


def module_text(case: Case) -> str:
    """StableHLO of a case, or a comment that says why there is none."""
    try:
        return lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
    except TenferroError as error:
        return f"// cannot be lowered: {error}\n"
