"""Executors that compile emitted StableHLO in a worker process.

The harness lowers (refusals come before any process is asked), the worker compiles and runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from oracle.case import Case, by_program
from oracle.peers.base import Execution, validate
from oracle.peers.lanes import Options
from oracle.verdict import ExecutorInfo
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import Worker, wire
from tenferro_ref.ops import TensorType
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, SsaValue, lower_into
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
        """Run cases, as many programs in a module as pays; cases of one program object are its input sets.

        A case that cannot be lowered is left out. If the module fails or ends the worker, it is split until the guilty
        cases are alone.
        """
        results: dict[int, Execution | TenferroError] = {}
        groups = by_program(cases)
        for start in range(0, len(groups), self.programs_a_module):
            self._run_module(cases, groups[start : start + self.programs_a_module], results)
        return [results[i] for i in range(len(cases))]

    def _run_module(
        self, cases: Sequence[Case], groups: Sequence[list[int]], results: dict[int, Execution | TenferroError]
    ) -> None:
        """Compile the first case of each group, run all of them."""
        start = time.perf_counter()
        module = write(self.check, self.plain, [cases[group[0]] for group in groups])
        for place, error in module.refused.items():
            results.update(dict.fromkeys(groups[place], error))
        groups = [groups[place] for place in module.types]
        if not groups:
            return
        # a group with fewer input sets than the others repeats its last one
        rounds = [[group[min(n, len(group) - 1)] for group in groups] for n in range(max(map(len, groups)))]
        sent = [[array for i in members for array in cases[i].inputs] for members in rounds]
        if self.plain:
            sent = [[half for array in arrays for half in _split(array)] for arrays in sent]
        message = module.message(self.options, [[wire.pack(a) for a in arrays] for arrays in sent])
        lowered = time.perf_counter()
        try:
            answer = self.worker.request(message)
        except TenferroError as error:
            parts = groups if len(groups) > 1 else [[i] for i in groups[0]]
            if len(parts) == 1:
                results[groups[0][0]] = error
                return
            half = len(parts) // 2
            for part in (parts[:half], parts[half:]):
                self._run_module(cases, part if len(groups) > 1 else [[i for (i,) in part]], results)
            return
        count = sum(map(len, groups))
        seconds = {k: v / count for k, v in {"lower": lowered - start, **answer["seconds"]}.items()}
        for members, packed in zip(rounds, answer["output_sets"], strict=True):
            answers = map(wire.unpack, packed)
            for i, made in zip(members, module.types.values(), strict=True):
                if self.plain:
                    outputs = tuple(_join(t.dtype, [next(answers) for _ in _half_types(t)]) for t in made)
                else:
                    outputs = tuple(next(answers) for _ in made)
                results[i] = Execution(outputs, seconds, shared=len(groups) > 1)

    def bit_exact(self, case: Case) -> bool:
        return False

    def close(self) -> None:
        self.worker.close()


# --- modules ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Module:
    """Programs in one module.

    Attributes
    ----------
    parameters, results
        Of the module's function.
    types
        Output types of the programs that are in it, by their place among those that were given; `refused` has the others.
    """

    code: str
    parameters: list[TensorType]
    results: list[TensorType]
    types: dict[int, list[TensorType]]
    refused: dict[int, TenferroError]

    def message(self, options: Options, input_sets: list[list[Any]]) -> wire.Message:
        """What a worker is asked, with packed arrays."""
        return {
            "code": self.code,
            "options": options,
            "parameters": [[t.dtype.name, list(t.shape)] for t in self.parameters],
            "results": [[t.dtype.name, list(t.shape)] for t in self.results],
            "input_sets": input_sets,
        }


def write(check: Callable[[LoweringView], None], plain: bool, cases: Sequence[Case]) -> Module:
    """The module of the cases' programs, without those that the engine is known not to do, or that have no StableHLO."""
    body = _PlainBody() if plain else _Body()
    outputs: list[SsaValue] = []
    parameters: list[TensorType] = []
    types: dict[int, list[TensorType]] = {}
    refused: dict[int, TenferroError] = {}
    for place, case in enumerate(cases):
        mark = body.mark()
        try:
            validate(case)
            view = LoweringView.of(case.program, case.shapes)
            check(view)
            values = lower_into(body, view)
        except TenferroError as error:
            body.rewind(mark)
            refused[place] = error
            continue
        types[place] = [TensorType(value.dtype, value.shape) for value in values]
        outputs += values
        parameters += view.input_specs
    if isinstance(body, _PlainBody):
        outputs = [half for value in outputs for half in body.halves(value)]
        parameters = [half for type_ in parameters for half in _half_types(type_)]
    results = [TensorType(value.dtype, value.shape) for value in outputs]
    return Module(body.module(outputs), parameters, results, types, refused)


class _Body(Body):
    """A body from which the lines of a program that was refused halfway are taken back."""

    def mark(self) -> tuple[int, int]:
        return len(self._parameters), len(self._lines)

    def rewind(self, mark: tuple[int, int]) -> None:
        parameters, lines = mark
        del self._parameters[parameters:], self._lines[lines:]


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


class _PlainBody(_Body):
    """A function whose parameters and results are real numbers; inside, nothing changes."""

    def parameter(self, dtype: DType, shape: tuple[int, ...]) -> SsaValue:
        """A value put together from one or two parameters."""
        parts = [Body.parameter(self, half.dtype, shape) for half in _half_types(TensorType(dtype, shape))]
        if len(parts) == 2:
            return self.call("complex", parts, dtype, shape)
        return parts[0] if parts[0].dtype is dtype else self.convert(parts[0], dtype)

    def halves(self, value: SsaValue) -> list[SsaValue]:
        """What to return for a value."""
        if value.dtype.is_complex:
            return [self.call(part, [value], value.dtype.real, value.shape) for part in ("real", "imag")]
        return [self.convert(value, DType.I32) if value.dtype is DType.Bool else value]
