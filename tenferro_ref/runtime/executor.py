"""`GraphExecutor`: runs an ExecProgram on a backend, segmented or one instruction at a time (SEMANTICS 5).

What is decided once for a program and its input types (`Plan`) is made here; one execution is in `run`; how a program falls
into segments is in `segment`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ref.errors import InvalidArgument, InvalidCompiledGraph, UsageError
from tenferro_ref.ops import TensorType
from tenferro_ref.program import ExecProgram, Program
from tenferro_ref.program.slicing import as_integer
from tenferro_ref.runtime.backend import NumpyBackend, TensorBackend
from tenferro_ref.runtime.contraction import contractions_in
from tenferro_ref.runtime.fusion import plan_fusion
from tenferro_ref.runtime.run import Plan, PlannedSegment, Run, Settings, check_peak, fits_memory, materialize
from tenferro_ref.runtime.segment import Segment, segment_exec_program
from tenferro_ref.tensor import Array, Tensor, listed, type_of

#: The engine fuses elementwise runs from this many elements on.
FUSION_THRESHOLD = 16384


class GraphExecutor:
    """Executes programs.

    Parameters
    ----------
    backend
        The NumPy backend by default.
    checking
        Give every slot a buffer of its own and overwrite it when it is reclaimed (NaN, the smallest integer), so that a
        read through a stale view shows.
    reclaim
        Honour `last_use`. A slot read after its flagged last use is `MissingValue`, checking or not.
    fusion_threshold
        Smallest number of elements at which an elementwise run is fused.
    decline_reused
        The engine's newer rule for triplet and pair segments (see `segment_exec_program`).

    Raises
    ------
    UsageError
        A backend that is none, or a threshold that is no integer.
    """

    def __init__(
        self,
        backend: TensorBackend | None = None,
        *,
        checking: bool = False,
        reclaim: bool = True,
        fusion_threshold: int = FUSION_THRESHOLD,
        decline_reused: bool = True,
    ) -> None:
        if backend is not None and (isinstance(backend, type) or not isinstance(backend, TensorBackend)):
            raise UsageError(detail=f"backend: {backend!r} where a TensorBackend is needed, such as NumpyBackend()")
        as_integer(fusion_threshold, "fusion_threshold")
        self.settings = Settings(
            NumpyBackend() if backend is None else backend,
            checking,
            reclaim,
            fusion_threshold,
        )
        self.decline_reused = decline_reused
        # the only cache of plans, and of types at other inputs than the declared ones:
        # without it an instruction on 4 x 4 elements takes three times as long (ADR 0013)
        self._last: Plan | None = None

    def eval_exec_ir(self, program: ExecProgram, inputs: Sequence[Tensor | Array]) -> list[Array]:
        """Outputs of the program, executed by segments.

        Parameters
        ----------
        inputs
            One tensor per program input, of any strides; never written to.

        Returns
        -------
        list of arrays
            Column-major, one per program output; none shares memory with an input or another output.

        Raises
        ------
        InvalidArgument
            The program is none, or the inputs are no sequence of arrays.
        InvalidCompiledGraph
            The program is a graph, or malformed, or the inputs are of another number or dtype.
        ShapeMismatch
            The shape of an input contradicts the declared one, or a symbol that repeats.
        ShapeConstraintViolation, ShapeConstraintEvaluation
            The inputs break a shape guard of the program.
        ValidationError
            An instruction's operands break its op's rule. A value-dependent error of an earlier instruction comes first.
        MissingValue
            A slot is read before it is written, or after its last use.
        UnsupportedOp
            The backend does not have an op (known before anything runs), or an extension family has no runtime.
        ResourceExhausted
            A value does not fit into memory.
        """
        run = self._run(program, inputs)
        if not run.plan.contractions and all(len(planned.segment.instructions) == 1 for planned in run.plan.segments):
            return run.unsegmented()
        for planned in run.plan.segments:
            run.segment(planned)
        return run.outputs()

    def eval_unsegmented(self, program: ExecProgram, inputs: Sequence[Tensor | Array]) -> list[Array]:
        """As `eval_exec_ir`, one instruction at a time, each in a session of its own."""
        return self._run(program, inputs).unsegmented()

    def segments(self, program: ExecProgram) -> tuple[Segment, ...]:
        """How `eval_exec_ir` divides the program; InvalidArgument for what is no program."""
        _check_kind(program)
        return segment_exec_program(program, decline_reused=self.decline_reused)

    def _run(self, program: ExecProgram, inputs: Sequence[Tensor | Array]) -> Run:
        arrays = [materialize(x) for x in listed("program", inputs)]
        types = tuple([type_of(a) for a in arrays])
        plan = self._last  # read once: another thread may put another program's there
        if plan is None or plan.program is not program or plan.inputs != types:
            plan = self._last = self._plan(program, types)
        return Run(self.settings, plan, arrays)

    def _plan(self, program: ExecProgram, inputs: tuple[TensorType, ...]) -> Plan:
        _check_kind(program)
        self.settings.backend.check(program)
        resolved = program.at(inputs)
        types = resolved.types
        results: list[tuple[TensorType, ...] | None] = [None] * len(program.instructions)
        for i, ins in enumerate(program.instructions[: resolved.count]):
            made = tuple([types[slot] for slot in ins.output_slots])
            if fits_memory(made) and all(types[slot].is_static for slot in ins.input_slots):
                results[i] = made
        segments = []
        for segment in self.segments(program):
            fusion = common = None
            if len(segment.instructions) > 1 and all(results[i] is not None for i in segment.instructions):
                fusion = plan_fusion(program, segment)
                common = None if fusion is None else fusion.common_type(types, self.settings.fusion_threshold)
            segments.append(PlannedSegment(segment, fusion, common))
        check_peak(program, types, segments)
        direct = self.settings.backend.contraction is not None
        contractions = contractions_in(program, results, types) if direct else {}
        return Plan(program, inputs, types, tuple(results), tuple(segments), contractions)


def _check_kind(program: object) -> None:
    if not isinstance(program, Program):
        raise InvalidArgument("program", "program", f"expected an exec program, got {type(program).__name__}")
    if program.kind != "exec":
        raise InvalidCompiledGraph(
            detail="a graph, which is compiled before it is executed: `compile_std_to_exec`, or without passes `to_exec`"
        )
