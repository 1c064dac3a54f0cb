"""`LoweringView`: what a lowering may read of a program, and nothing else (SEMANTICS 7.1).

The XLA path sees programs only through this view; it is no backend and never the executor's IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tenferro_ref.dims import extent_kind
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, InvalidCompiledGraph, InvalidProgram, NonStaticShape
from tenferro_ref.ops import Op, Policy, TensorType
from tenferro_ref.program.program import Instruction, Program, ResolvedTypes, infer_types


@dataclass(frozen=True, slots=True)
class InstructionView:
    """One instruction, read only."""

    view: LoweringView
    instruction: Instruction

    @property
    def op(self) -> Op:
        """The op with its attributes."""
        return self.instruction.op

    @property
    def op_name(self) -> str:
        """The engine's name of the op."""
        return self.instruction.op.name

    @property
    def input_slots(self) -> tuple[int, ...]:
        """Slots of the operands."""
        return self.instruction.input_slots

    @property
    def output_slots(self) -> tuple[int, ...]:
        """Slots of the results."""
        return self.instruction.output_slots

    @property
    def dtype(self) -> DType:
        """Dtype of the first output."""
        return self.view.slot_type(self.output_slots[0]).dtype

    def static_output_shape(self, output_index: int) -> tuple[int, ...]:
        """Concrete shape of an output.

        Raises
        ------
        InvalidProgram
            There is no such output, or a dim expression does not evaluate.
        NonStaticShape
            An extent is only bounded, or unknown.
        ValidationError
            A rule breaks at these input shapes, here or before.
        """
        if not 0 <= output_index < len(self.output_slots):
            raise InvalidProgram(detail=f"{self.op_name} has no output {output_index}")
        type_ = self.view.slot_type(self.output_slots[output_index])
        for axis, extent in enumerate(type_.shape):
            if not isinstance(extent, int):
                raise NonStaticShape(op=self.op_name, output_index=output_index, axis=axis, extent=extent_kind(extent))
        return type_.static_shape

    def static_output_types(self) -> tuple[TensorType, ...]:
        """Dtype and concrete shape of each output; errors as `static_output_shape`."""
        types = enumerate(map(self.view.slot_type, self.output_slots))
        return tuple([t.with_shape(self.static_output_shape(i)) for i, t in types])


@dataclass(frozen=True, slots=True)
class LoweringView:
    """A program at given input shapes."""

    program: Program
    resolved: ResolvedTypes

    @classmethod
    def of(cls, program: Program, input_shapes: tuple[tuple[int, ...], ...] | None = None) -> LoweringView:
        """View of `program`; `input_shapes` may be left out if the program is static.

        Raises
        ------
        NonStaticShape
            A symbolic program without input shapes.
        InvalidCompiledGraph, ShapeMismatch
            The program is malformed, or the input shapes do not fit the declared ones.
        """
        specs = program.input_types
        if input_shapes is None:
            for i, t in enumerate(specs):
                for axis, extent in enumerate(t.shape):
                    if not isinstance(extent, int):
                        raise NonStaticShape(
                            op="program input", output_index=i, axis=axis, extent=f"symbolic ({extent})"
                        )
        else:
            if len(input_shapes) != len(specs):
                raise InvalidCompiledGraph(detail=f"expected {len(specs)} inputs, got {len(input_shapes)}")
            specs = tuple(t.with_shape(shape) for t, shape in zip(specs, input_shapes, strict=True))
        return cls(program, program.at(specs))

    @property
    def input_specs(self) -> tuple[TensorType, ...]:
        """Dtype and concrete shape of each program input."""
        return self.resolved.inputs

    @property
    def n_slots(self) -> int:
        """Size of the slot table."""
        return self.program.n_slots

    @property
    def input_slots(self) -> tuple[int, ...]:
        """Slots of the program's inputs."""
        return self.program.input_slots

    @property
    def output_slots(self) -> tuple[int, ...]:
        """Slots of the program's outputs."""
        return self.program.output_slots

    @property
    def policy(self) -> Policy:
        """The program's policy."""
        return self.program.policy

    def instructions(self) -> Iterator[InstructionView]:
        """The instructions in program order."""
        return (InstructionView(self, i) for i in self.program.instructions)

    def slot_type(self, slot: int) -> TensorType:
        """Dtype and shape of a slot; extents that depend on the data are symbolic.

        Raises
        ------
        InvalidProgram
            A dim expression before or at the instruction that writes the slot does not evaluate.
        ValidationError
            Another rule is broken there.
        """
        if slot not in self.resolved.types:
            self.check()
            raise InvalidProgram(detail=f"slot {slot} is never written")
        return self.resolved.types[slot]

    def check(self) -> None:
        """Check that all rules hold at the view's input shapes.

        Raises
        ------
        InvalidProgram
            A dim expression does not evaluate at these shapes.
        ValidationError
            Another rule is broken, or one is broken at the declared types already.
        """
        error = self.resolved.error
        if isinstance(error, InvalidArgument) and error.op == "DimExpr":
            infer_types(self.program)
            raise InvalidProgram(detail=str(error))
        if error is not None:
            raise error

    def static_type(self, slot: int) -> TensorType:
        """Dtype and concrete shape of a slot; errors as `InstructionView.static_output_shape`."""
        type_ = self.slot_type(slot)
        if slot in self.program.producers:
            ins = self.program.instructions[self.program.producers[slot]]
            return type_.with_shape(InstructionView(self, ins).static_output_shape(ins.output_slots.index(slot)))
        return type_
