"""What each op of StableHLO becomes: `ROWS`, by the op's name without its dialect.

A row gets the operation (its attributes) and the values of its operands, and gives the values of its results. What needs
more than an op or two is in `composed`; regions and calls are in `reader`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    CompareDir,
    Concatenate,
    Conj,
    Cos,
    Divide,
    DotGeneral,
    DynamicSlice,
    DynamicUpdateSlice,
    Exp,
    Expm1,
    Extension,
    Gather,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Reverse,
    Rsqrt,
    Scatter,
    Sin,
    Slice,
    Sqrt,
    Tanh,
    TensorType,
    free_axes,
)
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies, composed, windows
from tenferro_ref.stablehlo.loader.bindings import attribute, dense, fields, refuse, tensor_type
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.tracer import Tracer

#: `row(tracer, operation, *operands) -> results`
Row = Callable[..., Sequence[Value]]
ROWS: dict[str, Row] = {}


def _row(*names: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """The decorated function gives the one result of each op named."""

    def add(function: Callable[..., Value]) -> Callable[..., Value]:
        for name in names:
            ROWS[name] = lambda *given: (function(*given),)
        return function

    return add


def _result(op: Any) -> TensorType:
    return tensor_type(op.operation.results[0].type, "result")


def _shape(op: Any) -> tuple[int, ...]:
    return tuple(e for e in _result(op).shape if isinstance(e, int))


def _axes(op: Any, name: str) -> tuple[int, ...]:
    return tuple(attribute(op, name, ()))


# --- elementwise ------------------------------------------------------------------------------------------------------

_SAME: dict[str, Op] = {
    "abs": Abs(), "add": Add(), "cosine": Cos(), "divide": Divide(), "exponential": Exp(),
    "exponential_minus_one": Expm1(), "log": Log(), "log_plus_one": Log1p(), "maximum": Maximum(), "minimum": Minimum(),
    "multiply": Multiply(), "negate": Negate(), "power": Pow(), "rsqrt": Rsqrt(), "sine": Sin(), "sqrt": Sqrt(),
    "tanh": Tanh(),
}  # fmt: skip
_COMPOSED: dict[str, Callable[..., Value]] = {
    "atan2": composed.atan2, "ceil": composed.ceil, "complex": composed.complex_, "floor": composed.floor,
    "imag": composed.imag, "is_finite": composed.is_finite, "logistic": composed.logistic, "popcnt": composed.popcnt,
    "real": composed.real, "shift_left": composed.shift_left,
    "shift_right_arithmetic": composed.shift_right_arithmetic, "shift_right_logical": composed.shift_right_logical,
    "sign": composed.sign, "subtract": composed.subtract, "tan": composed.tan,
}  # fmt: skip

for _name, _op in _SAME.items():
    ROWS[_name] = lambda b, op, *given, _op=_op: (b.apply(_op, *given),)
for _name, _function in _COMPOSED.items():
    ROWS[_name] = lambda b, op, *given, _function=_function: (_function(*given),)
for _name in ("and", "or", "xor", "not"):
    ROWS[_name] = lambda b, op, *given, _name=_name: (composed.logical(_name, *given),)
ROWS["optimization_barrier"] = lambda b, op, *given: given


@_row("round_nearest_even", "round_nearest_afz")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return composed.round_nearest(x, op.operation.name.endswith("even"))


@_row("remainder")
def _(b: Tracer, op: Any, x: Value, y: Value) -> Value:
    if not x.dtype.is_int:
        raise refuse(op, f"the exact remainder of {x.dtype} is no composition of the engine's ops")
    return composed.remainder(x, y)


@_row("compare")
def _(b: Tracer, op: Any, x: Value, y: Value) -> Value:
    if x.dtype.is_float and "TOTALORDER" in attribute(op, "compare_type", ""):
        raise refuse(op, "the engine has no total order of floats")
    direction = attribute(op, "comparison_direction").split()[-1].rstrip(">")
    if direction == "NE":
        return ~b.apply(Compare(CompareDir.Eq), x, y)
    return b.apply(Compare(CompareDir[direction.capitalize()]), x, y)


@_row("select")
def _(b: Tracer, op: Any, pred: Value, on_true: Value, on_false: Value) -> Value:
    return select(pred if pred.ndim == on_true.ndim else spread(pred, static(on_true)), on_true, on_false)


@_row("clamp")
def _(b: Tracer, op: Any, lower: Value, x: Value, upper: Value) -> Value:
    bounds = (v if v.ndim == x.ndim else spread(v, static(x)) for v in (lower, upper))
    return b.apply(Clamp(), x, *bounds)


@_row("convert")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return x.astype(_result(op).dtype)


@_row("reduce_precision")
def _(b: Tracer, op: Any, x: Value) -> Value:
    info = np.finfo(x.dtype.value)
    if attribute(op, "exponent_bits") < info.nexp or attribute(op, "mantissa_bits") < info.nmant:
        raise refuse(op, f"the engine has no format narrower than {x.dtype}")
    return x


# --- arrays that the module brings along ------------------------------------------------------------------------------


@_row("constant")
def _(b: Tracer, op: Any) -> Value:
    return b.array(dense(op, _result(op)))


@_row("iota")
def _(b: Tracer, op: Any) -> Value:
    type_, axis = _result(op), attribute(op, "iota_dimension")
    shape = _shape(op)
    line = np.arange(shape[axis]).astype(type_.dtype.numpy)
    return b.array(np.broadcast_to(line.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape))


# --- structural -------------------------------------------------------------------------------------------------------


@_row("transpose")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.transpose(x, _axes(op, "permutation"))


@_row("reshape")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return _row_major(b, x, _shape(op))


def _row_major(b: Tracer, x: Value, shape: tuple[int, ...]) -> Value:
    """Column-major between reversed axes. The orders differ only where two extents other than 1 change."""
    proper = [tuple(e for e in s if e != 1) for s in (x.shape, shape)]
    if proper[0] == proper[1] or max(map(len, proper)) < 2 or prod(shape) == 0:
        return x if x.shape == shape else b.apply(Reshape(shape), x)
    x = b.transpose(x, range(x.ndim)[::-1])
    if x.shape != shape[::-1]:
        x = b.apply(Reshape(shape[::-1]), x)
    return b.transpose(x, range(len(shape))[::-1])


@_row("broadcast_in_dim")
def _(b: Tracer, op: Any, x: Value) -> Value:
    shape, dims = _shape(op), _axes(op, "broadcast_dimensions")
    return x if x.shape == shape and dims == tuple(range(x.ndim)) else b.apply(BroadcastInDim(shape, dims), x)


@_row("reverse")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.apply(Reverse(_axes(op, "dimensions")), x)


@_row("concatenate")
def _(b: Tracer, op: Any, *parts: Value) -> Value:
    return b.apply(Concatenate(attribute(op, "dimension")), *parts)


@_row("slice")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return b.apply(Slice(*(_axes(op, name) for name in ("start_indices", "limit_indices", "strides"))), x)


@_row("pad")
def _(b: Tracer, op: Any, x: Value, value: Value) -> Value:
    edges = (_axes(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return windows.pad(b, x, value, *edges)


# --- indexing ---------------------------------------------------------------------------------------------------------


def _starts(b: Tracer, starts: Sequence[Value]) -> Value:
    return b.apply(Concatenate(0), *(spread(s, (1,)) for s in starts))


@_row("dynamic_slice")
def _(b: Tracer, op: Any, x: Value, *starts: Value) -> Value:
    return b.apply(DynamicSlice(_axes(op, "slice_sizes")), x, _starts(b, starts)) if starts else x


@_row("dynamic_update_slice")
def _(b: Tracer, op: Any, x: Value, update: Value, *starts: Value) -> Value:
    return b.apply(DynamicUpdateSlice(), x, update, _starts(b, starts)) if starts else update


def _with_batch(b: Tracer, indices: Value, dim: int, batching: Sequence[int]) -> Value:
    """Index vectors with their position along the `batching` axes in front: what batching axes of the operand stand for."""
    if not batching:
        return indices
    shape = static(indices)
    if dim == len(shape):
        shape = (*shape, 1)
        indices = b.apply(Reshape(shape), indices)
    one = (*shape[:dim], 1, *shape[dim + 1 :])
    lines = [np.arange(shape[a], dtype=indices.dtype.numpy) for a in batching]
    places = [
        line.reshape([-1 if i == a else 1 for i in range(len(one))]) for line, a in zip(lines, batching, strict=True)
    ]
    return b.apply(Concatenate(dim), *(b.array(np.broadcast_to(place, one)) for place in places), indices)


@_row("gather")
def _(b: Tracer, op: Any, x: Value, indices: Value) -> Value:
    dims = fields(op, "dimension_numbers")
    batch, dim = dims.get("operand_batching_dims", []), dims.get("index_vector_dim", 0)
    gather = Gather(
        tuple(dims.get("offset_dims", ())),
        tuple(sorted([*dims.get("collapsed_slice_dims", []), *batch])),
        (*batch, *dims.get("start_index_map", ())),
        dim,
        _axes(op, "slice_sizes"),
    )
    return b.apply(gather, x, _with_batch(b, indices, dim, dims.get("start_indices_batching_dims", [])))


_BODIES: dict[str, Op] = {"add": Add(), "multiply": Multiply(), "maximum": Maximum(), "minimum": Minimum()}


@_row("scatter")
def _(b: Tracer, op: Any, *operands: Value) -> Value:
    """The engine's Scatter adds. What else a body does is done once an element, to the sum of its one update."""
    found = bodies.results(op.operation.regions[0])
    body = bodies.fold(found[0], 0, 1) if found is not None and len(operands) == 3 else None
    if body not in (*bodies.FOLDS, "right"):
        raise refuse(
            op, "only one operand and a body of add, multiply, maximum, minimum or the update itself can be read"
        )
    x, indices, updates = operands
    dims = fields(op, "scatter_dimension_numbers")
    batch, dim = dims.get("input_batching_dims", []), dims.get("index_vector_dim", 0)
    scatter = Scatter(
        tuple(dims.get("update_window_dims", ())),
        tuple(sorted([*dims.get("inserted_window_dims", []), *batch])),
        (*batch, *dims.get("scatter_dims_to_operand_dims", ())),
        dim,
    )
    indices = _with_batch(b, indices, dim, dims.get("scatter_indices_batching_dims", []))
    if body == "add" or (body == "or" and x.dtype is DType.Bool):
        return b.apply(scatter, x, indices, updates)
    count = prod(e for a, e in enumerate(static(updates)) if a not in scatter.update_window_dims)
    if count > 1 and not attribute(op, "unique_indices", False):
        if body != "right":
            raise refuse(op, f"a body of {body} needs indices that are declared unique")
        updates = select(_last(b, op, scatter, indices, updates), updates, _nothing(updates))
    hit = b.apply(scatter, full(x, False, DType.Bool), indices, full(updates, True, DType.Bool))
    update = b.apply(scatter, _nothing(x), indices, updates)
    if body == "right":
        new = update
    else:
        new = composed.logical(body, x, update) if body in ("and", "or") else b.apply(_BODIES[str(body)], x, update)
    return select(hit, new, x)


