"""Executors that compile StableHLO in a worker process: the module that a case came with, or one written from its program.

The harness lowers, so that refusals come before any process starts; the worker compiles and runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from oracle.case import Case, by_program
from oracle.peers import given
from oracle.peers.base import Execution, WorkerExecutor, validate
from oracle.peers.expressible import emitting
from oracle.peers.lanes import Options
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, TenferroError
from tenferro_ref.escape import line
from tenferro_ref.isolation import wire
from tenferro_ref.ops import TensorType
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import NONE, Body, OwnKernels, Source, SsaValue, lower_into, lower_to_stablehlo
from tenferro_ref.tensor import Array


@dataclass
class ModuleExecutor(WorkerExecutor):
    """An engine that takes StableHLO modules.

    Attributes
    ----------
    plain
        The engine takes and gives real numbers only: a complex array travels as its two parts, Bool as I32.
    """

    plain: ClassVar[bool] = False

    @property
    def own(self) -> OwnKernels:
        """Which instructions are calls of our own kernels."""
        return NONE

    def check(self, view: LoweringView) -> None:
        """Refuse what the engine is known not to do.

        Raises
        ------
        LoweringError
            The op, and what is missing.
        """

    @property
    def wishes(self) -> wire.Message:
        """What requests ask of the engine beside running the module."""
        return {}

    def check_source(self, source: Source) -> None:
        """Refuse what the engine is known not to do in a module that it is given as it is; errors as `check`."""

    def run_source(self, source: Source, inputs: Sequence[Array]) -> Execution:
        self.check_source(source)
        (outputs,), seconds = self.request_source(source, [inputs])
        return Execution(tuple(outputs), seconds)

    def request_source(
        self, source: Source, input_sets: Sequence[Sequence[Array]]
    ) -> tuple[list[list[Array]], dict[str, float]]:
        """What the worker gives for a module and the arguments of its `main`."""
        try:
            output_sets: tuple[list[list[Array]], dict[str, float]] = self.worker.request(
                {**given.message(source, self.options, input_sets), **self.wishes}, wire.output_sets
            )
        except TenferroError as error:
            raise given.lacking(error) from None
        return output_sets

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        """Run cases, `programs_a_module` programs in a module; cases with the same program object are its input sets.

        A case that cannot be lowered is left out. If the module fails or ends the worker, it is split until the failing
        cases are alone. A case that came with a module has it run, by itself.
        """
        results: dict[int, Execution | TenferroError] = {}
        written = []
        for group in by_program(cases):
            if cases[group[0]].source is None:
                written.append(group)
            else:
                self._run_given([cases[i] for i in group], group, results)
        for start in range(0, len(written), self.programs_a_module):
            self._run_module(cases, written[start : start + self.programs_a_module], results)
        return [results[i] for i in range(len(cases))]

    def _run_given(
        self, cases: Sequence[Case], places: Sequence[int], results: dict[int, Execution | TenferroError]
    ) -> None:
        """Run the module of cases that differ in their inputs alone."""
        source = cases[0].source
        try:
            if source is None:
                raise Internal(detail="a case without a module")
            for case in cases:
                validate(case)
            self.check_source(source)
            output_sets, seconds = self.request_source(source, [case.arguments for case in cases])
        except TenferroError as error:
            half = len(cases) // 2
            for part in (slice(half), slice(half, None)) if half else ():
                self._run_given(cases[part], places[part], results)
            if not half:
                results[places[0]] = error
            return
        share = {phase: s / len(cases) for phase, s in seconds.items()}
        for i, outputs in zip(places, output_sets, strict=True):
            results[i] = Execution(tuple(outputs), share)

    def _run_module(
        self, cases: Sequence[Case], groups: Sequence[list[int]], results: dict[int, Execution | TenferroError]
    ) -> None:
        """Compile the first case of each group, run all of them."""
        start = time.perf_counter()
        module = write(self.check, self.plain, [cases[group[0]] for group in groups], self.own)
        for index, error in module.refused.items():
            results.update(dict.fromkeys(groups[index], error))
        groups = [groups[index] for index in module.types]
        if not groups:
            return
        # a group with fewer input sets than the others repeats its last one
        rounds = [[group[min(n, len(group) - 1)] for group in groups] for n in range(max(map(len, groups)))]
        sent = [[array for i in members for array in cases[i].inputs] for members in rounds]
        if self.plain:
            sent = [[part for array in arrays for part in _split(array)] for arrays in sent]
        input_sets = [[wire.pack(a) for a in arrays] for arrays in sent]
        lowered = time.perf_counter()
        try:
            output_sets, seconds = self.worker.request(
                {**module.message(self.options, input_sets), **self.wishes}, wire.output_sets
            )
        except TenferroError as error:
            if len(groups) > 1:  # half of the programs each
                half = len(groups) // 2
                self._run_module(cases, groups[:half], results)
                self._run_module(cases, groups[half:], results)
            elif len(groups[0]) > 1:  # half of the input sets each
                half = len(groups[0]) // 2
                self._run_module(cases, [groups[0][:half]], results)
                self._run_module(cases, [groups[0][half:]], results)
            else:
                results[groups[0][0]] = error
            return
        count = sum(map(len, groups))
        share = {phase: s / count for phase, s in {"lower": lowered - start, **seconds}.items()}
        for members, arrays in zip(rounds, output_sets, strict=True):
            rest = iter(arrays)
            for i, types in zip(members, module.types.values(), strict=True):
                if self.plain:
                    outputs = tuple(_join(t.dtype, [next(rest) for _ in _parts(t)]) for t in types)
                else:
                    outputs = tuple(next(rest) for _ in types)
                results[i] = Execution(outputs, share, shared=len(groups) > 1)


# --- modules ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Module:
    """Several programs in one module.

    Attributes
    ----------
    parameters, results
        Types of the arguments and results of the module's function.
    types
        Output types of the programs in the module, by index of the case.
    refused
        Why the other programs are not in it.
    """

    code: str
    parameters: list[TensorType]
    results: list[TensorType]
    types: dict[int, list[TensorType]]
    refused: dict[int, TenferroError]

    def message(self, options: Options, input_sets: list[list[Any]]) -> wire.Message:
        """The request to a worker; the arrays of the input sets are packed."""
        return {
            "code": self.code,
            "options": options,
            "parameters": given.types(self.parameters),
            "results": given.types(self.results),
            "input_sets": input_sets,
        }


def module_text(case: Case) -> str:
    """The StableHLO module of one case.

    Raises
    ------
    TenferroError
        The program cannot be lowered.
    """
    with emitting(case.program):
        return lower_to_stablehlo(LoweringView.of(case.program, case.shapes))


def module_or_reason(case: Case) -> str:
    """The module that a case came with, or that is written from it; or a comment that says why there is none."""
    if case.source is not None:
        return case.source.text or "// MLIR bytecode\n"
    try:
        return module_text(case)
    except TenferroError as error:
        return f"// cannot be lowered: {line(str(error))}\n"


def write(check: Callable[[LoweringView], None], plain: bool, cases: Sequence[Case], own: OwnKernels = NONE) -> Module:
    """The module of the cases' programs, without those that `check` refuses or that cannot be lowered."""
    body = _PlainBody() if plain else _Body()
    outputs: list[SsaValue] = []
    parameters: list[TensorType] = []
    types: dict[int, list[TensorType]] = {}
    refused: dict[int, TenferroError] = {}
    for index, case in enumerate(cases):
        mark = body.mark()
        try:
            validate(case)
            view = LoweringView.of(case.program, case.shapes)
            check(view)
            with emitting(case.program):
                values = lower_into(body, view, own=own)
        except TenferroError as error:
            body.rewind(mark)
            refused[index] = error
            continue
        types[index] = [TensorType(value.dtype, value.shape) for value in values]
        outputs += values
        parameters += view.input_specs
    if isinstance(body, _PlainBody):
        outputs = [part for value in outputs for part in body.parts(value)]
        parameters = [part for type_ in parameters for part in _parts(type_)]
    results = [TensorType(value.dtype, value.shape) for value in outputs]
    return Module(body.module(outputs), parameters, results, types, refused)


