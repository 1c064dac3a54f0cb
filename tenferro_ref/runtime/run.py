"""One execution of a program: the values of its slots, and how an instruction or a segment is run.

The executor (`executor`) makes one `Run` per call, of a `Plan`. What an instruction computes is in `kernels`, behind the
backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np

from tenferro_ref import memory, ops
from tenferro_ref.dims import Extent, UpperBound, evaluate
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, InvalidCompiledGraph, MissingValue, ResourceExhausted
from tenferro_ref.extensions import family_of
from tenferro_ref.ops import Category, Op, TensorType
from tenferro_ref.program import ExecProgram, Instruction
from tenferro_ref.runtime.backend import BackendSession, TensorBackend
from tenferro_ref.runtime.contraction import Contraction
from tenferro_ref.runtime.fusion import FusionPlan
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.runtime.kernels.structural import aligned
from tenferro_ref.runtime.segment import Segment
from tenferro_ref.tensor import Array, Tensor, bytes_of, column_major, type_of

#: What a dimension product, times the item size, must not exceed even where another extent is 0.
_ADDRESSABLE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a `GraphExecutor`."""

    backend: TensorBackend
    checking: bool
    reclaim: bool
    fusion_threshold: int


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment and, where it can be evaluated as a whole, how.

    Attributes
    ----------
    fusion, common
        The plan of an elementwise run, and the one type that its values have, if they have one and it is large enough.
    """

    segment: Segment
    fusion: FusionPlan | None
    common: TensorType | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before a program runs on inputs of given types.

    Attributes
    ----------
    inputs
        Types of the program's inputs.
    types
        Type of each slot, as far as the rules say it without the data.
    results
        Types of each instruction's results; None where the rule is applied while running: where a type of an operand
        depends on the data, the rule is broken, or a result does not fit into memory. So these errors come in program
        order among those of values.
    contractions
        The contraction that an instruction is a part of; only instructions of a backend that has them in one call.
    """

    program: ExecProgram
    inputs: tuple[TensorType, ...]
    types: Mapping[int, TensorType]
    results: tuple[tuple[TensorType, ...] | None, ...]
    segments: tuple[PlannedSegment, ...]
    contractions: Mapping[int, Contraction]


def fits_memory(types: Sequence[TensorType]) -> bool:
    """Whether arrays of these types can be allocated, as far as their extents are known."""
    for type_ in types:
        size = type_.dtype.itemsize
        extents = [e for e in type_.shape if isinstance(e, int)]
        if size * prod(extents) > memory.limit() or size * prod(max(e, 1) for e in extents) > _ADDRESSABLE:
            return False
    return True


def check_peak(program: ExecProgram, types: Mapping[int, TensorType], segments: Sequence[PlannedSegment]) -> None:
    """Refuse a program whose values, each of which fits, do not fit together.

    Raises
    ------
    ResourceExhausted
        Those that are there at once are larger than the memory.
    """
    most = memory.limit()
    sizes = {slot: size for slot, t in types.items() if t.is_static and (size := bytes_of(t)) <= most}
    live = sum(sizes.get(slot, 0.0) for slot in program.input_slots)
    for planned in segments:
        segment = planned.segment
        live += sum(sizes.get(slot, 0.0) for slot in segment.outputs)  # what is inside a segment may never be in memory
        if live > most:
            detail = f"its values take {live:.0f} bytes at once, and there are {most}"
            raise ResourceExhausted(where="program", detail=detail)
        dead = {slot for slot, last in zip(segment.inputs, segment.last_use, strict=True) if last}
        live -= sum(sizes.get(slot, 0.0) for slot in dead - set(program.input_slots))