def _nothing(x: Value) -> Value:
    """What changes no number that it is added to: -0, since +0 would change that."""
    return full(x, False) if x.dtype is DType.Bool else -full(x, 0)


#: The most index vectors that are compared pair by pair.
_MOST_INDICES = 4096


def _last(b: Tracer, op: Any, scatter: Scatter, indices: Value, updates: Value) -> Value:
    """Whether no later update has the same index vector, for each element of `updates`: the last one is what stays.

    Windows along an axis that is indexed must be a single element, or they could overlap in part.
    """
    axes = [a for a in range(updates.ndim) if a not in scatter.update_window_dims]
    rank = len(scatter.inserted_window_dims) + len(scatter.update_window_dims)
    kept = free_axes(rank, scatter.inserted_window_dims)
    shape, count = static(updates), prod(static(updates)[a] for a in axes)
    for axis, window in zip(kept, scatter.update_window_dims, strict=True):
        if axis in scatter.scatter_dims_to_operand_dims and shape[window] != 1:
            raise refuse(op, "windows that may overlap in part need indices that are declared unique")
    if count > _MOST_INDICES:
        raise refuse(op, f"more than {_MOST_INDICES} indices that are not declared unique")
    dim = scatter.index_vector_dim
    order = [a for a in range(indices.ndim) if a != dim] + ([dim] if dim < indices.ndim else [])
    components = len(scatter.scatter_dims_to_operand_dims)
    vectors = _row_major(b, b.transpose(indices, order), (count, components))
    pairs = [b.apply(BroadcastInDim((count, count, components), (a, 2)), vectors) for a in (0, 1)]
    same = b.apply(ReduceMin((2,)), pairs[0] == pairs[1])
    later = b.array(np.triu(np.ones((count, count), np.bool_), 1))
    last = ~b.apply(ReduceMax((1,)), later & same)
    return b.apply(BroadcastInDim(shape, tuple(axes)), _row_major(b, last, tuple(shape[a] for a in axes)))


