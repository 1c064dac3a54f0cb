"""Faults: operands and settings that the ops of the extension families refuse."""

from __future__ import annotations

from typing import Any

from fuzz.generate.faults.fault import Faults, Faulty, another_dtype, changed
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import Shape
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import einsum, fft, linalg

FAULTS = Faults()

#: Ops of one matrix, those of them that take a square one only, those that have a gauge, and ops that have a right-hand side.
_OF_ONE = tuple(name for name, op in linalg.OPS.items() if len(op.operands) == 1)
_SQUARE = tuple(name for name in _OF_ONE if linalg.OPS[name].operands == (("", "nn"),))
_GAUGED = tuple(name for name in _OF_ONE if "gauge" in linalg.OPS[name].config)
_SOLVERS = ("Solve", "TriangularSolve", "FullPivLuSolve")


def _dtype(g: Growth) -> DType:
    return g.choices.choose((DType.F64, DType.F32, DType.C64, DType.C32))


def _linalg(g: Growth, name: str, *operands: tuple[DType, Shape], **settings: str) -> Faulty:
    values = tuple(g.fresh(dtype, shape) for dtype, shape in operands)
    return Faulty(ops.Extension.of(linalg.FAMILY, name, settings), values, blamed=name)


@FAULTS.instruction("ShapeMismatch", ops.Extension)
def matrix_that_is_not_square(g: Growth, op: type[Any]) -> Faulty:
    shape = g.choices.choose(((2, 3), (3, 2), (1, 2, 2), (4, 3, 2)))
    return _linalg(g, g.choices.choose(_SQUARE), (_dtype(g), shape))


@FAULTS.instruction("ShapeMismatch", ops.Extension)
def right_hand_side_that_does_not_fit(g: Growth, op: type[Any]) -> Faulty:
    """Other rows than the matrix, or another number of matrices: batches are not broadcast."""
    dtype, n, batch = _dtype(g), 2 + g.choices.pick(2), g.choices.choose(((), (1,), (2,), (2, 3)))
    sides = (n, 2, *batch)
    axis = g.choices.choose((0, *range(2, len(sides))))
    wrong = changed(sides, axis, sides[axis] + 1 + g.choices.pick(2))
    return _linalg(g, g.choices.choose(_SOLVERS), (dtype, (n, n, *batch)), (dtype, wrong))


@FAULTS.instruction("RankMismatch", ops.Extension)
def vector_for_a_matrix(g: Growth, op: type[Any]) -> Faulty:
    return _linalg(g, g.choices.choose(_OF_ONE), (_dtype(g), g.choices.choose(((3,), ()))))


@FAULTS.instruction("RankMismatch", ops.Extension)
def right_hand_side_of_another_rank(g: Growth, op: type[Any]) -> Faulty:
    dtype = _dtype(g)
    shapes: tuple[tuple[Shape, Shape], ...] = (((2, 2), (2,)), ((3, 3), (3, 1, 1)), ((2, 2, 2), (2, 1)))
    matrix, side = g.choices.choose(shapes)
    return _linalg(g, g.choices.choose(_SOLVERS), (dtype, matrix), (dtype, side))


@FAULTS.instruction("DTypeMismatch", ops.Extension)
def right_hand_side_of_another_dtype(g: Growth, op: type[Any]) -> Faulty:
    dtype = _dtype(g)
    return _linalg(g, g.choices.choose(_SOLVERS), (dtype, (2, 2)), (another_dtype(dtype), (2, 1)))


@FAULTS.instruction("Unsupported", ops.Extension)
def matrix_of_integers(g: Growth, op: type[Any]) -> Faulty:
    dtype = g.choices.choose((DType.I32, DType.I64, DType.Bool))
    return _linalg(g, g.choices.choose(_OF_ONE), (dtype, (2, 2)))


@FAULTS.instruction("InvalidArgument", ops.Extension)
def gauge_of_another_op(g: Growth, op: type[Any]) -> Faulty:
    """The name of a gauge that other ops have."""
    name = g.choices.choose(_GAUGED)
    others = {linalg.OPS[other].gauge for other in _GAUGED} - {linalg.OPS[name].gauge}
    faulty = _linalg(g, name, (_dtype(g), (2, 2)), gauge=g.choices.choose(sorted(others)))
    return faulty._replace(argument="gauge")


def _transform(g: Growth, name: str, dtype: DType, **settings: Any) -> Faulty:
    made = ops.Extension.of(fft.FAMILY, name, settings)
    return Faulty(made, (g.fresh(dtype, (3, 2)),), axis=settings.get("axis"), blamed=name)


@FAULTS.instruction("AxisOutOfBounds", ops.Extension)
def axis_of_a_transform(g: Growth, op: type[Any]) -> Faulty:
    name = g.choices.choose(("fft", "rfft", "ifft", "irfft"))
    dtype = g.choices.choose([d for d in DType if d in fft.DTYPES[name]])
    return _transform(g, name, dtype, axis=g.choices.choose((2, -3, 9)))


@FAULTS.instruction("InvalidArgument", ops.Extension)
def length_of_a_transform(g: Growth, op: type[Any]) -> Faulty:
    faulty = _transform(g, g.choices.choose(("fft", "ifft")), DType.C64, n=-g.choices.pick(3))
    return faulty._replace(argument="n")


@FAULTS.instruction("Unsupported", ops.Extension)
def dtype_of_a_transform(g: Growth, op: type[Any]) -> Faulty:
    name, refused = g.choices.choose(
        (("rfft", DType.C64), ("irfft", DType.F64), ("ifft", DType.F32), ("fft", DType.I64), ("fft", DType.Bool))
    )
    return _transform(g, name, refused)


@FAULTS.instruction("ShapeMismatch", ops.Extension)
def label_of_two_extents(g: Growth, op: type[Any]) -> Faulty:
    """Within an operand, or between two; an extent of 1 is not broadcast."""
    dtype = _dtype(g)
    equation, shapes = g.choices.choose(
        (
            ("ij,jk->ik", ((2, 3), (4, 2))),
            ("ij,jk->ik", ((2, 1), (3, 2))),
            ("ii->i", ((2, 3),)),
            ("ab,ab->", ((2, 3), (3, 2))),
            ("i,j,ij->j", ((2,), (3,), (3, 3))),
            ("i,ij,ik->jk", ((2,), (2, 3), (3, 2))),
            ("ij,j,jk->ik", ((2, 3), (1,), (3, 2))),
        )
    )
    return _einsum(g, equation, dtype, shapes)


@FAULTS.instruction("RankMismatch", ops.Extension)
def labels_that_are_not_as_many_as_axes(g: Growth, op: type[Any]) -> Faulty:
    equation, shapes = g.choices.choose((("ij->ji", ((2, 3, 2),)), ("ij,j->i", ((2,), (2,))), ("i,i->", ((2,), ()))))
    return _einsum(g, equation, _dtype(g), shapes)


def _einsum(g: Growth, equation: str, dtype: DType, shapes: tuple[Shape, ...]) -> Faulty:
    made = ops.Extension.of(einsum.FAMILY, "einsum", {"equation": equation})
    return Faulty(made, tuple(g.fresh(dtype, shape) for shape in shapes), blamed="einsum")
