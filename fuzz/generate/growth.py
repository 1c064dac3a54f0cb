"""A program being grown: the pool of values, how operands are found or made, and how it ends as a Case.

What each op asks for is in `rows` and `motifs`. Whatever a row asks for can be had: a fitting value of the pool, an
adapter (Transpose, Reshape, BroadcastInDim or Convert of one that nearly fits) or a new input, so that no draw is wasted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from math import inf, prod
from typing import NamedTuple

import numpy as np

from fuzz.generate.config import Config
from fuzz.generate.genes import Genes, Weighted
from fuzz.generate.symbols import symbolised
from fuzz.generate.values.arrays import REGIMES, Recipe, Regime, draw_recipe, make_quietly, scalar
from oracle.case import Case, live
from tenferro_ref.dtype import FLOAT, DType
from tenferro_ref.ops import (
    ENGINE,
    STABLEHLO,
    BroadcastInDim,
    Constant,
    Convert,
    Op,
    Policy,
    Reshape,
    TensorType,
    Transpose,
)
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value
from tenferro_ref.tensor import Array

Shape = tuple[int, ...]

RANKS: Weighted[int] = Weighted([(1, 28), (0, 8), (2, 34), (3, 20), (4, 8), (5, 2), (6, 2)])
#: Small and odd mostly; 0 seldom; lengths around one or two vectors of a CPU now and then.
EXTENTS: Weighted[int] = Weighted(
    [(1, 14), (2, 20), (3, 20), (4, 12), (5, 10), (7, 7), (0, 3), (6, 4), (8, 3), (11, 2), (13, 2), (16, 1), (17, 1)]
    + [(n, 0.4) for n in (31, 33, 50, 51, 53, 59, 61, 63, 64, 65, 67, 70)]
)
#: At or above 16,384 elements, where the engine's fused kernels begin.
BIG: tuple[Shape, ...] = ((16384,), (16411,), (128, 128), (2, 8209), (131, 127), (7, 48, 49), (16385, 1))
#: What the outputs are: the last value and nothing dead, the last value beside dead code, every value that nothing reads,
#: or those with repeats, aliases of inputs and values that are read as well.
_STYLES = ("live", "last", "leaves", "leaves", "any")
#: Other policies than the engine's: the one of imported programs, and each flag of it alone.
POLICIES: tuple[Policy, ...] = (
    STABLEHLO, STABLEHLO, Policy(integer_faults="stablehlo"), Policy(scatter_bounds="skip"),
    Policy(empty_reduction="identity"), Policy(dtypes="stablehlo"),
)  # fmt: skip

#: Bytes of a header: those read in turn, as far as they go, those that have a place of their own behind them, the anchor's
#: last, and those that came later, which bulk generation draws apart so that the others stay what they were.
_TURN, _PLACES, LATER = 40, 7, 3
FIRST = _TURN + _PLACES
HEADER = FIRST + LATER


@cache
def _mix(main: DType, dtypes: tuple[DType, ...]) -> Weighted[DType]:
    """The dtypes of a program, its main one as a rule."""
    return Weighted([(main, 70.0), *((d, 30.0 / len(dtypes)) for d in dtypes)])


class Hint(NamedTuple):
    """A guess at a value's elements, for keeping ordinary programs finite: no proof of anything."""

    #: No element is negative.
    positive: bool
    #: log2 of the largest magnitude.
    size: float


