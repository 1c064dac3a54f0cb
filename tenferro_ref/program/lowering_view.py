"""`LoweringView`: what a lowering may read of a program, and nothing else (SEMANTICS 7.1).

The XLA path sees programs only through this view; it is no backend and never the executor's IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tenferro_ref.dims import evaluate, expr_of, extent_kind, is_exact
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidCompiledGraph, InvalidProgram, NonStaticShape, ValidationError
from tenferro_ref.ops import Op, Policy, TensorType
from tenferro_ref.program.program import ExecProgram, GraphProgram, Instruction


@dataclass(frozen=True, slots=True)
class InstructionView:
    """One instruction, read only."""

    view: LoweringView
    instruction: Instruction

    @property
    def op(self) -> Op:
        return self.instruction.op

    @property
    def op_name(self) -> str:
        return self.instruction.op.name

    @property
    def input_slots(self) -> tuple[int, ...]:
        return self.instruction.input_slots

    @property
    def output_slots(self) -> tuple[int, ...]:
        return self.instruction.output_slots

    @property
    def dtype(self) -> DType:
        """Dtype of the first output."""
        return self.view.slot_type(self.output_slots[0]).dtype

    def static_output_shape(self, output_index: int) -> tuple[int, ...]:
        """Concrete shape of an output under the view's input shapes.

        Raises
        ------
        InvalidProgram
            There is no such output, or a dim expression does not evaluate.
        NonStaticShape
            An extent is only bounded, or unknown.
        """
        if not 0 <= output_index < len(self.output_slots):
            raise InvalidProgram(detail=f"{self.op_name} has no output {output_index}")
        return self.view.static_shape(self.op_name, output_index, self.output_slots[output_index])

    def static_output_types(self) -> tuple[TensorType, ...]:
        """Dtype and concrete shape of each output; errors as `static_output_shape`."""
        types = [self.view.slot_type(slot) for slot in self.output_slots]
        return tuple([t if t.is_static else t.with_shape(self.static_output_shape(i)) for i, t in enumerate(types)])


@dataclass(frozen=True, slots=True)
class LoweringView:
    """A program at given input shapes.

    Attributes
    ----------
    input_specs
        Dtype and concrete shape of each program input.
    """

    program: GraphProgram | ExecProgram
    input_specs: tuple[TensorType, ...]

    @classmethod
    def of(
        cls, program: GraphProgram | ExecProgram, input_shapes: tuple[tuple[int, ...], ...] | None = None
    ) -> LoweringView:
        """View of `program`; `input_shapes` may be left out if the program is static.

        Raises
        ------
        NonStaticShape
            A symbolic program without input shapes.
        InvalidCompiledGraph, ShapeMismatch
            Input shapes that do not fit the declared ones.
        """
        if input_shapes is None:
            for i, t in enumerate(program.input_types):
                for axis, extent in enumerate(t.shape):
                    if not isinstance(extent, int):
                        raise NonStaticShape(
                            op="program input", output_index=i, axis=axis, extent=f"symbolic ({extent})"
                        )
            return cls(program, program.input_types)
        if program.is_static and input_shapes == tuple([t.shape for t in program.input_types]):
            return cls(program, program.input_types)
        if len(input_shapes) != len(program.input_types):
            raise InvalidCompiledGraph(detail=f"expected {len(program.input_types)} inputs, got {len(input_shapes)}")
        specs = tuple(
            TensorType(t.dtype, tuple(shape)) for t, shape in zip(program.input_types, input_shapes, strict=True)
        )
        program.check_inputs(specs)
        return cls(program, specs)

    @property
    def n_slots(self) -> int:
        return self.program.n_slots

    @property
    def input_slots(self) -> tuple[int, ...]:
        return self.program.input_slots

    @property
    def output_slots(self) -> tuple[int, ...]:
        return self.program.output_slots

    @property
    def policy(self) -> Policy:
        return self.program.policy

    def instructions(self) -> Iterator[InstructionView]:
        return (InstructionView(self, i) for i in self.program.instructions)

    def slot_type(self, slot: int) -> TensorType:
        """Type of a slot, symbolic extents included."""
        return self.program.slot_types[slot]

    def static_shape(self, op: str, output_index: int, slot: int) -> tuple[int, ...]:
        """Concrete shape of a slot; see `InstructionView.static_output_shape`."""
        shapes = [spec.shape for spec in self.input_specs]
        result = []
        for axis, extent in enumerate(self.slot_type(slot).shape):
            if not is_exact(extent):
                raise NonStaticShape(op=op, output_index=output_index, axis=axis, extent=extent_kind(extent))
            try:
                result.append(evaluate(expr_of(extent), shapes))  # type: ignore[arg-type]
            except ValidationError as error:
                raise InvalidProgram(detail=f"{op}: {error}") from None
        return tuple(result)

    def static_type(self, slot: int) -> TensorType:
        """Dtype and concrete shape of a slot."""
        for spec, input_slot in zip(self.input_specs, self.input_slots, strict=True):
            if slot == input_slot:
                return spec
        index = self.program.producers[slot]
        instruction = self.program.instructions[index]
        shape = self.static_shape(instruction.op.name, instruction.output_slots.index(slot), slot)
        return TensorType(self.slot_type(slot).dtype, shape)
