"""`GraphBuilder`: programs written in Python.

`apply` appends an op as it is. What the front ends add to that (promotion, broadcasting, NumPy's names) is in `value` and
`tenferro_ref.frontend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, Extent, InputDim
from tenferro_ref.dtype import DType, as_dtype
from tenferro_ref.errors import InvalidArgument, UsageError
from tenferro_ref.ops import DEFAULT_POLICY, Op, Policy, TensorType, check_admitted, check_size
from tenferro_ref.program.program import Instruction, Program
from tenferro_ref.program.slicing import as_integer
from tenferro_ref.program.value import Value


class GraphBuilder:
    """Collects instructions; `build` returns the program, of kind "graph".

    Parameters
    ----------
    division
        What the operators `/` and `**` do with two integers: "integer" keeps the dtype, as the engine does since July 2026;
        "float" promotes to F64, as it did before.

    Examples
    --------
    >>> b = GraphBuilder()
    >>> x, w = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    >>> program = b.build((x @ w + 1.0).sum(0))
    >>> [i.op.name for i in program.instructions]
    ['DotGeneral', 'Constant', 'BroadcastInDim', 'Add', 'ReduceSum']

    Raises
    ------
    UsageError
        A policy that is no `Policy`, or another division than these.
    """

    def __init__(
        self,
        name: str = "",
        policy: Policy = DEFAULT_POLICY,
        *,
        division: Literal["integer", "float"] = "integer",
        symbols: Sequence[tuple[InputDim, str]] = (),
    ) -> None:
        if not isinstance(name, str):
            raise UsageError(detail=f"{type(name).__name__} where a name is needed")
        if not isinstance(policy, Policy):
            raise UsageError(detail=f"{type(policy).__name__} where a Policy is needed")
        if division not in ("integer", "float"):
            raise UsageError(detail=f'division is "integer" or "float", not {division!r}')
        self.name = name
        self.policy = policy
        self.division = division
        self.inputs: list[Value] = []
        self._instructions: list[Instruction] = []
        self._symbols = {name: dim for dim, name in symbols}
        self._n_slots = 0

    def _new(self, type_: TensorType) -> Value:
        self._n_slots += 1
        return Value(self, self._n_slots - 1, type_)

    def _check_own(self, values: Sequence[Value], what: str) -> None:
        for value in values:
            if not isinstance(value, Value):
                raise UsageError(detail=f"{what} is no Value: {type(value).__name__}")
            if value.builder is not self:
                raise UsageError(detail=f"{what} belongs to another GraphBuilder")

    def input(self, dtype: DType | str, shape: Sequence[int | str | InputDim | DimOp] = ()) -> Value:
        """A program input; a string extent is a symbol (an identifier), equal wherever it repeats.

        An extent may also be an expression over those of inputs, such as `InputDim(0, 1)`.

        Raises
        ------
        UsageError
            An unknown dtype, a shape that is no sequence, an extent that is no integer, symbol or expression, or a
            symbol that is no identifier.
        InvalidArgument
            A negative extent, or a shape beyond all limits.
        Unsupported
            A dtype that the builder's policy does not have.
        """
        number = len(self.inputs)
        of = as_dtype(dtype)
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise UsageError(detail=f'{type(shape).__name__} where a shape is needed, such as (2, 3) or ("n",)')
        sizes = [e if isinstance(e, str | InputDim | DimOp) else as_integer(e, "extent") for e in shape]
        for extent in sizes:
            if isinstance(extent, str) and not extent.isidentifier():
                raise UsageError(detail=f"symbol {extent!r} is not an identifier")
        symbols = dict(self._symbols)
        extents: list[Extent] = [
            symbols.setdefault(e, InputDim(number, axis)) if isinstance(e, str) else e for axis, e in enumerate(sizes)
        ]
        value = self.typed_input(TensorType(of, tuple(extents)))
        self._symbols = symbols  # of an input that was refused nothing stays
        return value

    def typed_input(self, type_: TensorType) -> Value:
        """A program input of a type whose symbolic extents are those of inputs that are there already, or its own.

        Raises
        ------
        InvalidArgument, Unsupported
            As `input`.
        """
        what = f"program input {len(self.inputs)}"
        check_admitted(what, type_.dtype, self.policy)
        check_size(what, type_)
        value = self._new(type_)
        self.inputs.append(value)
        return value

    def constant(self, value: complex | np.generic, dtype: DType | str = DType.F64) -> Value:
        """A rank-0 constant: the number of the dtype that is nearest to `value`.

        Raises
        ------
        UsageError
            An unknown dtype.
        InvalidArgument
            No number; a finite one that only an infinity or NaN of the dtype is near to; a fraction for integers; for Bool
            what is neither 0 nor 1. `ops.Constant.of` takes the first and the last.
        """
        of = as_dtype(dtype)
        op = ops.Constant.of(value, of)
        if of is DType.Bool and value not in (0, 1):
            raise InvalidArgument(op=op.name, argument="value", detail=f"{value} is no Bool: neither 0 nor 1")
        if not np.isfinite(op.value) and (isinstance(value, int) or np.isfinite(value)):
            raise InvalidArgument(op=op.name, argument="value", detail=f"{value} is near to no finite {of}")
        return self.apply(op)

    def apply_many(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        """Append `op` as it is, with no promotion and no broadcasting; one Value an output.

        Raises
        ------
        ValidationError
            The op's rule is broken.
        UsageError
            No op, or an operand that is no value of this builder.
        """
        types = self._types(op, operands)
        results = tuple([self._new(t) for t in types])
        self._instructions.append(Instruction(op, tuple([v.slot for v in operands]), tuple([v.slot for v in results])))
        return results

    def apply(self, op: Op, *operands: Value) -> Value:
        """`apply_many` for an op with one output; UsageError for another, too."""
        if isinstance(op, ops.Extension) and (number := len(self._types(op, operands))) != 1:
            raise UsageError(detail=f"{op.called} has {number} outputs: `apply_many` gives them, `apply` is for one")
        (result,) = self.apply_many(op, *operands)
        return result

    def _types(self, op: Op, operands: Sequence[Value]) -> tuple[TensorType, ...]:
        if not isinstance(op, Op):
            raise UsageError(detail=f"{type(op).__name__} where an op is needed, such as ops.Add()")
        self._check_own(operands, f"{op.called}: an operand")
        return op.result_types(tuple([v.type for v in operands]), self.policy)

    def build(self, *outputs: Value) -> Program:
        """The program with the given outputs.

        Raises
        ------
        UsageError
            An output that is no value of this builder.
        """
        self._check_own(outputs, "an output")
        return Program(
            tuple(self._instructions),
            tuple(v.slot for v in self.inputs),
            tuple(v.type for v in self.inputs),
            tuple(v.slot for v in outputs),
            self._n_slots,
            self.policy,
            self.name,
            tuple((dim, name) for name, dim in self._symbols.items()),
        )