class Growth:
    """One program in the making.

    Parameters
    ----------
    header
        Genes of the decisions that concern the whole program.
    most
        Instructions that it may come to.
    """

    def __init__(self, config: Config, header: bytes, most: int) -> None:
        self.config = config
        self.most = most
        #: In a long program something that StableHLO lacks would be likely, and hide all the rest.
        self.portable = most > config.usual
        self.head = self.genes = head = Genes(header[:_TURN])
        places = Genes(header[_TURN:])
        policy, number = places.chance(config.policies), places.choose(POLICIES)
        self.policy = number if policy else ENGINE
        #: What says which extents of the inputs become symbols; 0 for none.
        self.symbols = places.chance(config.symbolic) * (1 + places.integer(1))
        #: Which anchor the program has, and before which gene in 256.
        self.anchor = places.integer(2), places.integer(1)
        #: How many ops of the linalg family it has, and the first one in place of which gene in 256.
        self.linalg = places.chance(config.linalg) * (1 + places.pick(2)), places.integer(1)
        self.builder = GraphBuilder(policy=self.policy)
        self.pool: list[Value] = []
        self.hints: dict[int, Hint] = {}
        self.unread: dict[int, Value] = {}
        self.shown: list[Value] = []
        #: How to make each input, by slot.
        self.recipes: dict[int, Recipe] = {}
        self.last: tuple[Op, tuple[Value, ...], Hint] | None = None
        self.count = 0
        #: Instructions that the step at work may append itself; adapters must leave room for them.
        self.own = 1
        #: The next operand if it fits; the dtype that operands have if they may, and the rank if there is one.
        self.focus: Value | None = None
        self.wanted: DType | None = None
        self.deep = 0
        self.regime: Regime = REGIMES(head)
        integers = [d for d in config.dtypes if d.is_int]
        floats = [d for d in config.dtypes if d.is_float]
        spectra = [d for d in config.dtypes if d.is_complex]
        # under another policy it is integers and Bool that behave otherwise
        exact = [*integers, *(d for d in config.dtypes if d is DType.Bool and self.policy.dtypes == "stablehlo")]
        rare = (exact if head.chance(8 if self.policy is ENGINE else 60) else []) or (
            spectra if head.chance(10) else []
        )
        self.main: DType = head.choose(rare or floats or spectra or integers or list(config.dtypes))
        self._dtypes = _mix(self.main, config.dtypes)
        self.max_rank = config.max_rank if head.chance(10) else min(config.usual_rank, config.max_rank)
        self.style = head.choose(_STYLES)
        big = head.chance(1) and config.max_elements >= BIG[0][0]
        self.limit = config.max_elements if big else min(config.usual_elements, config.max_elements)
        self.themes = [self._shape(head) for _ in range(1 + head.pick(3))]
        if self.policy.empty_reduction == "identity" and self.themes[0]:
            self.themes[0] = (0, *self.themes[0][1:])
        if big:
            fitting = [s for s in BIG if prod(s) <= self.limit and len(s) <= self.max_rank]
            self.themes = [*([head.choose(fitting)] if fitting else []), *self.themes[1:]] or [()]

    # --- shapes and dtypes ---

    def _shape(self, genes: Genes) -> Shape:
        return self.fit([EXTENTS(genes) for _ in range(min(RANKS(genes), self.max_rank))])

    def fit(self, extents: Sequence[int]) -> Shape:
        """`extents`, the largest cut down until the tensor is within the limit."""
        shape = list(extents)
        while volume(shape) > self.limit:
            worst = max(range(len(shape)), key=shape.__getitem__)
            shape[worst] = (shape[worst] + 1) // 2
        return tuple(shape)

    def extent(self) -> int:
        """A new extent, often one that the program already has."""
        known = [e for v in self.pool[-4:] for e in shape_of(v)]
        return self.genes.choose(known) if known and self.genes.chance(40) else EXTENTS(self.genes)

    def shape(self) -> Shape:
        """A shape for a new input: a theme of the program, one of a value, or a new one."""
        mode = self.genes.pick(8)
        if mode < 4 or (mode < 6 and not self.pool):
            return self.themes[mode % len(self.themes)]
        return shape_of(self.pool[-1 - self.genes.near(len(self.pool))]) if mode < 6 else self._shape(self.genes)

    def dtype(self, admitted: Collection[DType]) -> DType:
        """A dtype of `admitted`, the program's main one as a rule."""
        drawn = self._dtypes(self.genes) if self.wanted is None else self.wanted
        if drawn in admitted:
            return drawn
        return self.main if self.main in admitted else next(d for d in self.config.dtypes if d in admitted)

    # --- adding to the program ---

    @property
    def room(self) -> int:
        """Instructions that may still be added."""
        return self.most - self.count

    def has(self, *ops: type[Op]) -> bool:
        """All of `ops` may be used, and there is room for one of them beside what the step itself still appends."""
        return self.room > self.own and all(op in self.config.vocabulary for op in ops)

    def fresh(self, dtype: DType, shape: Shape, recipe: Recipe | None = None) -> Value:
        """A new input, its values of a class that the regime draws unless a recipe is given."""
        value = self.builder.input(dtype, shape)
        recipe = recipe or draw_recipe(self.genes, dtype, self.regime)
        self.recipes[value.slot] = recipe
        plain = recipe.kind in ("simple", "positive", "unit", "ordinary", "small", "exact", "indices")
        positive = recipe.kind in ("positive", "simple") and dtype.is_float
        self._keep(value, Hint(positive, (6.0 if recipe.kind == "exact" else 3.0) if plain else inf))
        return value

    def constant(self, dtype: DType) -> Value:
        number = scalar(self.genes, dtype, self.regime)
        return self.apply(Constant.of(number, dtype), hint=Hint(bool(number.real > 0), 4.0))

    def apply(self, op: Op, *operands: Value, hint: Hint | None = None) -> Value:
        """Append an instruction; without a hint the result is like the last operand."""
        return self.apply_many(op, *operands, hint=hint)[0]

    def apply_many(self, op: Op, *operands: Value, hint: Hint | None = None) -> tuple[Value, ...]:
        """Append an instruction of any number of results."""
        values = self.builder.apply_many(op, *operands)
        self.count += 1
        for operand in operands:
            self.unread.pop(operand.slot, None)
        hint = hint or (self.hints[operands[-1].slot] if operands else Hint(False, 0.0))
        self.last = (op, operands, hint)
        for value in values:
            self._keep(value, hint)
        return values

    def show(self, op: Op, *operands: Value) -> Value:
        """Append an instruction whose result is an output that nothing reads: only a run knows its extents."""
        value = self.builder.apply(op, *operands)
        self.count += 1
        for operand in operands:
            self.unread.pop(operand.slot, None)
        self.shown.append(value)
        return value

    def _keep(self, value: Value, hint: Hint) -> None:
        self.pool.append(value)
        self.hints[value.slot] = hint
        self.unread[value.slot] = value

    # --- operands ---

    def operand(
        self,
        admitted: Collection[DType],
        fits: Callable[[Value], bool] | None = None,
        prefer: Callable[[Hint], bool] | None = None,
    ) -> Value:
        """A value of an admitted dtype for which `fits` holds: a recent one of the pool, or a new input.

        `prefer` is heeded in ordinary programs, mostly.
        """
        genes, focus = self.genes, self.focus
        self.focus = None
        if focus is not None and focus.dtype in admitted and (fits is None or fits(focus)):
            return focus
        if self.wanted is not None and self.wanted in admitted:
            admitted = (self.wanted,)
        if self.deep:
            deep, suits = self.deep, fits
            fits = lambda v: v.type.rank >= deep and (suits is None or suits(v))  # noqa: E731
        found = [v for v in reversed(self.pool) if v.type.dtype in admitted]
        if fits is not None:
            found = [v for v in found if fits(v)]
        if prefer and found and self.regime == "ordinary" and not genes.chance(10):
            found = [v for v in found if prefer(self.hints[v.slot])]
        position = genes.near(1 + len(found)) if found else 0
        if position < len(found):
            return found[position]
        if self.pool and genes.chance(30) and self.has(Convert) and (fits is None or fits(self.pool[-1])):
            dtype = self.dtype(admitted)
            if self.pool[-1].dtype is not dtype:
                return self.convert(self.pool[-1], dtype)
        dtype = self.dtype(admitted)
        for _ in range(4):
            shape = self.shape()
            if fits is None or fits(Value(self.builder, -1, TensorType(dtype, shape))):
                return self.fresh(dtype, shape)
        return self.fresh(dtype, (2, 3, 2)[: min(max(2, self.deep), self.max_rank)])

    def convert(self, value: Value, dtype: DType) -> Value:
        hint = self.hints[value.slot]
        return self.apply(Convert(dtype), value, hint=Hint(hint.positive and dtype in FLOAT, min(hint.size, 63.0)))

    def like(self, value: Value, prefer: Callable[[Hint], bool] | None = None) -> Value:
        """A second operand of the type of `value`, now and then `value` itself."""
        return value if self.genes.pick(16) == 15 else self.typed(value.dtype, shape_of(value), prefer, value)

    def typed(
        self,
        dtype: DType,
        shape: Shape,
        prefer: Callable[[Hint], bool] | None = None,
        other_than: Value | None = None,
    ) -> Value:
        """A value of a given type: one of the pool, one brought to that shape, or a new input."""
        genes, mode = self.genes, self.genes.pick(16)
        alike = [v for v in reversed(self.pool) if v.type.dtype is dtype and v is not other_than]
        same = [v for v in alike if v.type.shape == shape]
        if prefer and self.regime == "ordinary":
            same = [v for v in same if prefer(self.hints[v.slot])]
        if same and mode < 9:
            return same[genes.near(len(same))]
        if mode >= 5 and self.has(Transpose, Reshape, BroadcastInDim):
            others = [v for v in alike if v.type.shape != shape]
            for other in others[genes.near(len(others)) :][:3]:
                adapted = self.adapt(other, shape)
                if adapted is not None:
                    return adapted
        return self.fresh(dtype, shape)

    def adapt(self, value: Value, shape: Shape) -> Value | None:
        """`value` in another shape by one structural instruction, if that can be."""
        given = shape_of(value)
        if given == shape:
            return value
        if len(given) > 1 and sorted(given) == sorted(shape):
            free = list(range(len(given)))
            perm = []
            for extent in shape:
                perm.append(next(axis for axis in free if given[axis] == extent))
                free.remove(perm[-1])
            return self.apply(Transpose(tuple(perm)), value)
        if prod(given) == prod(shape):
            return self.apply(Reshape(shape), value)
        dims: list[int] = []
        for extent in given:
            target = next((d for d, e in enumerate(shape) if d not in dims and extent in (1, e)), None)
            if target is None:
                return None
            dims.append(target)
        return self.apply(BroadcastInDim(shape, tuple(dims)), value)

    def rank_0(self, dtype: DType) -> Value:
        """A rank-0 value: one of the pool, a constant, or a new input."""
        mode = self.genes.pick(4)
        found = [v for v in reversed(self.pool) if v.dtype is dtype and not v.shape]
        if found and mode < 2:
            return found[self.genes.near(len(found))]
        return self.constant(dtype) if mode < 3 and self.has(Constant) else self.fresh(dtype, ())

    # --- the end ---

    def finish(self) -> GraphProgram:
        """The program: its last value is an output, and as the style has it unread, repeated or any other values."""
        last, outputs = self.pool[-1], [self.pool[-1]]
        if self.style in ("leaves", "any"):
            outputs = [v for v in self.unread.values() if v.slot not in self.recipes and v is not last] + outputs
        if self.style == "any":
            for _ in range(1 + self.head.pick(2)):
                extra = self.pool[-1 - self.head.pick(len(self.pool))]
                outputs.insert(self.head.pick(len(outputs) + 1), extra)
        program = self.builder.build(*[*self.shown, *outputs][-self.config.max_outputs :])
        if self.style == "live":
            shorter = without_dead_code(program)
            return shorter if len(shorter.instructions) >= self.config.min_instructions else program
        return program

    def graph(self) -> GraphProgram:
        """The program, in its final form."""
        return symbolised(renumbered(self.finish()), self.symbols)

    def inputs(self, program: GraphProgram) -> list[Array]:
        """Values for the inputs of the program; of the simplest kind for a slot that a fault has made up."""
        simplest = Recipe("simple", 0)
        with np.errstate(all="ignore"):
            return [
                make_quietly(self.recipes.get(slot, simplest), t.dtype, tuple(e for e in t.shape if isinstance(e, int)))
                for slot, t in zip(program.input_slots, program.input_types, strict=True)
            ]

    def case(self) -> Case:
        """The program with its inputs."""
        program = self.finish()
        arrays = self.inputs(program)
        return Case.of(symbolised(renumbered(program), self.symbols), arrays)