# --- contraction and reductions ---------------------------------------------------------------------------------------


@_row("dot_general")
def _(b: Tracer, op: Any, lhs: Value, rhs: Value) -> Value:
    dims = fields(op, "dot_dimension_numbers")
    dtype = _result(op).dtype
    lists = [
        tuple(dims.get(f"{side}_{role}_dimensions", ()))
        for role in ("contracting", "batching")
        for side in ("lhs", "rhs")
    ]
    product = b.apply(DotGeneral(*lists), lhs.astype(dtype), rhs.astype(dtype))
    batches = len(lists[2])
    frees = product.ndim - batches
    return b.transpose(product, [*range(frees, product.ndim), *range(frees)])


_REDUCE: dict[str, Callable[[tuple[int, ...]], Op]] = {
    "add": ReduceSum, "multiply": ReduceProd, "maximum": ReduceMax, "minimum": ReduceMin,
}  # fmt: skip


def _identity(name: str, dtype: DType) -> np.generic | None:
    if name in ("add", "multiply"):
        return dtype.numpy.type(name == "multiply")
    if dtype.is_complex:
        return None
    sign = -1 if name == "maximum" else 1
    if dtype is DType.Bool:
        return np.bool_(sign > 0)
    info = np.iinfo(dtype.value) if dtype.is_int else None
    return dtype.numpy.type(sign * np.inf if info is None else info.min if sign < 0 else info.max)