class Run:
    """The state of one execution."""

    def __init__(self, settings: Settings, plan: Plan, inputs: list[Array]) -> None:
        self.settings = settings
        self.backend = settings.backend
        self.plan = plan
        self.program = plan.program
        self.policy = plan.program.policy
        self.inputs = inputs
        #: None for a slot that is not written yet, or reclaimed
        self.values: list[Array | None] = [None] * self.program.n_slots
        for slot, array in zip(self.program.input_slots, inputs, strict=True):
            self.values[slot] = array

    # --- whole programs -----------------------------------------------------------------------------------------------

    def unsegmented(self) -> list[Array]:
        """The outputs, instruction by instruction, each in a session of its own."""
        for index, ins in enumerate(self.program.instructions):
            if ins.op.category is Category.BACKEND:
                with self.backend.with_backend_session() as session:
                    self.execute(index, session)
            else:
                self.execute(index, None)
        return self.outputs()

    def segment(self, planned: PlannedSegment) -> None:
        """Run one segment: as a whole where its plan says how, else instruction by instruction."""
        segment = planned.segment
        if segment.kind in ("host", "ffi"):
            self._step(segment.instructions[0], None)
            return
        with self.backend.with_backend_session() as session:
            if self._fused(planned, session) or self._broadcast_multiply(segment, session):
                return
            for index in segment.instructions:
                self._step(index, session)

    def _step(self, index: int, session: BackendSession | None) -> None:
        """Run one instruction, or all of a contraction in place of its DotGeneral; its other instructions are skipped."""
        contraction = self.plan.contractions.get(index)
        if contraction is None:
            self.execute(index, session)
        elif index == contraction.at:
            self._contract(contraction)
        elif index > contraction.at and self.settings.reclaim:
            ins = self.program.instructions[index]
            self.release(ins.input_slots, ins.last_use, session)

    def outputs(self) -> list[Array]:
        """The program's outputs, copied where they share memory with an input or another output."""
        taken = {id(_owner(a)) for a in self.inputs}
        results = []
        for slot in self.program.output_slots:
            value = self.values[slot]
            if value is None:
                raise MissingValue(slot=slot)
            array = column_major(self.backend.download_to_host(value))
            if id(_owner(array)) in taken or not array.flags.writeable:
                array = array.copy(order="F")
            taken.add(id(_owner(array)))
            results.append(array)
        return results

    # --- one instruction ----------------------------------------------------------------------------------------------

    def execute(self, index: int, session: BackendSession | None) -> None:
        """Run one instruction; `session` is None for those that run on the host or by a runtime of their own."""
        ins = self.program.instructions[index]
        op = ins.op
        operands = tuple([self.value(slot) for slot in ins.input_slots])
        types = self.plan.results[index]
        if types is None:
            types = op.result_types(tuple(map(type_of, operands)), self.policy)
            if not fits_memory(types):
                raise ResourceExhausted(
                    where=op.called,
                    detail=f"{', '.join(map(str, types))} does not fit the {memory.limit()} bytes that there are",
                )
        try:
            results = self._dispatch(op, operands, len(ins.output_slots), session)
        except MemoryError:
            raise ResourceExhausted(where=op.called, detail="not enough memory for its result") from None
        if len(results) != len(ins.output_slots) or len(results) != len(types):
            raise InvalidCompiledGraph(
                detail=f"{op.called}: {len(results)} results for {len(ins.output_slots)} output slots"
            )
        for slot, array, type_ in zip(ins.output_slots, results, types, strict=True):
            if self.settings.checking:
                array = _own(array, operands, isinstance(op, ops.Extension))
            self.store(slot, array, type_, op)
        if self.settings.reclaim:
            self.release(ins.input_slots, ins.last_use, session)

    def value(self, slot: int) -> Array:
        """The value of a slot.

        Raises
        ------
        MissingValue
            It was never written, or its buffer was reclaimed.
        """
        array = self.values[slot]
        if array is None:
            raise MissingValue(slot=slot)
        return array

    def _dispatch(
        self, op: Op, operands: tuple[Array, ...], outputs: int, session: BackendSession | None
    ) -> Sequence[Array]:
        if session is not None:
            return session.execute_backend_op(op, self.policy, operands)
        if isinstance(op, ops.DotGeneral):
            return (self.backend.dot_general(op, self.policy, *operands),)
        if isinstance(op, ops.Extension):
            return family_of(op).run(op, operands, outputs)
        results = run_kernel(op, self.policy, *operands)
        return tuple(map(self.backend.upload_host_tensor, results)) if isinstance(op, ops.Constant) else results

    def store(self, slot: int, array: Array, type_: TensorType, op: Op) -> None:
        """Put a result into its slot, after a check that it is of the type that the rule gives."""
        if array.shape != type_.shape and not _within(array.shape, type_.shape):
            raise Internal(detail=f"{op.called} gave shape {array.shape}, its rule says {type_}")
        if array.dtype != type_.dtype.numpy:
            raise Internal(detail=f"{op.called} gave {array.dtype}, its rule says {type_}")
        self.values[slot] = column_major(array)

    def release(self, slots: Sequence[int], last_use: Sequence[bool], session: BackendSession | None) -> None:
        """Drop the flagged slots; a slot flagged twice is dropped once."""
        for slot, last in zip(slots, last_use, strict=True):
            array = self.values[slot]
            if last and array is not None:
                self.values[slot] = None
                if slot not in self.program.input_slots:  # the caller's buffers are not ours
                    if self.settings.checking:
                        _poison(array)
                    (session or self.backend).reclaim_buffer(array)

    def _contract(self, contraction: Contraction) -> None:
        """A contraction in one call of the backend."""
        contract = self.backend.contraction
        if contract is None:
            raise Internal(detail="a contraction was planned for a backend that has none")
        operands = tuple([self.value(slot) for slot in contraction.operands])
        try:
            array = contract(contraction.op, self.policy, *operands)
        except MemoryError:
            raise ResourceExhausted(where=contraction.op.name, detail="not enough memory for its result") from None
        array = array.reshape(contraction.type.static_shape, order="F")
        if self.settings.checking:
            array = _own(array, operands, False)
        self.store(contraction.result, array, contraction.type, contraction.op)
        if self.settings.reclaim:
            for index in (*contraction.before, contraction.at):
                ins = self.program.instructions[index]
                self.release(ins.input_slots, ins.last_use, None)

    # --- fast paths of segments; each returns False, having changed nothing, where one by one must do -----------------

    def _inputs(self, segment: Segment) -> dict[int, Array] | None:
        """Values of a segment's inputs; None if one is missing, which one by one reports at the right instruction."""
        values = {slot: array for slot in segment.inputs if (array := self.values[slot]) is not None}
        return values if len(values) == len(segment.inputs) else None

    def _finish(self, segment: Segment, results: Mapping[int, Array], session: BackendSession) -> None:
        op = self.program.instructions[segment.instructions[-1]].op
        for slot in segment.outputs:
            self.store(slot, results[slot], self.plan.types[slot], op)
        if self.settings.reclaim:
            self.release(segment.inputs, segment.last_use, session)

    def _fused(self, planned: PlannedSegment, session: BackendSession) -> bool:
        """An elementwise run, evaluated block by block."""
        values = self._inputs(planned.segment)
        if planned.fusion is None or planned.common is None or values is None:
            return False
        try:
            results = session.execute_fused(planned.fusion, self.policy, planned.common, values)
        except MemoryError:
            raise ResourceExhausted(where="fused segment", detail="not enough memory for its results") from None
        if results is None:
            return False
        if self.settings.checking:  # Conj of a real scalar is the scalar itself, which is about to be overwritten
            results = {slot: _own(array, tuple(values.values()), False) for slot, array in results.items()}
        self._finish(planned.segment, results, session)
        return True

    def _broadcast_multiply(self, segment: Segment, session: BackendSession) -> bool:
        """The product of a triplet or pair, without its broadcasts in memory."""
        if segment.kind not in ("triplet", "pair") or any(self.plan.results[i] is None for i in segment.instructions):
            return False
        *broadcasts, product = [self.program.instructions[i] for i in segment.instructions]
        (result,) = product.output_slots
        views = self._inputs(segment)
        if segment.outputs != (result,) or not _consistent(broadcasts, product) or views is None:
            return False
        types = self.plan.types
        if types[product.input_slots[0]].dtype is not types[product.input_slots[1]].dtype:
            return False
        for ins in broadcasts:
            views[ins.output_slots[0]] = aligned(cast(ops.BroadcastInDim, ins.op), views[ins.input_slots[0]])
        try:
            array = session.broadcast_multiply(
                types[result].static_shape, *(views[slot] for slot in product.input_slots)
            )
        except MemoryError:
            raise ResourceExhausted(where=product.op.name, detail="not enough memory for its result") from None
        if array is None:
            return False
        self._finish(segment, {result: _own(array, (), False) if self.settings.checking else array}, session)
        return True


