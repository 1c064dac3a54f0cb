"""`Growth`: a program being grown. The pool of values, how operands are found or made, and how it ends as a `Case`.

How each op joins is in `fuzz.generate.ops` and `fuzz.generate.motifs`. Every operand that they ask for can be had: a fitting
value of the pool, an adapter (Transpose, Reshape, BroadcastInDim or Convert of a value that nearly fits) or a new input, so
that no draw is wasted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import inf, prod
from typing import NamedTuple

import numpy as np

from fuzz.generate.choices import Choices, Weighted
from fuzz.generate.config import FOREIGN_DTYPES, Config, Regime, admitted
from fuzz.generate.finishing import renumbered, symbolised, without_dead_code
from fuzz.generate.header import decisions
from fuzz.generate.shapes import BIG, EXTENTS, RANKS, Shape, shape_of, volume
from fuzz.generate.values.recipes import REGIMES, Recipe, array_of, draw_recipe, draw_scalar
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import ANY, ENGINE_DTYPES, FLOAT, DType
from tenferro_ref.errors import Internal, UsageError, ValidationError
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO, Op, Policy, TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, Value
from tenferro_ref.tensor import Array

#: What the outputs are. live: the last value, with no dead code. last: the last value, beside dead code. leaves: every value
#: that nothing reads. any: the same with repeats, inputs and values that are read as well.
_OUTPUT_STYLES = ("live", *["leaves"] * 6, "any", "any", "last")
#: Other policies than the engine's: the one of imported programs, and each flag of it alone.
POLICIES: tuple[Policy, ...] = (
    *[STABLEHLO] * 5, Policy(integer_faults="stablehlo"), Policy(scatter_bounds="skip"),
    Policy(empty_reduction="identity"), Policy(dtypes="stablehlo"),
)  # fmt: skip
#: So many of `POLICIES`, the first ones, are those of programs that have dtypes which the engine lacks.
_FOREIGN = 4


class Estimate(NamedTuple):
    """A guess at a value's elements, for keeping ordinary programs finite: no proof of anything."""

    #: No element is negative.
    positive: bool
    #: log2 of the largest magnitude.
    size: float


@lru_cache(64)  # making the choice anew for each program would take 3 % of its time
def _mix(main: DType, dtypes: tuple[DType, ...]) -> Weighted[DType]:
    """The dtypes of a program, its main one as a rule."""
    return Weighted([(main, 70.0), *((d, 30.0 / len(dtypes)) for d in dtypes)])


def _with_dtypes(config: Config, policy: Policy, foreign: bool) -> Config:
    """The config with the dtypes that a policy admits; `foreign`: those that the engine lacks, too, unless others are asked for."""
    if policy.dtypes == "engine":
        return (
            config
            if ANY.issuperset(config.dtypes)
            else replace(config, dtypes=tuple([d for d in config.dtypes if d in ANY]))
        )
    return (
        replace(config, dtypes=(*config.dtypes, *FOREIGN_DTYPES))
        if foreign and config.dtypes == ENGINE_DTYPES
        else config
    )