def _folded(b: Tracer, op: Any, name: str, x: Value, init: Value, axes: tuple[int, ...]) -> Value:
    if name in ("and", "or"):
        if x.dtype is not DType.Bool:
            raise refuse(op, f"a reduction by {name} of integers is none of the engine's")
        name = {"and": "minimum", "or": "maximum"}[name]
    reduced = b.apply(_REDUCE[name](axes), x)
    identity = _identity(name, x.dtype)
    if identity is not None and init is b.array(np.asarray(identity)):
        return reduced
    return b.apply(_BODIES[name], spread(init, static(reduced)), reduced)


def _reduce(b: Tracer, op: Any, *operands: Value) -> Sequence[Value]:
    count = len(operands) // 2
    arrays, inits, axes = operands[:count], operands[count:], _axes(op, "dimensions")
    found = bodies.results(op.operation.regions[0])
    if found is not None:
        names = [bodies.fold(expression, i, count + i) for i, expression in enumerate(found)]
        if all(name in bodies.FOLDS for name in names):
            each = zip(names, arrays, inits, strict=True)
            return [_folded(b, op, str(name), x, init, axes) for name, x, init in each]
        name = bodies.extremum_with_index(found)
        if name is not None and arrays[1].dtype.is_int:
            return _extremum_with_index(b, op, name, arrays, inits, axes)
    raise refuse(op, "its body is none of add, multiply, maximum, minimum, and, or, argmax, argmin")


ROWS["reduce"] = _reduce


@_row("reduce_window")
def _(b: Tracer, op: Any, *operands: Value) -> Value:
    found = bodies.results(op.operation.regions[0])
    name = bodies.fold(found[0], 0, 1) if found is not None and len(operands) == 2 else None
    if name not in bodies.FOLDS:
        raise refuse(op, "only one operand and a body of add, multiply, maximum, minimum, and, or can be read")
    x, init = operands
    view = windows.window_view(b, op, x, init)
    return _folded(b, op, str(name), view, init, tuple(range(x.ndim, view.ndim)))


@_row("convolution")
def _(b: Tracer, op: Any, lhs: Value, rhs: Value) -> Value:
    return windows.convolution(b, op, lhs, rhs, _result(op).dtype)


def _extremum_with_index(
    b: Tracer, op: Any, name: str, arrays: Sequence[Value], inits: Sequence[Value], axes: tuple[int, ...]
) -> tuple[Value, Value]:
    """The extremum, and the smallest index where it stands; NaN is the extremum where there is one."""
    (x, index), (start, first) = arrays, inits
    best = _folded(b, op, name, x, start, axes)
    shape = static(best)
    everywhere = b.apply(BroadcastInDim(static(x), free_axes(x.ndim, axes)), best)

    def holds(value: Value, extremum: Value) -> Value:
        equal = b.apply(Compare(CompareDir.Eq), value, extremum)
        return composed.logical("or", equal, value != value) if value.dtype.is_float else equal

    last = full(index, np.iinfo(index.dtype.value).max)
    place = b.apply(ReduceMin(axes), select(holds(x, everywhere), index, last))
    earlier = b.apply(Minimum(), place, spread(first, shape))
    return best, select(holds(spread(start, shape), best), earlier, place)


