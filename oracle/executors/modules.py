"""Executors that compile emitted StableHLO in a worker process.

The harness lowers (refusals come before any process is asked), the worker compiles and runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from oracle.case import Case
from oracle.executors.base import Execution, validate
from oracle.executors.lanes import Options
from oracle.isolation import Worker, wire
from oracle.verdict import ExecutorInfo
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import TensorType
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, Value, lower_into
from tenferro_ref.tensor import Array


@dataclass
class ModuleExecutor:
    """An engine that takes StableHLO modules; several executors may share a worker.

    Attributes
    ----------
    plain
        The engine takes real numbers only: complex ones travel as two halves, Bool as I32.
    programs_a_module
        How many programs are compiled together.
    """

    name: str
    worker: Worker
    model: str
    plain: ClassVar[bool] = False
    programs_a_module: int = field(default=1, kw_only=True)
    options: Options = field(default_factory=dict, kw_only=True)

    def open(self) -> None:
        self.worker.facts  # noqa: B018 - starts the worker

    def info(self) -> ExecutorInfo:
        try:
            facts = tuple(self.worker.facts.items())
        except TenferroError as error:
            return ExecutorInfo(self.name, available=False, reason=str(error))
        return ExecutorInfo(self.name, available=True, facts=facts)

    def check(self, view: LoweringView) -> None:
        """Refuse what the engine is known not to do.

        Raises
        ------
        LoweringError
            The op, and what is missing.
        """

    def run(self, case: Case) -> Execution:
        (result,) = self.run_many([case])
        if isinstance(result, TenferroError):
            raise result
        return result

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        """Run cases, as many in a module as pays.

        A case that cannot be lowered is left out. If the module fails or ends the worker, it is split until the guilty
        cases are alone.
        """
        results: dict[int, Execution | TenferroError] = {}
        views: dict[int, LoweringView] = {}
        for i, case in enumerate(cases):
            try:
                validate(case)
                views[i] = LoweringView.of(case.program, case.shapes)
                self.check(views[i])
                lower_into(Body(), views[i])
            except TenferroError as error:
                results[i] = error
                views.pop(i, None)
        items, size = list(views.items()), self.programs_a_module
        for start in range(0, len(items), size):
            self._run_module(cases, dict(items[start : start + size]), results)
        return [results[i] for i in range(len(cases))]

    def _run_module(
        self, cases: Sequence[Case], views: dict[int, LoweringView], results: dict[int, Execution | TenferroError]
    ) -> None:
        if not views:
            return
        start = time.perf_counter()
        body = _PlainBody() if self.plain else Body()
        outputs = [value for view in views.values() for value in lower_into(body, view)]
        parameters = [spec for view in views.values() for spec in view.input_specs]
        arrays = [a for i in views for a in cases[i].inputs]
        if isinstance(body, _PlainBody):
            outputs = [half for value in outputs for half in body.halves(value)]
            parameters = [half for type_ in parameters for half in _half_types(type_)]
            arrays = [half for array in arrays for half in _split(array)]
        message = {
            "code": body.module(outputs),
            "options": self.options,
            "parameters": [[t.dtype.name, list(t.shape)] for t in parameters],
            "results": [[v.dtype.name, list(v.shape)] for v in outputs],
            "input_sets": [[wire.pack(a) for a in arrays]],
        }
        lowered = time.perf_counter()
        try:
            answer = self.worker.request(message)
        except TenferroError as error:
            if len(views) == 1:
                results[next(iter(views))] = error
                return
            items = list(views.items())
            for part in (items[: len(items) // 2], items[len(items) // 2 :]):
                self._run_module(cases, dict(part), results)
            return
        seconds = {k: v / len(views) for k, v in {"lower": lowered - start, **answer["seconds"]}.items()}
        answers = iter([wire.unpack(a) for a in answer["output_sets"][0]])
        for i, view in views.items():
            types = [view.static_type(slot) for slot in view.output_slots]
            if self.plain:
                outputs_of = tuple(_join(type_.dtype, [next(answers) for _ in _half_types(type_)]) for type_ in types)
            else:
                outputs_of = tuple(next(answers) for _ in types)
            results[i] = Execution(outputs_of, seconds, shared=len(views) > 1)

    def bit_exact(self, case: Case) -> bool:
        return False

    def close(self) -> None:
        self.worker.close()


# --- real numbers only ------------------------------------------------------------------------------------------------


def _half_types(type_: TensorType) -> list[TensorType]:
    """What a value travels as."""
    if type_.dtype.is_complex:
        return [type_.with_dtype(type_.dtype.real)] * 2
    return [type_.with_dtype(DType.I32) if type_.dtype is DType.Bool else type_]


def _split(array: Array) -> list[Array]:
    if np.iscomplexobj(array):
        return [array.real, array.imag]
    return [array.astype(np.int32) if array.dtype == bool else array]


def _join(dtype: DType, halves: Sequence[Array]) -> Array:
    if not dtype.is_complex:
        return halves[0].astype(bool) if dtype is DType.Bool else halves[0]
    result: Array = np.empty(halves[0].shape, dtype.numpy, order="F")
    result.real, result.imag = halves
    return result


class _PlainBody(Body):
    """A function whose parameters and results are real numbers; inside, nothing changes."""

    def parameter(self, dtype: DType, shape: tuple[int, ...]) -> Value:
        """A value put together from one or two parameters."""
        parts = [Body.parameter(self, half.dtype, shape) for half in _half_types(TensorType(dtype, shape))]
        if len(parts) == 2:
            return self.call("complex", parts, dtype, shape)
        return parts[0] if parts[0].dtype is dtype else self.convert(parts[0], dtype)

    def halves(self, value: Value) -> list[Value]:
        """What to return for a value."""
        if value.dtype.is_complex:
            return [self.call(part, [value], value.dtype.real, value.shape) for part in ("real", "imag")]
        return [self.convert(value, DType.I32) if value.dtype is DType.Bool else value]
