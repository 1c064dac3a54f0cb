"""`rng_bit_generator`: Threefry-2x32 with 20 rounds and Philox-4x32 with 10 (Salmon et al., SC 2011), of integer ops.

StableHLO leaves open how a state becomes counters and how words fill the result; here both are as XLA has them. The state
is the key, then the counter; each block of words takes the next counter. Philox may have a state of three words, which is
refused: XLA counts to 128 bits with it, IREE leaves the last word as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation, tensor_type
from tenferro_ref.stablehlo.loader.composed import full, select, spread, static
from tenferro_ref.stablehlo.loader.special import high_product
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)


@ROWS.row("rng_bit_generator")
def _(b: Tracer, op: Operation, state: Value) -> Sequence[Value]:
    """The next state and the bits."""
    algorithm = op.enum("rng_algorithm")
    shape, dtype = _output(op)
    if algorithm not in ("THREE_FRY", "PHILOX"):
        raise op.refusal(f"implementations choose different algorithms for {algorithm}; name THREE_FRY or PHILOX")
    if state.dtype is not DType.U64 or static(state) != (2,):
        raise op.refusal(f"only of a state ui64[2] do implementations make the same bits, this one is {state.type}")
    if prod(shape) == 0:
        return state, b.array(np.zeros(shape, dtype.numpy))
    generate = _threefry_bits if algorithm == "THREE_FRY" else _philox_bits
    key, counter = (b.reshape(b.apply(ops.Slice((i,), (i + 1,), (1,)), state), ()) for i in range(2))
    counter, words = generate(b, key, counter, shape, 64 if dtype.bits == 64 else 32)
    following = b.apply(ops.Concatenate(0), *(b.reshape(v, (1,)) for v in (key, counter)))
    return following, words if words.dtype is dtype else words.astype(dtype)


def _output(op: Operation) -> tuple[tuple[int, ...], DType]:
    """Shape and dtype of the bits."""
    output = tensor_type(op.raw.operation.results[1].type, "result")
    if output.dtype.kind not in ("int", "uint"):
        raise op.refusal(f"bits as {output.dtype} have no rule, only as integers")
    return output.static_shape, output.dtype


# --- words ------------------------------------------------------------------------------------------------------------


def _bits(name: str, x: Value, y: Value) -> Value:
    return x.builder.apply(ops.Bits(name), x, y)


def _halves(x: Value) -> tuple[Value, Value]:
    """The lower and the upper word of 64 bits."""
    return x.astype(DType.U32), _bits("shift_right_logical", x, full(x, 32)).astype(DType.U32)


def _whole(low: Value, high: Value) -> Value:
    wide = high.astype(DType.U64)
    return _bits("or", low.astype(DType.U64), _bits("shift_left", wide, full(wide, 32)))


def _numbers(b: Tracer, count: int) -> Value:
    return b.array(np.arange(count, dtype=np.uint64))


# --- Threefry ---------------------------------------------------------------------------------------------------------


def _threefry_bits(b: Tracer, key: Value, counter: Value, shape: tuple[int, ...], width: int) -> tuple[Value, Value]:
    """The next counter and the words.

    A block is one element of 64 bits, or two of 32, which are neighbours along one axis: the first one of even extent,
    or else the longest.
    """
    axis = next((i for i, n in enumerate(shape) if n % 2 == 0), None)
    if axis is None:
        axis = max(range(len(shape)), key=lambda i: shape[i], default=0)
    half = tuple(-(-n // 2) if i == axis and width == 32 else n for i, n in enumerate(shape))
    count = prod(half)
    inputs = _halves(spread(counter, (count,)) + _numbers(b, count))
    words = _threefry(inputs, [spread(k, (count,)) for k in _halves(key)])
    following = counter + full(counter, count)
    if width == 64 or not shape:
        whole = _whole(*words) if width == 64 else words[0]
        return following, b.reshape(whole, shape)
    pair = (*half[: axis + 1], 1, *half[axis + 1 :])
    both = b.apply(ops.Concatenate(axis + 1), *(b.reshape(w, pair) for w in words))
    full_shape = tuple(2 * n if i == axis else n for i, n in enumerate(half))
    return following, _first(b, b.reshape(both, full_shape), shape)


def _threefry(x: Sequence[Value], key: Sequence[Value]) -> tuple[Value, Value]:
    third = _bits("xor", _bits("xor", key[0], key[1]), full(key[0], _THREEFRY_PARITY))
    keys = (*key, third)
    first, second = x[0] + keys[0], x[1] + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            first = first + second
            left = _bits("shift_left", second, full(second, distance))
            second = _bits("or", left, _bits("shift_right_logical", second, full(second, 32 - distance)))
            second = _bits("xor", first, second)
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + full(second, group + 1)
    return first, second


# --- Philox -----------------------------------------------------------------------------------------------------------


def _philox_bits(b: Tracer, key: Value, counter: Value, shape: tuple[int, ...], width: int) -> tuple[Value, Value]:
    """The next counter and the words: a block is four words of 32 bits, in row-major order.

    The key is also the upper half of the counter; the next state keeps the lower half alone.
    """
    count = -(-prod(shape) * (width // 32) // 4)
    start, upper = spread(counter, (count,)), spread(key, (count,))
    low = start + _numbers(b, count)
    high = select(low < start, upper + full(upper, 1), upper)
    words = _philox((*_halves(low), *_halves(high)), [spread(k, (count,)) for k in _halves(key)])
    if width == 64:
        words = [_whole(*words[:2]), _whole(*words[2:])]
    block = b.apply(ops.Concatenate(1), *(b.reshape(w, (count, 1)) for w in words))
    line = _first(b, b.reshape(block, (count * len(words),)), (prod(shape),))
    return counter + full(counter, count), b.reshape(line, shape)


def _philox(x: Sequence[Value], key: Sequence[Value]) -> Sequence[Value]:
    for number in range(10):
        if number:
            key = [k + full(k, step) for k, step in zip(key, _PHILOX_STEPS, strict=True)]
        factors = [full(x[0], factor) for factor in _PHILOX_FACTORS]
        (high0, high1) = (high_product(v, f) for v, f in zip((x[0], x[2]), factors, strict=True))
        low0, low1 = x[0] * factors[0], x[2] * factors[1]
        x = (
            _bits("xor", _bits("xor", high1, x[1]), key[0]),
            low1,
            _bits("xor", _bits("xor", high0, x[3]), key[1]),
            low0,
        )
    return x


def _first(b: Tracer, x: Value, shape: tuple[int, ...]) -> Value:
    """The first elements of `x` along each axis."""
    if static(x) == shape:
        return x
    return b.apply(ops.Slice((0,) * len(shape), shape, (1,) * len(shape)), x)