class _Body(Body):
    """A function body from which the lines of a program that turns out to be refused can be removed again."""

    def mark(self) -> tuple[int, int]:
        return len(self._parameters), len(self._lines)

    def rewind(self, mark: tuple[int, int]) -> None:
        parameters, lines = mark
        del self._parameters[parameters:], self._lines[lines:]
        self._elements.clear()  # some may be among those lines


# --- real numbers only ------------------------------------------------------------------------------------------------


def _parts(type_: TensorType) -> list[TensorType]:
    """The real types as which a value of this type travels."""
    if type_.dtype.is_complex:
        return [type_.with_dtype(type_.dtype.real)] * 2
    return [type_.with_dtype(DType.I32) if type_.dtype is DType.Bool else type_]


def _split(array: Array) -> list[Array]:
    if np.iscomplexobj(array):
        return [array.real, array.imag]
    return [array.astype(np.int32) if array.dtype == bool else array]


def _join(dtype: DType, parts: Sequence[Array]) -> Array:
    if not dtype.is_complex:
        return parts[0].astype(bool) if dtype is DType.Bool else parts[0]
    result: Array = np.empty(parts[0].shape, dtype.numpy, order="F")
    result.real, result.imag = parts
    return result


class _PlainBody(_Body):
    """A function body with real parameters and results; inside it values have their own types."""

    def parameter(self, dtype: DType, shape: tuple[int, ...]) -> SsaValue:
        """A value that is put together from one or two parameters."""
        parts = [Body.parameter(self, part.dtype, shape) for part in _parts(TensorType(dtype, shape))]
        if len(parts) == 2:
            return self.call("complex", parts, dtype, shape)
        return parts[0] if parts[0].dtype is dtype else self.convert(parts[0], dtype)

    def parts(self, value: SsaValue) -> list[SsaValue]:
        """The real values that the function returns for one of its own."""
        if value.dtype.is_complex:
            return [self.call(part, [value], value.dtype.real, value.shape) for part in ("real", "imag")]
        return [self.convert(value, DType.I32) if value.dtype is DType.Bool else value]
