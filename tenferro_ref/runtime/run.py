"""One execution of a program: the values of its slots, which of them are alive, and how an instruction or a segment is run.

The executor (`executor`) makes one `Run` a call and decides what to run. What an instruction computes is in `kernels`,
behind the backend.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import cast

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, InvalidCompiledGraph, MissingValue, ResourceExhausted, TenferroError
from tenferro_ref.extensions import family_of
from tenferro_ref.ops import Category, Op, Policy, TensorType
from tenferro_ref.program import ExecInstruction, ExecProgram
from tenferro_ref.runtime.backend import BackendSession, TensorBackend
from tenferro_ref.runtime.fusion import FusionPlan
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.runtime.kernels.structural import aligned
from tenferro_ref.runtime.segment import Segment
from tenferro_ref.tensor import Array, Tensor, column_major, type_of

_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
#: What a dimension product, times the item size, must not exceed even where another extent is 0.
_ADDRESSABLE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a `GraphExecutor` was told."""

    backend: TensorBackend
    checking: bool
    reclaim: bool
    fusion_threshold: int


@lru_cache(maxsize=65536)
def _result_types(op: Op, operands: tuple[TensorType, ...], policy: Policy) -> tuple[TensorType, ...]:
    """The op's rule; also refuses what cannot be in memory before NumPy tries to allocate it."""
    types = op.result_types(operands, policy)
    for type_ in types:
        extents = [e for e in type_.shape if isinstance(e, int)]
        size = type_.dtype.itemsize * prod(extents)
        if size > _MEMORY or type_.dtype.itemsize * prod(max(e, 1) for e in extents) > _ADDRESSABLE:
            raise ResourceExhausted(where=op.name, detail=f"{type_} does not fit this machine's {_MEMORY} bytes")
    return types


@dataclass(frozen=True, slots=True)
class SegmentTypes:
    """What the rules say of a whole segment.

    Attributes
    ----------
    inputs
        Types of the segment's inputs that this holds for.
    slots
        Type of every slot that the segment reads or writes.
    fused
        The one type of a fusion plan's values, if there is such a plan and such a type.
    """

    inputs: tuple[TensorType | None, ...]
    slots: Mapping[int, TensorType]
    fused: TensorType | None


@dataclass(frozen=True, slots=True)
class Memo:
    """What the ops' rules said last, so that a program that runs again on the same types is not checked again.

    By index of the instruction, with its operand types; by index of a segment's first instruction.
    """

    instructions: dict[int, tuple[tuple[TensorType, ...], tuple[TensorType, ...]]] = field(default_factory=dict)
    segments: dict[int, SegmentTypes] = field(default_factory=dict)