# --- linear algebra and transforms: batch axes first there, last here ---------------------------------------------------


def _matrices(b: Tracer, x: Value, to_last: bool) -> Value:
    batch = x.ndim - 2
    return b.transpose(x, [batch, batch + 1, *range(batch)] if to_last else [*range(2, x.ndim), 0, 1])


def _adjoint(b: Tracer, a: Value) -> Value:
    turned = b.transpose(a, [1, 0, *range(2, a.ndim)])
    return b.apply(Conj(), turned) if a.dtype.is_complex else turned


def _cholesky(b: Tracer, x: Value, lower: bool) -> Value:
    """The engine's is the lower factor, from the lower triangle: the upper one is the adjoint of the adjoint's."""
    a = _matrices(b, x, True)
    factor = b.apply(Extension.of(linalg.FAMILY, "Cholesky", {}), a if lower else _adjoint(b, a))
    return _matrices(b, factor if lower else _adjoint(b, factor), False)


def _triangular_solve(b: Tracer, a: Value, rhs: Value, adjoint: bool, config: dict[str, bool]) -> Value:
    matrix = _matrices(b, a, True)
    if adjoint and a.dtype.is_complex:
        matrix = b.apply(Conj(), matrix)
    solve = Extension.of(linalg.FAMILY, "TriangularSolve", config)
    return _matrices(b, b.apply(solve, matrix, _matrices(b, rhs, True)), False)


@_row("cholesky")
def _(b: Tracer, op: Any, x: Value) -> Value:
    return _cholesky(b, x, attribute(op, "lower", False))


@_row("triangular_solve")
def _(b: Tracer, op: Any, a: Value, rhs: Value) -> Value:
    kind = attribute(op, "transpose_a")
    config = {name: bool(attribute(op, name)) for name in ("left_side", "lower", "unit_diagonal")}
    config["transpose_a"] = "NO_TRANSPOSE" not in kind
    return _triangular_solve(b, a, rhs, "ADJOINT" in kind, config)


def _custom_call(b: Tracer, op: Any, *operands: Value) -> Sequence[Value]:
    """What JAX calls on CPU for the two ops above; LAPACK's flags are letters."""
    target = attribute(op, "call_target_name")
    found = re.fullmatch(r"lapack_[sdcz](potrf|trsm)_ffi", target)
    if found is None:
        raise refuse(op, f"nothing is known of the target {target!r}")
    flags = {
        name: chr(int(code))
        for name, code in re.findall(r"(\w+) = (\d+) : ui8", str(op.attributes["mhlo.backend_config"]))
    }
    if found[1] == "potrf":  # a matrix that has no factor is the engine's error
        info = b.array(np.zeros(operands[0].shape[:-2], np.int32))  # type: ignore[arg-type]
        return _cholesky(b, operands[0], flags["uplo"] == "L"), info
    config = {"left_side": flags["side"] == "L", "lower": flags["uplo"] == "L", "unit_diagonal": flags["diag"] == "U"}
    config["transpose_a"] = flags["trans_x"] != "N"
    return (_triangular_solve(b, operands[0], operands[1], flags["trans_x"] == "C", config),)


ROWS["custom_call"] = _custom_call


@_row("fft")
def _(b: Tracer, op: Any, x: Value) -> Value:
    """Over several axes one after another, the last one first (it is the real one), or last for an inverse real one."""
    kind = attribute(op, "fft_type").split()[-1].rstrip(">").lower()
    lengths = _axes(op, "fft_length")
    first = x.ndim - len(lengths)
    steps = [(first + i, n, kind) for i, n in enumerate(lengths)]
    complex_kind = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    steps[:-1] = [(axis, n, complex_kind) for axis, n, _ in steps[:-1]]
    for axis, n, name in steps if kind == "irfft" else reversed(steps):
        x = b.apply(Extension.of(fft.FAMILY, name, {"n": n, "axis": axis, "norm": "Backward"}), x)
    return x