def _consistent(broadcasts: Sequence[Instruction], product: Instruction) -> bool:
    """No slot is read behind a flagged last use inside the pattern (one by one finds that error)."""
    dead: set[int] = set()
    for ins in (*broadcasts, product):
        if dead.intersection(ins.input_slots):
            return False
        dead.update(slot for slot, last in zip(ins.input_slots, ins.last_use, strict=True) if last)
    return True


def materialize(data: Tensor | Array) -> Array:
    """A dense, aligned, column-major input; Bool bytes other than 0 and 1 become 1."""
    array = Tensor.of(data).materialize()
    if array.dtype == np.bool_:
        return np.asarray(array.view(np.uint8) != 0)
    return array if array.flags.aligned else array.copy(order="F")


def _within(shape: Sequence[int], rule: Sequence[Extent]) -> bool:
    """Whether a result's shape is what the rule says; an upper bound is all that it says of some extents."""
    return len(shape) == len(rule) and all(
        actual <= evaluate(extent.expr, ()) if isinstance(extent, UpperBound) else actual == extent
        for actual, extent in zip(shape, rule, strict=True)
    )


def _owner(array: Array) -> Array:
    """The array whose memory `array` views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _own(array: Array, operands: Sequence[Array], foreign: bool) -> Array:
    """`array` in a buffer that nothing else refers to, so that it may be poisoned."""
    shared = array.base is not None or not array.flags.writeable or any(array is o for o in operands)
    return array.copy(order="F") if shared or foreign else column_major(array)


def _poison(array: Array) -> None:
    dtype = DType.of(array)
    if dtype is DType.Bool:
        np.logical_not(array, out=array)
    else:
        array[...] = dtype.limits[dtype.is_unsigned] if dtype.is_int else np.nan
