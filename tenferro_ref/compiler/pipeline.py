"""`compile_std_to_exec`: from a traced program to the execution IR, through a choice of passes.

The passes are in the sibling modules; `PASSES` names them, `DEFAULT_PIPELINE` is the default choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ref.compiler.conj_sinking import conj_sinking
from tenferro_ref.compiler.dead_code_elimination import dead_code_elimination
from tenferro_ref.compiler.dot_conj_folding import dot_conj_folding
from tenferro_ref.compiler.dot_decomposer import dot_decomposer
from tenferro_ref.compiler.dot_dimension_sorter import dot_dimension_sorter
from tenferro_ref.compiler.layout_simplifier import layout_simplifier
from tenferro_ref.compiler.rewrite import Pass, PassResult
from tenferro_ref.compiler.transpose_folding import transpose_folding
from tenferro_ref.errors import UsageError, defects_in
from tenferro_ref.program import ExecProgram, GraphProgram, Program, to_exec
from tenferro_ref.suggest import did_you_mean

PASSES: dict[str, Pass] = {
    "ConjSinking": conj_sinking,
    "DotDimensionSorter": dot_dimension_sorter,
    "AlgebraicLayoutSimplifier": layout_simplifier,
    "TransposeFolding": transpose_folding,
    "DotConjFolding": dot_conj_folding,
    "DotDecomposer": dot_decomposer,
    "DeadCodeElimination": dead_code_elimination,
}


def pipeline(*, algebraic_layout_simplifier: bool = True, dot_decomposer: bool = False) -> tuple[str, ...]:
    """The engine's passes in its order, under its two options (SEMANTICS A.2)."""
    simplify = ("AlgebraicLayoutSimplifier",) if algebraic_layout_simplifier else ()
    decompose = ("DotDecomposer", *simplify) if dot_decomposer else ()
    return (
        *("ConjSinking", "DotDimensionSorter", *simplify, "TransposeFolding", "DotConjFolding"),
        *(*decompose, "DeadCodeElimination"),
    )


DEFAULT_PIPELINE: tuple[str, ...] = pipeline()
#: With every pass: contractions come out as batched matrix products.
DECOMPOSED: tuple[str, ...] = pipeline(dot_decomposer=True)


def run_passes(program: ExecProgram, names: Sequence[str], *, verify: bool = False) -> list[PassResult]:
    """Run passes one after the other; one result a name, each on the program of the one before.

    Parameters
    ----------
    verify
        Check every invariant of the program after each pass.

    Raises
    ------
    UsageError
        There is no such pass; nothing has run then.
    InvalidCompiledGraph
        With `verify`: a pass broke an invariant.
    Internal
        A pass has a defect.
    """
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise UsageError(detail=f"{names!r} where a list of passes is needed; known passes: {', '.join(PASSES)}")
    for name in names:
        if not isinstance(name, str) or name not in PASSES:
            hint = did_you_mean(str(name), PASSES)
            raise UsageError(detail=f"unknown pass {name!r}; known passes: {', '.join(PASSES)}{hint}")
    results: list[PassResult] = []
    for name in names:
        with defects_in(f"the pass {name}"):
            result = PASSES[name](program)
        program = result.program
        if verify:
            program.verify()
        results.append(result)
    return results


def compile_std_to_exec(
    graph: GraphProgram, passes: Sequence[str] | None = None, *, verify: bool = False
) -> ExecProgram:
    """Compile a traced program for execution (SEMANTICS 4).

    Parameters
    ----------
    passes
        Names from `PASSES`, run in this order; None for the default pipeline, () for none.
    verify
        Check every invariant before the first and after each pass.

    Raises
    ------
    UsageError
        There is no pass of that name.
    InvalidCompiledGraph, ValidationError
        The graph is malformed, or an instruction breaks its op's rule.
    """
    if not isinstance(graph, Program):
        raise UsageError(detail=f"{type(graph).__name__} where a traced program is needed")
    program = to_exec(graph)
    if verify:
        program.verify()
    results = run_passes(program, DEFAULT_PIPELINE if passes is None else passes, verify=verify)
    return results[-1].program if results else program