def without_dead_code(program: GraphProgram) -> GraphProgram:
    """`program` without instructions and inputs that no output depends on; slots keep their numbers."""
    program = live(program)
    read = {*program.output_slots, *(slot for ins in program.instructions for slot in ins.input_slots)}
    inputs = [(s, t) for s, t in zip(program.input_slots, program.input_types, strict=True) if s in read]
    return replace(program, input_slots=tuple(s for s, _ in inputs), input_types=tuple(t for _, t in inputs))


def renumbered(program: GraphProgram) -> GraphProgram:
    """`program` with its slots numbered without gaps."""
    written = [*program.input_slots, *(s for ins in program.instructions for s in ins.output_slots)]
    if len(written) == program.n_slots:
        return program
    new = {slot: i for i, slot in enumerate(sorted(written))}
    instructions = tuple(
        Instruction(ins.op, tuple(new[s] for s in ins.input_slots), tuple(new[s] for s in ins.output_slots))
        for ins in program.instructions
    )
    return replace(
        program,
        instructions=instructions,
        input_slots=tuple(new[s] for s in program.input_slots),
        output_slots=tuple(new[s] for s in program.output_slots),
        n_slots=len(new),
    )


def shape_of(value: Value) -> Shape:
    """The shape of a value of a growing program: its extents are integers."""
    return tuple([e for e in value.type.shape if isinstance(e, int)])


def volume(extents: Sequence[int]) -> int:
    """Elements of a shape, an extent 0 counting as 1: what a result may come to once that axis is contracted."""
    return prod(extents) or prod([max(1, e) for e in extents])