class Growth:
    """One program in the making.

    Parameters
    ----------
    header
        Bytes of the decisions that concern the whole program.
    max_instructions
        Instructions that it may come to.
    policy
        What it must have; the header may choose another one where that is the engine's.
    inexact
        It must have ops that round, so that its regime is not the exact one.
    """

    def __init__(
        self,
        config: Config,
        header: bytes,
        max_instructions: int,
        policy: Policy = DEFAULT_POLICY,
        *,
        inexact: bool = False,
    ) -> None:
        self.max_instructions = max_instructions
        #: Long programs have nothing that StableHLO lacks: one such op would keep all the others from being compiled.
        self.portable = max_instructions > config.usual
        head, placed, numbers = decisions(header)
        self._header = head
        chosen, number = placed.chance(config.policies), placed.choose(range(len(POLICIES)))
        other_policy = chosen and policy == DEFAULT_POLICY
        self.policy = POLICIES[number] if other_policy else policy
        if ANY.isdisjoint(config.dtypes):
            raise UsageError(detail="one of the engine's own dtypes at least must be among the dtypes")
        self.config = _with_dtypes(config, self.policy, other_policy and number < _FOREIGN)
        #: Which extents of the inputs become symbols (`symbolised`); 0 for none.
        self.symbols = placed.chance(config.symbolic) * (1 + placed.integer(1))
        #: How many ops of the linalg family it has, and where among the genes the first one comes, in 256ths.
        self.linalg = placed.chance(config.linalg) * (1 + placed.pick(3)), placed.integer(1)
        #: Number of the program's first anchor, and where in its stretch of genes it comes, in 256ths.
        self.anchor = numbers.integer(2), numbers.integer(3) & 255
        self.builder = GraphBuilder(policy=self.policy)
        #: Source of the decisions of the step at work.
        self.choices = head
        #: Every value that can be read, in the order in which they were made; an estimate of each, by slot.
        self.pool: list[Value] = []
        self.estimates: dict[int, Estimate] = {}
        #: How to make each input, by slot.
        self.recipes: dict[int, Recipe] = {}
        self.last: tuple[Op, tuple[Value, ...], Estimate] | None = None
        self.count = 0
        #: Instructions that the step at work may append itself; adapters must leave room for them.
        self.step_size = 1
        #: Wishes for the next operand, heeded if they fit: the value itself, its dtype, its rank.
        self.wanted: Value | None = None
        self.wanted_dtype: DType | None = None
        self.wanted_rank = 0
        self._unread: dict[int, Value] = {}
        self._shown: list[Value] = []
        drawn = REGIMES(head)
        regime = config.regime or drawn
        self.regime: Regime = "ordinary" if inexact and regime == "exact" else regime
        self.main = self._draw_main(head)
        self._dtypes = _mix(self.main, self.config.dtypes)
        self.max_rank = config.max_rank if head.chance(10) else min(config.usual_rank, config.max_rank)
        #: One of `_OUTPUT_STYLES`.
        self.output_style = head.choose(_OUTPUT_STYLES)
        self._folded = head.chance(config.folded)
        if self._folded:  # constants take room of their own
            self.max_instructions = min(3 * max_instructions, config.max_instructions)
        big = head.chance(2.5) and config.max_elements >= BIG[0][0]
        self.limit = min(config.big_elements if big else config.usual_elements, config.max_elements)
        self._themes = self._draw_themes(head, big)

    def _draw_main(self, head: Choices) -> DType:
        """The dtype of most values: a float as a rule; under another policy, which concerns integers and Bool, one of those."""
        dtypes, engine = self.config.dtypes, self.policy is DEFAULT_POLICY
        integers = [d for d in dtypes if d.is_int]
        exact = [*integers, *(d for d in dtypes if d is DType.Bool and self.policy.dtypes == "stablehlo")]
        floats, spectra = [d for d in dtypes if d.is_float], [d for d in dtypes if d.is_complex]
        rare = (exact if head.chance(8 if engine else 60) else []) or (spectra if head.chance(10) else [])
        return head.choose(rare or floats or spectra or integers or list(dtypes))

    def _draw_themes(self, head: Choices, big: bool) -> list[Shape]:
        """Up to three shapes that recur in the program."""
        themes = [self._draw_shape(head) for _ in range(1 + head.pick(3))]
        if self.policy.empty_reduction == "identity" and themes[0]:
            themes[0] = (0, *themes[0][1:])
        if not big:
            return themes
        fitting = [s for s in BIG if prod(s) <= self.limit and len(s) <= self.max_rank]
        return [*([head.choose(fitting)] if fitting else []), *themes[1:2]] or [()]

    # --- shapes and dtypes ---

    def _draw_shape(self, choices: Choices) -> Shape:
        return self.fit([EXTENTS(choices) for _ in range(min(RANKS(choices), self.max_rank))])

    def fit(self, extents: Sequence[int]) -> Shape:
        """`extents`, the largest cut down until the tensor is within the limit."""
        shape = list(extents)
        while volume(shape) > self.limit:
            largest = max(range(len(shape)), key=shape.__getitem__)
            shape[largest] = (shape[largest] + 1) // 2
        return tuple(shape)

    def extent(self) -> int:
        """A new extent, often one that the program already has."""
        known = [e for v in self.pool[-4:] for e in shape_of(v)]
        return self.choices.choose(known) if known and self.choices.chance(40) else EXTENTS(self.choices)

    def shape(self) -> Shape:
        """A shape for a new input: a theme of the program, one of a value, or a new one."""
        mode = self.choices.pick(8)
        if mode < 4 or (mode < 6 and not self.pool):
            return self._themes[mode % len(self._themes)]
        return shape_of(self.recent(self.pool)) if mode < 6 else self._draw_shape(self.choices)

    def dtype(self, admitted: Collection[DType]) -> DType:
        """A dtype of `admitted`, the program's main one as a rule; where that is none of them, any."""
        drawn = self._dtypes(self.choices) if self.wanted_dtype is None else self.wanted_dtype
        if drawn in admitted:
            return drawn
        if self.main in admitted:
            return self.main
        return self.choices.choose([d for d in self.config.dtypes if d in admitted])

    def dtypes_of(self, op: type[Op]) -> tuple[DType, ...]:
        """The dtypes that `op` has in this program."""
        return admitted(op, self.config.dtypes, self.policy)

    # --- adding to the program ---

    @property
    def room(self) -> int:
        """Instructions that may still be added."""
        return self.max_instructions - self.count

    def has(self, *ops: type[Op]) -> bool:
        """All of `ops` may be used, and there is room for one of them beside what the step itself still appends."""
        return self.room > self.step_size and all(op in self.config.ops for op in ops)

    def fresh(self, dtype: DType, shape: Shape, recipe: Recipe | None = None) -> Value:
        """A new input, its values of a class that the regime draws unless a recipe is given; constants in some programs."""
        if self._folded and not recipe and self.choices.chance(85) and self.has_array():
            return self.constant_array(dtype, shape) if shape else self.constant(dtype)
        value = self.builder.input(dtype, shape)
        recipe = recipe or draw_recipe(self.choices, dtype, self.regime)
        self.recipes[value.slot] = recipe
        plain = recipe.kind in ("simple", "positive", "unit", "ordinary", "small", "exact", "indices")
        positive = recipe.kind in ("positive", "simple") and dtype.is_float
        self._keep(value, Estimate(positive, (6.0 if recipe.kind == "exact" else 3.0) if plain else inf))
        return value

    def constant(self, dtype: DType, regime: Regime | None = None) -> Value:
        """A new constant, in the regime of the program unless another is given."""
        number = draw_scalar(self.choices, dtype, regime or self.regime)
        with np.errstate(invalid="ignore"):  # a NaN of a narrow float
            positive = bool(number.real > 0)
        return self.apply(ops.Constant.of(number, dtype), estimate=Estimate(positive, 4.0))

    def apply(self, op: Op, *operands: Value, estimate: Estimate | None = None) -> Value:
        """Append an instruction; without an estimate the result is like the last operand."""
        return self.apply_many(op, *operands, estimate=estimate)[0]

    def apply_many(self, op: Op, *operands: Value, estimate: Estimate | None = None) -> tuple[Value, ...]:
        """Append an instruction of any number of results."""
        values = self._append(op, operands)
        estimate = estimate or (self.estimates[operands[-1].slot] if operands else Estimate(False, 0.0))
        self.last = (op, operands, estimate)
        for value in values:
            self._keep(value, estimate)
        return values

    def show(self, op: Op, *operands: Value) -> Value:
        """Append an instruction whose results are outputs that nothing reads; gives the first one."""
        values = self._append(op, operands)
        self._shown += values
        return values[0]

    def inner(self, op: Op, *operands: Value) -> Value:
        """Append an instruction whose result nothing reads but what the same motif appends."""
        (value,) = self._append(op, operands)
        return value

    def give(self, *values: Value) -> None:
        """Make values of the pool outputs, whatever reads them."""
        self._shown += values

    def has_array(self) -> bool:
        """Whether an array of constants may be used, and there is room for it."""
        return self.room > self.step_size + 2 and self.has(ops.Constant, ops.BroadcastInDim, ops.Concatenate)

    def constant_array(self, dtype: DType, shape: Shape, regime: Regime | None = None) -> Value:
        """An array of up to three constants, as there is room, its first axis cut among them, for compilers to fold."""
        count = max(1, min(1 + self.choices.pick(3), shape[0], (self.room - self.step_size - 1) // 2))
        cuts = [i * shape[0] // count for i in range(count + 1)]
        parts = [
            self.apply(ops.BroadcastInDim((b - a, *shape[1:]), ()), self.constant(dtype, regime))
            for a, b in pairwise(cuts)
        ]
        return parts[0] if count == 1 else self.apply(ops.Concatenate(0), *parts)

    def _append(self, op: Op, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        try:
            values = self.builder.apply_many(op, *operands)
        except ValidationError as error:
            raise Internal(detail=f"the generator made an op that its rule refuses: {error}") from error
        self.count += 1
        for operand in operands:
            self._unread.pop(operand.slot, None)
        return values

    def _keep(self, value: Value, estimate: Estimate) -> None:
        self.pool.append(value)
        self.estimates[value.slot] = estimate
        self._unread[value.slot] = value

    # --- operands ---

    def recent(self, values: Sequence[Value]) -> Value:
        """One of `values`, the last ones more often."""
        return values[-1 - self.choices.near(len(values))]

    def operand(
        self,
        admitted: Collection[DType],
        fits: Callable[[Value], bool] | None = None,
        prefer: Callable[[Estimate], bool] | None = None,
    ) -> Value:
        """A value of an admitted dtype for which `fits` holds: a recent one of the pool, or a new input.

        `prefer` is heeded in ordinary programs, mostly.
        """
        choices, wanted = self.choices, self.wanted
        self.wanted = None
        if wanted is not None and wanted.dtype in admitted and (fits is None or fits(wanted)):
            return wanted
        if self.wanted_dtype is not None and self.wanted_dtype in admitted:
            admitted = (self.wanted_dtype,)
        if self.wanted_rank:
            rank, suits = self.wanted_rank, fits
            fits = lambda v: v.type.rank >= rank and (suits is None or suits(v))  # noqa: E731
        fitting = [v for v in self.pool if v.type.dtype in admitted]
        if fits is not None:
            fitting = [v for v in fitting if fits(v)]
        if prefer and fitting and self.regime == "ordinary" and not choices.chance(10):
            fitting = [v for v in fitting if prefer(self.estimates[v.slot])]
        back = choices.near(1 + len(fitting)) if fitting else 0
        if back < len(fitting):
            return fitting[-1 - back]
        if self.pool and choices.chance(30) and self.has(ops.Convert) and (fits is None or fits(self.pool[-1])):
            dtype = self.dtype(admitted)
            if self.pool[-1].dtype is not dtype:
                return self.convert(self.pool[-1], dtype)
        dtype = self.dtype(admitted)
        for _ in range(4):
            shape = self.shape()
            if fits is None or fits(Value(self.builder, -1, TensorType(dtype, shape))):
                return self.fresh(dtype, shape)
        return self.fresh(dtype, (2, 3, 2)[: min(max(2, self.wanted_rank), self.max_rank)])

    def convert(self, value: Value, dtype: DType) -> Value:
        """Append a Convert."""
        before = self.estimates[value.slot]
        estimate = Estimate(before.positive and dtype in FLOAT, min(before.size, 63.0))
        return self.apply(ops.Convert(dtype), value, estimate=estimate)

    def like(self, value: Value, prefer: Callable[[Estimate], bool] | None = None) -> Value:
        """A second operand of the type of `value`, sometimes `value` itself."""
        return value if self.choices.pick(16) == 15 else self.typed(value.dtype, shape_of(value), prefer, value)

    def typed(
        self,
        dtype: DType,
        shape: Shape,
        prefer: Callable[[Estimate], bool] | None = None,
        other_than: Value | None = None,
    ) -> Value:
        """A value of a given type: one of the pool, one brought to that shape, or a new input."""
        mode = self.choices.pick(16)
        alike = [v for v in self.pool if v.type.dtype is dtype and v is not other_than]
        same = [v for v in alike if v.type.shape == shape]
        if prefer and self.regime == "ordinary":
            same = [v for v in same if prefer(self.estimates[v.slot])]
        if same and mode < 9:
            return self.recent(same)
        if mode >= 5 and self.has(ops.Transpose, ops.Reshape, ops.BroadcastInDim):
            others = [v for v in reversed(alike) if v.type.shape != shape]
            for other in others[self.choices.near(len(others)) :][:3]:
                adapted = self.adapt(other, shape)
                if adapted is not None:
                    return adapted
        if shape and self.choices.chance(5) and self.has_array():
            return self.constant_array(dtype, shape)
        return self.fresh(dtype, shape)

    def adapt(self, value: Value, shape: Shape) -> Value | None:
        """`value` in another shape by one structural instruction, if that can be."""
        extents = shape_of(value)
        if extents == shape:
            return value
        if len(extents) > 1 and sorted(extents) == sorted(shape):
            free = list(range(len(extents)))
            perm = []
            for extent in shape:
                perm.append(next(axis for axis in free if extents[axis] == extent))
                free.remove(perm[-1])
            return self.apply(ops.Transpose(tuple(perm)), value)
        if prod(extents) == prod(shape):
            return self.apply(ops.Reshape(shape), value)
        dims: list[int] = []
        for extent in extents:
            target = next((d for d, e in enumerate(shape) if d not in dims and extent in (1, e)), None)
            if target is None:
                return None
            dims.append(target)
        return self.apply(ops.BroadcastInDim(shape, tuple(dims)), value)

    def rank_0(self, dtype: DType) -> Value:
        """A rank-0 value: one of the pool, a constant, or a new input."""
        mode = self.choices.pick(4)
        scalars = [v for v in self.pool if v.dtype is dtype and not v.shape]
        if scalars and mode < 2:
            return self.recent(scalars)
        return self.constant(dtype) if mode < 3 and self.has(ops.Constant) else self.fresh(dtype, ())

    # --- the end ---

    def finish(self) -> GraphProgram:
        """The program with its outputs, its slots as they were given out, without symbols."""
        last, outputs, head = self.pool[-1], [self.pool[-1]], self._header
        if self.output_style in ("leaves", "any"):
            outputs = [v for v in self._unread.values() if v.slot not in self.recipes and v is not last] + outputs
        if self.output_style == "any":
            for _ in range(1 + head.pick(2)):
                extra = self.pool[-1 - head.pick(len(self.pool))]
                outputs.insert(head.pick(len(outputs) + 1), extra)
        given = {v.slot: v for v in self._shown if all(v is not output for output in outputs)}
        program = self.builder.build(*[*outputs[:-1], *given.values(), outputs[-1]][-self.config.max_outputs :])
        if self.output_style == "live":
            shorter = without_dead_code(program)
            return shorter if len(shorter.instructions) >= self.config.min_instructions else program
        return program

    def inputs(self, program: GraphProgram) -> list[Array]:
        """Values for the inputs of `finish`'s program; the simplest ones for a slot that a fault has made up."""
        slots = zip(program.input_slots, program.input_types, strict=True)
        return [array_of(self.recipes.get(s, Recipe("simple", 0)), t.dtype, t.static_shape) for s, t in slots]

    def case(self) -> Case:
        """The program in its final form with its inputs."""
        program = self.finish()
        return Case.of(symbolised(renumbered(program), self.symbols), self.inputs(program))
