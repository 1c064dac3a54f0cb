"""From a module to a GraphProgram: functions, calls and branches walked in order, each op by its row.

Text or bytecode is parsed and legalised by the MLIR bindings (`bindings`); here the operations are walked, each becomes what
its row in `ROWS` says, and the `Tracer` builds the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import DTypeMismatch, Internal, RankMismatch, ShapeMismatch
from tenferro_ref.ops import CompareDir, TensorType
from tenferro_ref.program import GraphProgram, LoweringView, Value
from tenferro_ref.stablehlo.emit import lower_into
from tenferro_ref.stablehlo.loader import (  # noqa: F401 - their rows
    compound,
    contractions,
    indexing,
    linalg,
    reductions,
    rng,
    rows,
    sorting,
    windows,
)
from tenferro_ref.stablehlo.loader.bindings import Operation, legalize, located, parse, reading, tensor_type
from tenferro_ref.stablehlo.loader.composed import select, spread, static
from tenferro_ref.stablehlo.loader.regions import apply_body
from tenferro_ref.stablehlo.loader.signature import entry_function, functions_of
from tenferro_ref.stablehlo.loader.special import keeps
from tenferro_ref.stablehlo.loader.tracer import ROWS, Evaluate, Tracer
from tenferro_ref.stablehlo.source import distributed, needs_host
from tenferro_ref.stablehlo.writer import Body
from tenferro_ref.tensor import Array, Tensor, listed

#: The most operations that are read, calls counted as often as they are made.
MOST_OPERATIONS = 2**20
#: The attribute by which a module gives a loop a number.
NUMBER = "number"
#: The deepest nesting of calls and branches.
_DEEPEST = 200


@dataclass(frozen=True, eq=False)
class Loaded:
    """A StableHLO function as a program.

    Attributes
    ----------
    program
        Under the policy `STABLEHLO`. Its inputs are the function's arguments, then the arrays that the module brings
        along (constants that are no single repeated value, iotas).
    bound
        The values of these last inputs.
    deciding
        The program, with other outputs: what it was decided by which way the module goes for the given inputs, as far as
        that depends on floats (the condition of a `while`, the index of a `case`). The program is the module's only where
        these are certain. None if there is nothing of the kind.
    """

    program: GraphProgram
    bound: tuple[Array, ...] = ()
    deciding: GraphProgram | None = None
    turns: dict[int, int] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[TensorType, ...]:
        """Types of the function's arguments."""
        return self.program.input_types[: len(self.program.input_types) - len(self.bound)]

    def inputs(self, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """The program's inputs for these arguments.

        Raises
        ------
        ShapeMismatch
            Another number of arguments than the function has.
        """
        if len(arguments) != len(self.arguments):
            raise RankMismatch(op="arguments", expected=len(self.arguments), actual=len(arguments))
        return (*arguments, *self.bound)


def load(
    source: str | bytes,
    where: str = "StableHLO",
    entry: str = "main",
    *,
    evaluate: Evaluate | None = None,
    inputs: Sequence[Array] | None = None,
    most: int = MOST_OPERATIONS,
) -> Loaded:
    """Read a module: text, MLIR bytecode or a portable artifact.

    Parameters
    ----------
    evaluate, inputs
        With a function that computes ops, and values of the arguments, the module is read as it goes for these: loops are
        unrolled, branches taken. Without the inputs, as far as it goes the same for all.
    where
        What the module is called in errors (a path).
    entry
        Name of the function; a module of one function needs none of that name.
    most
        How many operations are read, those of a loop once a turn.

    Raises
    ------
    FormatError
        No StableHLO, or it does not verify.
    ShapeMismatch, DTypeMismatch, InvalidArgument
        `inputs` are not what the function's arguments are.
    UnsupportedOp, UnsupportedDType, NonStaticShape, ValidationError
        An operation that cannot be read; `place` is its `FILE:LINE:COLUMN`.
    MissingDependency
        The extra `jax` is not installed.
    """
    module = parse(source, where)
    legalize(module, where, keeps)
    with reading(where):
        return _Reader(functions_of(module), where, evaluate, most).read(entry_function(module, where, entry), inputs)


def lower_loaded(loaded: Loaded, *, phase1_only: bool = False) -> str:
    """StableHLO text of the same signature as the loaded module: its arrays are constants; errors as `lower_to_stablehlo`."""
    body = Body()
    arguments = [body.parameter(t.dtype, t.static_shape) for t in loaded.arguments]
    operands = [*arguments, *map(body.array, loaded.bound)]
    return body.module(lower_into(body, LoweringView.of(loaded.program), operands, phase1_only=phase1_only))


def _checked(inputs: Sequence[Array] | None, types: Sequence[TensorType]) -> list[Array]:
    """The values of the arguments, of the types that the function declares; empty if none are given."""
    if inputs is None:
        return []
    arrays = [Tensor.of(array) for array in listed("arguments", inputs)]
    if len(arrays) != len(types):
        raise RankMismatch(op="arguments", expected=len(types), actual=len(arrays))
    for i, (array, type_) in enumerate(zip(arrays, types, strict=True)):
        if array.dtype is not type_.dtype:
            raise DTypeMismatch(op=f"argument {i}", lhs=type_.dtype.name, rhs=array.dtype.name)
        if array.shape != type_.static_shape:
            raise ShapeMismatch(op=f"argument {i}, declared and given", lhs=type_.static_shape, rhs=array.shape)
    return [array.data for array in arrays]


class _Reader:
    """The walk through the functions of one module."""

    def __init__(self, functions: dict[str, Any], where: str, evaluate: Evaluate | None, most: int) -> None:
        self.functions = functions
        self.where = where
        self.tracer = Tracer("", evaluate)
        self.most = self.left = most
        self.turns: dict[int, int] = {}
        self.depth = 0

    def read(self, function: Any, inputs: Sequence[Array] | None) -> Loaded:
        self.tracer.name = function.name.value
        with located(function, self.where):
            types = [tensor_type(t, f"argument {i}") for i, t in enumerate(function.type.inputs)]
        arguments = [self.tracer.input(t.dtype, t.static_shape) for t in types]
        for value, array in zip(arguments, _checked(inputs, types), strict=False):
            self.tracer.given(value, array)
        outputs = self.call(function, arguments)
        program, bound = self.tracer.finish(len(arguments), outputs)
        cut = len(outputs)
        results, decisions = program.output_slots[:cut], program.output_slots[cut:]
        deciding = replace(program, output_slots=decisions) if decisions else None
        return Loaded(replace(program, output_slots=results), bound, deciding, self.turns)

    def call(self, function: Any, arguments: Sequence[Value]) -> list[Value]:
        if function.is_external:
            raise Operation(function).refusal(f"function @{function.name.value} has no body")
        return self.region(function.operation.regions[0], arguments, {})

    def region(self, region: Any, arguments: Sequence[Value], outside: dict[Any, Value]) -> list[Value]:
        """The values that the one block of a region returns."""
        if len(region.blocks) != 1:
            raise Operation(region.owner).refusal("more than one block")
        if self.depth == _DEEPEST:
            reason = f"calls or branches nested more than {_DEEPEST} deep (is it recursive?)"
            raise Operation(region.owner).refusal(reason)
        self.depth += 1
        block = region.blocks[0]
        env = {**outside, **dict(zip(block.arguments, arguments, strict=True))}
        returned: list[Value] = []
        for op in block.operations:
            if op.operation.name in ("func.return", "stablehlo.return"):
                returned = [env[v] for v in op.operation.operands]
            else:
                env.update(zip(op.operation.results, self.operation(op, env), strict=True))
        self.depth -= 1
        return returned

    def operation(self, op: Any, env: dict[Any, Value]) -> Sequence[Value]:
        """The values of an operation's results; an error gets its place."""
        with located(op, self.where):
            types = [tensor_type(result.type, "result") for result in op.operation.results]
            values = self._values(Operation(op), env)
            if [v.type for v in values] != types:
                raise Internal(detail=f"{op.operation.name}: read as {[str(v.type) for v in values]}, not {types}")
        return values

    def _values(self, op: Operation, env: dict[Any, Value]) -> Sequence[Value]:
        operands = [env[v] for v in op.raw.operation.operands]
        self._count(op)
        if op.name == "func.call":
            return self.call(self.functions[op.attribute("callee")], operands)
        if op.name in ("if", "case"):
            return self._branches(op, operands[0], env)
        if op.name == "while":
            return self._loop(op, operands, env)
        if op.name == "chlo.scan":
            return self._scan(op, operands, env)
        if op.name == "map":
            return apply_body(self.tracer, op, operands)
        if reason := needs_host(op.full_name) or distributed(op.full_name):
            raise op.refusal(reason)
        if op.name not in ROWS:
            raise op.refusal("it has no counterpart among the engine's ops, and no composition of them is known")
        made = ROWS[op.name](self.tracer, op, *operands)
        return (made,) if isinstance(made, Value) else made

    def _count(self, op: Operation) -> None:
        """One operation more, or one turn of a loop, whose regions may be empty."""
        self.left -= 1
        if self.left < 0:
            raise op.refusal(f"more than {self.most:,} operations")

    def _loop(self, op: Operation, values: Sequence[Value], env: dict[Any, Value]) -> Sequence[Value]:
        """A `while`, unrolled as far as it runs."""
        condition, body = op.raw.operation.regions
        number = op.attribute(NUMBER)
        turns = 0
        while True:
            self._count(op)
            (test,) = self.region(condition, values, env)
            again = self.tracer.decided(test)
            if again is None:
                raise op.refusal("how often it runs depends on inputs that are not known where the module is read")
            if not again:
                break
            values, turns = self.region(body, values, env), turns + 1
        if number is not None:
            self.turns[number] = max(turns, self.turns.get(number, 0))
        return values

    def _scan(self, op: Operation, operands: Sequence[Value], env: dict[Any, Value]) -> Sequence[Value]:
        """A `chlo.scan`, unrolled; the bindings' own decomposition takes no notice of `is_reverse`."""
        b, axis = self.tracer, op.attribute("dimension")
        first, carried = op.axes("operandSegmentSizes")
        inputs, carries, count = operands[:first], operands[first:], len(op.raw.operation.results) - carried
        if not inputs or not static(inputs[0])[axis]:
            raise op.refusal("there is nothing to scan over")
        steps: list[Sequence[Value]] = []
        extent = static(inputs[0])[axis]
        for i in range(extent)[:: -1 if op.attribute("is_reverse") else 1]:
            self._count(op)
            slices = [_without(b, b.apply(ops.Slice(*_one(static(x), axis, i)), x), axis) for x in inputs]
            returned = self.region(op.raw.operation.regions[0], [*slices, *carries], env)
            steps.append(returned[:count])
            carries = returned[count:]
        ordered = steps[::-1] if op.attribute("is_reverse") else steps
        lines = (
            [b.reshape(x, (*static(x)[:axis], 1, *static(x)[axis:])) for x in line]
            for line in zip(*ordered, strict=True)
        )
        return [*(b.apply(ops.Concatenate(axis), *line) for line in lines), *carries]

    def _branches(self, op: Operation, chosen: Value, env: dict[Any, Value]) -> list[Value]:
        """The branch that is taken; where the inputs are not known all are computed, and one result is selected."""
        index = self.tracer.decided(chosen)
        if index is not None:
            regions = op.raw.operation.regions
            place = int(not index) if chosen.dtype is DType.Bool else int(index)
            return self.region(regions[place if 0 <= place < len(regions) else -1], [], env)
        branches = [self.region(region, [], env) for region in op.raw.operation.regions]
        if chosen.dtype is not DType.Bool:  # an index out of range is the last branch
            b = self.tracer
            numbers = [b.apply(ops.Constant.of(i, chosen.dtype)) for i in range(len(branches) - 1)]
            tests = [b.apply(ops.Compare(CompareDir.Eq), chosen, number) for number in numbers]
        else:
            tests = [chosen]
        results = branches[-1]
        for test, branch in zip(reversed(tests), reversed(branches[:-1]), strict=True):
            pairs = zip(branch, results, strict=True)
            results = [select(spread(test, static(x)), x, y) for x, y in pairs]
        return results


def _one(shape: tuple[int, ...], axis: int, i: int) -> tuple[tuple[int, ...], ...]:
    """Starts, limits and strides of one place of an axis."""
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = i, i + 1
    return tuple(starts), tuple(limits), (1,) * len(shape)


def _without(b: Tracer, x: Value, axis: int) -> Value:
    return b.reshape(x, (*static(x)[:axis], *static(x)[axis + 1 :]))


__all__ = ["MOST_OPERATIONS", "Loaded", "load"]
