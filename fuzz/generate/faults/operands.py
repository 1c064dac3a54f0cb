"""Faults: operands whose shapes or dtypes do not fit, to one another or to the op."""

from __future__ import annotations

from math import prod
from typing import Any

from fuzz.generate.config import FOREIGN_DTYPES
from fuzz.generate.faults.fault import Faults, Faulty, another_dtype, any_axis, changed, of_rank, operand
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import Shape, shape_of
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ARITHMETIC, CONTRACTIONS, REDUCTIONS, CompareDir, Op

FAULTS = Faults()

_BINARY = (*ARITHMETIC, ops.Maximum, ops.Minimum, ops.Compare)
_UNARY = (ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Expm1, ops.Log1p)


def _plain(op: type[Any]) -> Op:
    """The op with the simplest attributes."""
    attributes: dict[type[Any], tuple[Any, ...]] = {
        ops.Compare: (CompareDir.Lt,),
        **dict.fromkeys(CONTRACTIONS, ((), (), (), ())),
        **dict.fromkeys(REDUCTIONS, ((0,),)),
    }
    result: Op = op(*attributes.get(op, ()))
    return result


def _other_shape(g: Growth, shape: Shape, scalar: bool) -> Shape:
    """A shape other than `shape`; of rank 0 only if `scalar`."""
    mode = g.choices.pick(4)
    if mode == 0 or not shape:
        return (*shape, 2)
    if mode == 1 and (len(shape) > 1 or scalar):
        return shape[1:]
    axis = g.choices.pick(len(shape))
    return changed(shape, axis, shape[axis] + 1)


@FAULTS.instruction("ShapeMismatch", *_BINARY)
def other_shape(g: Growth, op: type[Any]) -> Faulty:
    strict = op not in ARITHMETIC
    x = operand(g, op, 0 if strict else 1)
    y = g.fresh(x.dtype, _other_shape(g, shape_of(x), scalar=strict))
    return Faulty(_plain(op), (x, y) if g.choices.pick(2) else (y, x))


@FAULTS.instruction("ShapeMismatch", ops.Select, ops.Clamp)
def other_shape_of_three(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Clamp)
    dtypes = [DType.Bool, x.dtype, x.dtype] if op is ops.Select else [x.dtype] * 3
    odd = g.choices.pick(3)
    shapes = [_other_shape(g, shape_of(x), scalar=True) if i == odd else shape_of(x) for i in range(3)]
    return Faulty(op(), tuple(g.fresh(d, s) for d, s in zip(dtypes, shapes, strict=True)))


@FAULTS.instruction("ShapeMismatch", ops.Reshape)
def other_element_count(g: Growth, op: type[Any]) -> Faulty:
    x = of_rank(g, [dtype for dtype in DType if dtype in g.config.dtypes], 0)
    n = prod(shape_of(x))
    return Faulty(op(g.choices.choose(((n + 1,), (2, n + 3), (n, 2), (0,), (1, n, 1, 3)))), (x,))


@FAULTS.instruction("ShapeMismatch", ops.BroadcastInDim)
def extent_that_does_not_stretch(g: Growth, op: type[Any]) -> Faulty:
    x = g.fresh(g.main, g.choices.choose(((2,), (3, 2), (2, 1, 4))))
    shape = shape_of(x)
    axis = g.choices.choose([a for a, e in enumerate(shape) if e != 1])
    target = changed(shape, axis, g.choices.choose((shape[axis] + 1, 1, 0)))
    return Faulty(op((*target, 5), tuple(range(len(shape)))), (x,))


@FAULTS.instruction("ShapeMismatch", *CONTRACTIONS)
def paired_extents_differ(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    axis = any_axis(g, x)
    y = g.fresh(x.dtype, (2, shape_of(x)[axis] + 1))
    batch = g.choices.pick(2)
    return Faulty(op((), (), (axis,), (1,)) if batch else op((axis,), (1,), (), ()), (x, y))


@FAULTS.instruction("ShapeMismatch", *CONTRACTIONS, late=True)
def exchanged_symbols(g: Growth, op: type[Any]) -> Faulty:
    """[n, m] and [m, n] along both axes or one: a program for square matrices."""
    dtype = g.choices.choose((DType.F64, DType.F32))
    x, y = g.fresh(dtype, (2, 3)), g.fresh(dtype, (3, 2))
    axes = g.choices.choose(((0, 1), (1,), (0,)))
    return Faulty(op(axes, axes, (), ()), (x, y), symbolic=True)


@FAULTS.instruction("ShapeMismatch", *ARITHMETIC, late=True)
def other_symbols(g: Growth, op: type[Any]) -> Faulty:
    x = g.fresh(DType.F64, (2, 3))
    y = g.fresh(x.dtype, g.choices.choose(((3, 3), (2, 2), (2, 1), (3, 2))))
    return Faulty(_plain(op), (x, y), symbolic=True)


@FAULTS.instruction("ShapeMismatch", *ARITHMETIC, late=True)
def inputs_that_contradict_a_symbol(g: Growth, op: type[Any]) -> Faulty:
    """[n, m] twice, whose values have other extents."""
    x = g.fresh(DType.F64, (2, 3))
    y = g.fresh(x.dtype, g.choices.choose(((3, 3), (2, 2), (2, 1), (3, 2))))
    return Faulty(_plain(op), (x, y), tied=True)


@FAULTS.instruction("DTypeMismatch", *_BINARY, *CONTRACTIONS)
def other_dtype(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op)
    y = g.fresh(another_dtype(x.dtype), shape_of(x))
    return Faulty(_plain(op), (x, y) if g.choices.pick(2) else (y, x))


@FAULTS.instruction("DTypeMismatch", ops.Select, ops.Clamp)
def other_dtype_of_three(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Clamp)
    other = DType.F32 if x.dtype is DType.F64 else DType.F64
    dtypes = [DType.Bool, x.dtype, x.dtype] if op is ops.Select else [x.dtype] * 3
    dtypes[g.choices.pick(3)] = other
    return Faulty(op(), tuple(g.fresh(d, shape_of(x)) for d in dtypes))


@FAULTS.instruction(
    "Unsupported",
    *ARITHMETIC,
    ops.Maximum,
    ops.Minimum,
    ops.Negate,
    ops.Abs,
    ops.Sign,
    ops.Conj,
    *_UNARY,
    ops.Clamp,
    *CONTRACTIONS,
    *REDUCTIONS,
)
def dtype_that_the_op_lacks(g: Growth, op: type[Any]) -> Faulty:
    refused = [d for d in (DType.Bool, DType.I32, DType.C64) if d not in op.dtypes] or [DType.Bool, DType.C32]
    x = g.fresh(g.choices.choose(refused), (2, 3))
    return Faulty(_plain(op), tuple(x if i == 0 else g.fresh(x.dtype, (2, 3)) for i in range(op.arity)))


@FAULTS.instruction("Unsupported", ops.Compare)
def order_of_what_has_none(g: Growth, op: type[Any]) -> Faulty:
    """Bools and complex numbers, which are equal or not."""
    direction = g.choices.choose([d for d in CompareDir if d is not CompareDir.Eq])
    x = g.fresh(g.choices.choose((DType.Bool, DType.C64, DType.C32)), (2, 3))
    return Faulty(op(direction), (x, g.fresh(x.dtype, (2, 3))))


@FAULTS.instruction("Unsupported", ops.Convert)
def dtype_that_the_engine_lacks(g: Growth, op: type[Any]) -> Faulty:
    return Faulty(op(g.choices.choose(FOREIGN_DTYPES)), (g.fresh(g.main, (2, 3)),))
