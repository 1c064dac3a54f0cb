"""Random small programs over the ops that have enclosures, and hostile inputs for them; no Hypothesis, for bulk runs."""

from __future__ import annotations

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import GraphBuilder, GraphProgram, Value

UNARY = tuple(op for op in ops.ELEMENTWISE if op.arity == 1 and op is not ops.Conj)
BINARY = (ops.Add, ops.Multiply, ops.Divide, ops.Subtract, ops.Multiply, ops.Pow, ops.Maximum, ops.Minimum)
SHAPES = ((), (3,), (2, 2), (2, 3), (3, 2), (1, 3), (8,))


def hostile(dtype: DType) -> np.ndarray:
    """Values that break things."""
    info = np.finfo(dtype.numpy.name)
    tiny = float(info.smallest_normal)
    values = [
        0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 10.0, 0.1, -7.25, 1 + float(info.eps), 1 - float(info.eps) / 2,
        float(info.max), -float(info.max), tiny, -tiny, tiny / 2, -tiny * 3 / 4, float(info.smallest_subnormal),
        np.inf, -np.inf, np.nan, 1e10, -1e-10, 1e30, 1e-30, float(info.max) / 2, 88.5, 89.0, -104.0, 710.0, -745.0, 1e5,
        np.pi, 2.0**24 + 1, 2.0**53, 1e-38, 1e300 if dtype is DType.F64 else 1e38,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array(values).astype(dtype.numpy)


def values(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary and hostile values mixed."""
    if dtype.is_float:
        ordinary = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
        kind = rng.integers(3)
        if kind == 0:
            ordinary = rng.integers(-4, 5, shape).astype(float)
        chosen = rng.choice(hostile(dtype), shape).astype(float)
        share = rng.choice([0.0, 0.1, 0.5])
        return np.array(np.where(rng.random(shape) < share, chosen, ordinary).astype(dtype.numpy), order="F")
    if dtype is DType.Bool:
        return np.array(rng.random(shape) < 0.5, order="F")
    limits = np.iinfo(dtype.numpy.name)
    wild = rng.choice(np.array([limits.min, limits.max, 0, -1, 1, limits.min + 1], dtype.numpy), shape)
    chosen = np.where(rng.random(shape) < 0.3, wild, rng.integers(-9, 10, shape))
    return np.array(chosen.astype(dtype.numpy), order="F")


def random_program(
    rng: np.random.Generator, length: int, dtypes: tuple[DType, ...] = (DType.F32, DType.F64), extra: bool = True
) -> tuple[GraphProgram, list[np.ndarray]]:
    """A program of about `length` instructions, every one of them an output or read, with inputs."""
    b = GraphBuilder()
    dtype = dtypes[rng.integers(len(dtypes))]
    shape = SHAPES[rng.integers(len(SHAPES))]
    pool = [b.input(dtype, shape) for _ in range(rng.integers(1, 4))]
    inputs = list(pool)
    count = 0
    while count < length:
        made = _step(rng, b, pool, dtype, extra)
        if made is not None:
            pool.append(made)
            count += 1
    program = b.build(*_outputs(rng, b, pool, inputs))
    return program, [values(rng, v.dtype, v.shape) for v in inputs]  # type: ignore[arg-type]


def _outputs(rng: np.random.Generator, b: GraphBuilder, pool: list[Value], inputs: list[Value]) -> list[Value]:
    read = {s for ins in b._instructions for s in ins.input_slots}
    given = {v.slot for v in inputs}
    ends = [v for v in pool if v.slot not in read | given]
    return ends or [pool[-1]]


def _step(rng: np.random.Generator, b: GraphBuilder, pool: list[Value], dtype: DType, extra: bool) -> Value | None:
    recent = pool[-3:] if rng.random() < 0.7 else pool
    floats = [v for v in recent if v.dtype.is_float] or [v for v in pool if v.dtype.is_float]
    x = floats[rng.integers(len(floats))]
    rank = len(x.shape)
    roll = rng.random()
    try:
        if roll < 0.30:
            return b.apply(UNARY[rng.integers(len(UNARY))](), x)
        if roll < 0.62:
            op = BINARY[rng.integers(len(BINARY))]()
            if rng.random() < 0.35:
                y = b.constant(rng.choice(hostile(x.dtype)), x.dtype)
                if isinstance(op, (ops.Maximum, ops.Minimum)) or rng.random() < 0.5:
                    y = y.broadcast_to(x.shape)
            else:
                same = [v for v in pool if v.dtype is x.dtype and v.shape == x.shape]
                y = same[rng.integers(len(same))]
            return b.apply(op, *((x, y) if rng.random() < 0.7 or isinstance(op, ops.Pow) else (y, x)))
        if roll < 0.70 and rank:
            axes = tuple(sorted(rng.choice(rank, rng.integers(1, rank + 1), replace=False).tolist()))
            kinds = (
                (ops.ReduceSum, ops.ReduceSum, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd)
                if extra
                else (ops.ReduceSum,)
            )
            return b.apply(kinds[rng.integers(len(kinds))](axes), x)
        if roll < 0.76 and rank:
            others = [v for v in pool if v.dtype is x.dtype and v.shape and v.shape[0] == x.shape[-1]]
            if others:
                return b.apply(ops.DotGeneral((rank - 1,), (0,), (), ()), x, others[rng.integers(len(others))])
            return None
        if roll < 0.82:
            if roll < 0.79 and rank:
                return b.apply(ops.Transpose(tuple(rng.permutation(rank).tolist())), x)
            size = int(np.prod(x.shape))  # type: ignore[arg-type]
            return b.apply(ops.Reshape((size,) if rank != 1 else (1, size)), x)
        if roll < 0.86:
            if rank < 3:
                return b.apply(ops.BroadcastInDim((*x.shape, 2), tuple(range(rank))), x)  # type: ignore[arg-type]
            return None
        if roll < 0.90:
            to = [DType.F32, DType.F64, DType.I32][rng.integers(3)]
            y = b.apply(ops.Convert(to), x)
            return b.apply(ops.Convert(x.dtype), y) if rng.random() < 0.5 else y
        if roll < 0.95:
            same = [v for v in pool if v.dtype is x.dtype and v.shape == x.shape]
            y, z = (same[rng.integers(len(same))] for _ in range(2))
            pred = b.apply(ops.Compare(list(CompareDir)[rng.integers(5)]), x, y)
            return b.apply(ops.Select(), pred, y if rng.random() < 0.5 else x, z)
        if extra and rank:
            choice = rng.integers(5)
            if choice == 0:
                return b.apply(ops.Reverse((0,)), x)
            if choice == 1:
                return b.apply(ops.Concatenate(0), x, x)
            if choice == 2 and rank > 1:
                return b.apply(ops.Tril(0), x)
            if choice == 3:
                return b.apply(ops.Slice((0,) * rank, x.shape, (2,) * rank), x)  # type: ignore[arg-type]
            same = [v for v in pool if v.dtype is x.dtype and v.shape == x.shape]
            y, z = (same[rng.integers(len(same))] for _ in range(2))
            return b.apply(ops.Clamp(), x, y, z)
    except TenferroError:
        return None
    return None


# --- what contracts and is rewritten -----------------------------------------------------------------------------------


def chain(rng: np.random.Generator) -> tuple[GraphProgram, list[np.ndarray]]:
    """Programs that contract and rewrite: products into sums, chains of divisions, roots, constants, sums of sums."""
    b = GraphBuilder()
    dtype = (DType.F32, DType.F64)[rng.integers(2)]
    shape = ((3,), (2, 3), (1,))[rng.integers(3)]
    pool = [b.input(dtype, shape) for _ in range(3)]
    inputs = list(pool)
    while len(pool) < 9:
        x, y = (pool[rng.integers(max(0, len(pool) - 3), len(pool))] for _ in range(2))
        if x.shape != y.shape:
            continue
        constant = b.constant(rng.choice([3.0, 0.1, -7.0, 2.0, 1e-3]), dtype)
        kind = rng.integers(8)
        if kind == 0:
            made = b.apply(ops.Add(), b.apply(ops.Multiply(), x, y), pool[rng.integers(3)])
        elif kind == 1:
            made = b.apply(ops.Divide(), x, y)
        elif kind == 2:
            made = b.apply(ops.Divide(), x, b.apply(ops.Sqrt(), b.apply(ops.Abs(), y)))
        elif kind == 3:
            made = b.apply(ops.Divide(), x, constant)
        elif kind == 4:
            made = b.apply(ops.Multiply(), constant, x)
        elif kind == 5:
            made = b.apply(ops.Negate(), b.apply(ops.Multiply(), x, x))
        elif kind == 6:
            made = b.apply((ops.Add(), ops.Subtract())[len(pool) % 2], x, y)
        else:
            wide = b.apply(ops.BroadcastInDim((*x.shape, 2), tuple(range(len(x.shape)))), b.apply(ops.Multiply(), x, y))
            made = b.apply(ops.ReduceSum((len(x.shape),)), wide)
        if made.shape == shape:
            pool.append(made)
    axis = len(shape) - 1
    ends = [b.apply(ops.ReduceSum((0,)), b.apply(ops.ReduceSum((axis,)), pool[-1]))] if axis else [pool[-1]]
    ends.append(b.apply(ops.DotGeneral((axis,), (axis,), (), ()), pool[-1], pool[-2]))
    ends.append(b.apply(ops.Add(), ends[-1], b.apply(ops.ReduceSum((0, 1)[: axis + 1]), pool[0])))
    return b.build(*pool[3:], *ends), [values(rng, v.dtype, v.shape) for v in inputs]


# --- complex numbers and indices --------------------------------------------------------------------------------------

COMPLEX_UNARY = tuple(op for op in ops.ELEMENTWISE if op.arity == 1 and op is not ops.Abs)


def complex_values(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(shape, dtype.numpy, order="F")
    made.real, made.imag = values(rng, dtype.real, shape), values(rng, dtype.real, shape)
    return made


def complex_program(rng: np.random.Generator, length: int) -> tuple[GraphProgram, list[np.ndarray]]:
    """Arithmetic, functions, sums, contractions and choices of complex numbers; all results are outputs."""
    b = GraphBuilder()
    dtype = (DType.C32, DType.C64)[rng.integers(2)]
    shape = ((), (3,), (2, 3), (3, 3))[rng.integers(4)]
    pool = [b.input(dtype, shape) for _ in range(2)]
    inputs = [complex_values(rng, dtype, shape) for _ in pool]
    made: list[Value] = []
    while len(made) < length:
        recent = pool[-3:]
        x = recent[rng.integers(len(recent))]
        same = [v for v in pool if v.shape == x.shape]
        y = same[rng.integers(len(same))]
        rank = len(x.shape)
        choice = rng.integers(12)
        if choice < 4:
            result = b.apply(COMPLEX_UNARY[rng.integers(len(COMPLEX_UNARY))](), x)
        elif choice < 8:
            op = (ops.Add(), ops.Subtract(), ops.Multiply(), ops.Divide(), ops.Pow())[rng.integers(5)]
            scalar = rng.random() < 0.2 and not isinstance(op, ops.Pow)
            result = b.apply(op, x, b.constant(rng.choice(hostile(dtype.real)), dtype.real) if scalar else y)
        elif choice == 8 and rank:
            result = b.apply((ops.ReduceSum, ops.ReduceProd)[rng.integers(2)]((rank - 1,)), x)
        elif choice == 9 and rank:
            result = b.apply(ops.DotGeneral((rank - 1,), (rank - 1,), (), ()), x, y)
        elif choice == 10:
            result = b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Eq), x, y), x, y)
        else:
            made.append(b.apply(ops.Abs(), x))
            continue
        made.append(result)
        if len(result.shape) <= 2:
            pool.append(result)
    return b.build(*made), inputs


def indexed_program(rng: np.random.Generator) -> tuple[GraphProgram, list[np.ndarray]]:
    """Gathers, scatters and runtime slices, at indices that are known or come from a rounded computation."""
    b = GraphBuilder()
    dtype = (DType.F32, DType.F64)[rng.integers(2)]
    n, m, k = (int(e) for e in rng.integers(1, 5, 3))
    x, y, update = b.input(dtype, (n, m)), b.input(dtype, (k,)), b.input(dtype, (k, m))
    data = [
        values(rng, dtype, (n, m)),
        np.log(rng.integers(1, n + 2, k)).astype(dtype.numpy),
        values(rng, dtype, (k, m)),
    ]
    blurred = b.apply(
        ops.Convert(DType.I32), b.apply(ops.Exp(), y)
    )  # a whole number within the budget, or the one below it
    known = b.input(DType.I64, (k,))
    data.append(rng.integers(-2, n + 2, k))
    starts = b.input(DType.I32, (2,))
    data.append(rng.integers(-1, 4, 2).astype(np.int32))
    results = []
    for indices in (blurred, known):
        rows = b.apply(ops.Gather((1,), (0,), (0,), 1, (1, m)), x, indices)
        results += [
            rows,
            b.apply(ops.Scatter((1,), (0,), (0,), 1), x, indices, b.apply(ops.Multiply(), update, update)),
        ]
        if k >= 2:
            first = b.apply(ops.Slice((0,), (2,), (1,)), indices)
            results.append(b.apply(ops.DynamicSlice((1, max(m - 1, 1))), x, first))
            results.append(
                b.apply(ops.DynamicUpdateSlice(), x, b.apply(ops.Slice((0, 0), (1, 1), (1, 1)), update), first)
            )
    results.append(b.apply(ops.DynamicSlice((1, 1)), b.apply(ops.Exp(), x), starts))
    return b.build(*results), data