class Run:
    """The state of one execution."""

    def __init__(self, settings: Settings, program: ExecProgram, inputs: Sequence[Tensor | Array], memo: Memo) -> None:
        self.settings = settings
        self.backend = settings.backend
        self.program = program
        self.policy = program.policy
        self.memo = memo
        self.inputs = [_materialize(x) for x in inputs]
        types = [type_of(a) for a in self.inputs]
        program.check_inputs(types)
        # the same objects in every run, so that comparing types is comparing identities
        types = [want if want == got else got for got, want in zip(types, program.input_types, strict=True)]
        #: None for a slot that is not written yet, or reclaimed
        self.values: list[Array | None] = [None] * program.n_slots
        self.types: list[TensorType | None] = [None] * program.n_slots
        for slot, array, type_ in zip(program.input_slots, self.inputs, types, strict=True):
            self.values[slot], self.types[slot] = array, type_

    # --- whole programs -----------------------------------------------------------------------------------------------

    def unsegmented(self) -> list[Array]:
        for index, ins in enumerate(self.program.instructions):
            if ins.op.category is Category.BACKEND:
                with self.backend.with_backend_session() as session:
                    self.execute(index, session)
            else:
                self.execute(index, None)
        return self.outputs()

    def segment(self, segment: Segment, plan: FusionPlan | None) -> None:
        if segment.kind in ("host", "ffi"):
            self.execute(segment.instructions[0], None)
            return
        with self.backend.with_backend_session() as session:
            if plan is not None and self._fused(segment, plan, session):
                return
            if segment.kind in ("triplet", "pair") and self._broadcast_multiply(segment, session):
                return
            for index in segment.instructions:
                self.execute(index, session)

    def outputs(self) -> list[Array]:
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
        ins = self.program.instructions[index]
        values, types, op = self.values, self.types, ins.op
        for slot in ins.input_slots:
            if values[slot] is None:
                raise MissingValue(slot=slot)
        operands = cast(tuple[Array, ...], tuple([values[slot] for slot in ins.input_slots]))
        expected = self.result_types(index, cast(tuple[TensorType, ...], tuple([types[s] for s in ins.input_slots])))
        try:
            results = self._dispatch(op, operands, len(ins.output_slots), session)
        except MemoryError:
            raise ResourceExhausted(where=op.name, detail="not enough memory for its result") from None
        if len(results) != len(ins.output_slots) or len(results) != len(expected):
            raise InvalidCompiledGraph(
                detail=f"{op.name}: {len(results)} results for {len(ins.output_slots)} output slots"
            )
        for slot, array, type_ in zip(ins.output_slots, results, expected, strict=True):
            if self.settings.checking:
                array = _own(array, operands, isinstance(op, ops.Extension))
            self.store(slot, array, type_, op)
        if self.settings.reclaim:
            self.release(ins.input_slots, ins.last_use, session)

    def result_types(self, index: int, operands: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """What the rule of instruction `index` gives for operands of these types."""
        known = self.memo.instructions.get(index)
        if known is not None and known[0] == operands:
            return known[1]
        results = _result_types(self.program.instructions[index].op, operands, self.policy)
        self.memo.instructions[index] = operands, results
        return results

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
        if array.shape != type_.shape:
            type_ = _resolve(array, type_, op)
        if array.dtype != type_.dtype.numpy:
            raise Internal(detail=f"{op.name} gave {array.dtype}, its rule says {type_}")
        self.values[slot] = column_major(array)
        self.types[slot] = type_

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

    # --- fast paths of segments; each returns False, having changed nothing, where one by one must do -----------------

    def _infer(self, segment: Segment, plan: FusionPlan | None = None) -> SegmentTypes | None:
        """Types of the slots of a segment, by the instructions' rules.

        None if an input is missing or a rule is broken: one by one meets the first error, which may be another.
        """
        if any(self.values[slot] is None for slot in segment.inputs):
            return None
        inputs = tuple([self.types[slot] for slot in segment.inputs])
        known = self.memo.segments.get(segment.instructions[0])
        if known is not None and known.inputs == inputs:
            return known
        types = cast(dict[int, TensorType], dict(zip(segment.inputs, inputs, strict=True)))
        for index in segment.instructions:
            ins = self.program.instructions[index]
            try:
                results = self.result_types(index, tuple([types[slot] for slot in ins.input_slots]))
            except TenferroError:
                return None
            types.update(zip(ins.output_slots, results, strict=True))
        found = SegmentTypes(inputs, types, None if plan is None else plan.common_type(types))
        self.memo.segments[segment.instructions[0]] = found
        return found

    def _finish(self, segment: Segment, results: Mapping[int, Array], types: Mapping[int, TensorType]) -> None:
        op = self.program.instructions[segment.instructions[-1]].op
        for slot in segment.outputs:
            array = results[slot]
            self.store(slot, _own(array, (), False) if self.settings.checking else array, types[slot], op)

    def _fused(self, segment: Segment, plan: FusionPlan, session: BackendSession) -> bool:
        threshold = self.settings.fusion_threshold
        types = self._infer(segment, plan)
        type_ = None if types is None else types.fused
        if types is None or type_ is None or prod(map(_extent, type_.shape)) < threshold:
            return False
        values = {slot: cast(Array, self.values[slot]) for slot in segment.inputs}
        try:
            results = session.execute_fused(plan, self.policy, type_, values)
        except MemoryError:
            raise ResourceExhausted(where="fused segment", detail="not enough memory for its results") from None
        if results is None:
            return False
        if self.settings.checking:  # Conj of a real scalar is the scalar itself, which is about to be poisoned
            results = {slot: _own(array, tuple(values.values()), False) for slot, array in results.items()}
        self._finish(segment, results, types.slots)
        if self.settings.reclaim:
            self.release(segment.inputs, segment.last_use, session)
        return True

    def _broadcast_multiply(self, segment: Segment, session: BackendSession) -> bool:
        """The product of a triplet or pair, without its broadcasts in memory."""
        *broadcasts, product = [self.program.instructions[i] for i in segment.instructions]
        (result,) = product.output_slots
        if segment.outputs != (result,) or not _consistent(broadcasts, product):
            return False
        found = self._infer(segment)
        if found is None:
            return False
        types = found.slots
        if types[product.input_slots[0]].dtype is not types[product.input_slots[1]].dtype:
            return False
        views: dict[int, Array] = {slot: cast(Array, self.values[slot]) for slot in segment.inputs}
        for ins in broadcasts:
            views[ins.output_slots[0]] = aligned(cast(ops.BroadcastInDim, ins.op), views[ins.input_slots[0]])
        try:
            array = session.broadcast_multiply(
                tuple(map(_extent, types[result].shape)), *(views[slot] for slot in product.input_slots)
            )
        except MemoryError:
            raise ResourceExhausted(where=product.op.name, detail="not enough memory for its result") from None
        if array is None:
            return False
        self._finish(segment, {result: array}, types)
        if self.settings.reclaim:
            self.release(segment.inputs, segment.last_use, session)
        return True


def _consistent(broadcasts: Sequence[ExecInstruction], product: ExecInstruction) -> bool:
    """No slot is read behind a flagged last use inside the pattern (one by one finds that error)."""
    dead: set[int] = set()
    for ins in (*broadcasts, product):
        if dead.intersection(ins.input_slots):
            return False
        dead.update(slot for slot, last in zip(ins.input_slots, ins.last_use, strict=True) if last)
    return True


def _materialize(given: Tensor | Array) -> Array:
    """A dense, aligned, column-major input; Bool bytes other than 0 and 1 become 1."""
    array = Tensor.of(given).materialize()
    if array.dtype == np.bool_:
        return np.asarray(array.view(np.uint8) != 0)
    return array if array.flags.aligned else array.copy(order="F")


def _extent(extent: object) -> int:
    if not isinstance(extent, int):
        raise Internal(detail=f"extent {extent} at run time")
    return extent


def _resolve(array: Array, type_: TensorType, op: Op) -> TensorType:
    """The actual type of a result whose rule only bounds its extents."""
    fits = array.ndim == type_.rank and all(
        got <= _extent(want.expr) if isinstance(want, UpperBound) else got == want
        for got, want in zip(array.shape, type_.shape, strict=False)
    )
    if not fits:
        raise Internal(detail=f"{op.name} gave shape {array.shape}, its rule says {type_}")
    return type_.with_shape(array.shape)


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
    kind = array.dtype.kind
    if kind == "b":
        np.logical_not(array, out=array)
    else:
        array[...] = np.iinfo(DType.of(array).value).min if kind == "i" else np.nan


__all__ = ["Run", "Settings"]
