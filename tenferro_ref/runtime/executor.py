"""`GraphExecutor`: runs an ExecProgram on a backend, segmented or one instruction at a time (SEMANTICS 5).

What is settled once a program (its form, its segments) lives here; one execution of it, in `run`; how a program falls
into segments, in `segment`.

Both paths check an instruction's rule on the types of the operands at hand before they run it, in program order, so that
they meet the same error.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_ref import ops
from tenferro_ref.errors import InvalidCompiledGraph
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime.backend import NumpyBackend, TensorBackend
from tenferro_ref.runtime.fusion import FusionPlan, plan_fusion
from tenferro_ref.runtime.run import Memo, Run, Settings
from tenferro_ref.runtime.segment import Segment, segment_exec_program
from tenferro_ref.tensor import Array, Tensor

#: The engine fuses elementwise runs from this many elements on.
FUSION_THRESHOLD = 16384


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is computed once a program."""

    segments: tuple[tuple[Segment, FusionPlan | None], ...]
    #: False where no fused run has two instructions: segments would gain nothing.
    segmented: bool
    memo: Memo


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
        self.settings = Settings(
            NumpyBackend() if backend is None else backend,
            checking,
            reclaim,
            fusion_threshold,
        )
        self.decline_reused = decline_reused
        # by identity: hashing a program hashes every instruction
        self._prepared: dict[int, tuple[weakref.ref[ExecProgram], _Prepared]] = {}

    def eval_exec_ir(self, program: ExecProgram, inputs: Sequence[Tensor | Array]) -> list[Array]:
        """Outputs of the program, executed by segments.

        Parameters
        ----------
        inputs
            One tensor a program input, of any strides; never written to.

        Returns
        -------
        list of arrays
            Column-major, one a program output; none shares memory with an input or another output.

        Raises
        ------
        InvalidCompiledGraph
            The program is malformed, or the inputs do not fit it.
        ValidationError
            An instruction's operands break its op's rule.
        MissingValue
            A slot is read before it is written, or behind its last use.
        UnsupportedOp
            The backend does not have an op (known before anything runs), or an extension family has no runtime.
        ResourceExhausted
            A value does not fit into memory.
        """
        prepared = self._prepare(program)
        run = Run(self.settings, program, inputs, prepared.memo)
        if not prepared.segmented:
            return run.unsegmented()
        for segment, plan in prepared.segments:
            run.segment(segment, plan)
        return run.outputs()

    def eval_unsegmented(self, program: ExecProgram, inputs: Sequence[Tensor | Array]) -> list[Array]:
        """As `eval_exec_ir`, one instruction at a time, each in a session of its own."""
        return Run(self.settings, program, inputs, self._prepare(program).memo).unsegmented()

    def segments(self, program: ExecProgram) -> tuple[Segment, ...]:
        """How `eval_exec_ir` divides the program."""
        return tuple(segment for segment, _ in self._prepare(program).segments)

    def _prepare(self, program: ExecProgram) -> _Prepared:
        key = id(program)
        entry = self._prepared.get(key)
        if entry is not None and entry[0]() is program:
            return entry[1]
        validate(program)
        self.settings.backend.check(program)
        segments = segment_exec_program(program, decline_reused=self.decline_reused)
        prepared = _Prepared(
            tuple((s, plan_fusion(program, s) if len(s.instructions) > 1 else None) for s in segments),
            any(len(s.instructions) > 1 for s in segments),
            Memo(),
        )
        cache = self._prepared
        self._prepared[key] = (weakref.ref(program, lambda _: cache.pop(key, None)), prepared)
        return prepared


def validate(program: ExecProgram) -> None:
    """The form that the executor relies on; types are checked while running.

    Raises
    ------
    InvalidCompiledGraph
        Slot out of range, slot written twice, wrong arity, metadata that does not fit, output slot never written.
    """
    written: set[int] = set()

    def check(slots: Sequence[int], what: str) -> None:
        for slot in slots:
            if not 0 <= slot < program.n_slots:
                raise InvalidCompiledGraph(detail=f"{what}: slot {slot} out of range (n_slots is {program.n_slots})")

    def write(slots: Sequence[int], what: str) -> None:
        check(slots, what)
        for slot in slots:
            if slot in written:
                raise InvalidCompiledGraph(detail=f"{what}: slot {slot} is written twice")
            written.add(slot)

    if len(program.input_slots) != len(program.input_types):
        raise InvalidCompiledGraph(detail="every input slot needs a type")
    write(program.input_slots, "inputs")
    for index, ins in enumerate(program.instructions):
        op, count = ins.op, len(ins.input_slots)
        what = f"instruction {index} ({op.name})"
        check(ins.input_slots, what)
        write(ins.output_slots, what)
        if count < op.arity or (count > op.arity and not op.variadic):
            expected = f"at least {op.arity}" if op.variadic else str(op.arity)
            raise InvalidCompiledGraph(detail=f"{what}: expected {expected} inputs, got {count}")
        if len(ins.output_slots) != 1 and not isinstance(op, ops.Extension):
            raise InvalidCompiledGraph(detail=f"{what}: expected 1 outputs, got {len(ins.output_slots)}")
        if len(ins.last_use) != count:
            raise InvalidCompiledGraph(detail=f"{what}: {len(ins.last_use)} last_use flags for {count} inputs")
    check(program.output_slots, "outputs")
    for slot in program.output_slots:
        if slot not in written:
            raise InvalidCompiledGraph(detail=f"output slot {slot} is never written")


__all__ = ["FUSION_THRESHOLD", "GraphExecutor", "validate"]
