"""The native executor and its variants: unsegmented, without passes or one of them, fusing tensors of any size."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oracle.case import Case
from oracle.executors.base import Execution, attempt
from oracle.verdict import ExecutorInfo
from tenferro_ref import __version__
from tenferro_ref.compiler import DEFAULT_PIPELINE, compile_std_to_exec, run_passes
from tenferro_ref.errors import Internal, TenferroError
from tenferro_ref.program import to_exec
from tenferro_ref.runtime import GraphExecutor

#: What NumPy raises where a kernel or the executor has a defect.
_DEFECTS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class NativeExecutor:
    """This package's own executor.

    Attributes
    ----------
    passes
        Names of the optimiser passes, in order.
    segmented
        Through segments (`eval_exec_ir`), else one instruction at a time.
    """

    name: str = "native"
    passes: tuple[str, ...] = DEFAULT_PIPELINE
    segmented: bool = True
    fusion_threshold: int = 16384
    model: str = "numpy"

    def open(self) -> None:
        """Nothing is needed."""

    def info(self) -> ExecutorInfo:
        facts = (
            ("tenferro-ref", __version__),
            ("passes", ", ".join(self.passes) or "none"),
            ("execution", "segmented" if self.segmented else "unsegmented"),
            ("NumPy", np.__version__),
            ("Python", platform.python_version()),
        )
        return ExecutorInfo(self.name, available=True, facts=facts)

    def run(self, case: Case) -> Execution:
        start = time.perf_counter()
        program = compile_std_to_exec(case.program, self.passes)
        compiled = time.perf_counter()
        executor = GraphExecutor(checking=True, fusion_threshold=self.fusion_threshold)
        evaluate = executor.eval_exec_ir if self.segmented else executor.eval_unsegmented
        try:
            outputs = evaluate(program, case.inputs)
        except _DEFECTS as error:  # a finding about this executor, and no end of the campaign
            raise Internal(detail=f"{type(error).__name__} in the native executor: {error}") from error
        seconds = {"compile": compiled - start, "execute": time.perf_counter() - compiled}
        return Execution(tuple(outputs), seconds)

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [attempt(self, case) for case in cases]

    def bit_exact(self, case: Case) -> bool:
        """Bits are kept unless a pass that ran in one of the two pipelines reassociates a contraction."""
        if self.passes == DEFAULT_PIPELINE:
            return True
        pipelines = (run_passes(to_exec(case.program), names) for names in (self.passes, DEFAULT_PIPELINE))
        return not any(result.reassociates for results in pipelines for result in results)

    def close(self) -> None:
        """Nothing is held."""


def native_variants() -> tuple[NativeExecutor, ...]:
    """Every native executor by name.

    `native`; `native-unsegmented`; `native-nopasses`; `native-fused`, which fuses tensors of any size;
    `native-without:PASS`.
    """
    return (
        NativeExecutor(),
        NativeExecutor("native-unsegmented", segmented=False),
        NativeExecutor("native-nopasses", passes=()),
        NativeExecutor("native-fused", fusion_threshold=0),
        *(
            NativeExecutor(f"native-without:{name}", passes=tuple(p for p in DEFAULT_PIPELINE if p != name))
            for name in DEFAULT_PIPELINE
        ),
    )
