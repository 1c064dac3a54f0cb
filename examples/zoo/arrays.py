"""Sorting, searching, segments, indexing and layout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, ops

from zoo.values import f, i, p

X, N = f(4, 6), i(9, 4, 6)
SEGMENTS = i(3, 8)
ZOO = {
    "sort": (lambda x: jnp.sort(x, -1), [X]),
    "sort_descending_bf16": (lambda x: -jnp.sort(-x), [f(9, dtype="bf16")]),
    "argsort": (lambda x: jnp.argsort(x, -1), [X]),
    "lexsort": (lambda a, b: jnp.lexsort((a, b)), [i(3, 7), i(3, 7, seed=1)]),
    "top_k": (lambda x: lax.top_k(x, 3), [X]),
    "median": (lambda x: jnp.median(x, 1), [X]),
    "quantile": (lambda x: jnp.quantile(x, 0.3), [f(9)]),
    "unique_counts": (lambda x: jnp.unique(x, size=5, return_counts=True), [i(4, 9)]),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.arange(5.0), x), [p(6) * 2]),
    "bincount": (lambda x: jnp.bincount(x, length=5), [i(5, 9)]),
    "histogram": (lambda x: jnp.histogram(x, 4, (-2.0, 2.0))[0], [f(20)]),
    "cumsum": (lambda x: jnp.cumsum(x, 1), [X]),
    "cumprod": (lambda x: jnp.cumprod(x, 1), [p(4, 6)]),
    "cummax": (lambda x: lax.cummax(x, 1), [X]),
    "cumsum_gradient": (jax.grad(lambda x: (jnp.cumsum(x) ** 2).sum()), [f(6)]),
    "segment_sum": (lambda x, s: ops.segment_sum(x, s, 3), [f(8, 2), SEGMENTS]),
    "segment_max": (lambda x, s: ops.segment_max(x, s, 3), [f(8), SEGMENTS]),
    "segment_softmax": (
        lambda x, s: (e := jnp.exp(x - ops.segment_max(x, s, 3)[s])) / ops.segment_sum(e, s, 3)[s],
        [f(8), SEGMENTS],
    ),
    "graph_convolution": (
        lambda x, a, b, w: jax.nn.relu(jnp.zeros((5, 3)).at[b].add((x @ w)[a])),
        [f(5, 4), i(5, 9), i(5, 9, seed=1), f(4, 3)],
    ),
    "scatter_set": (lambda x, n, u: x.at[n].set(u), [f(6), i(6, 3), f(3)]),
    "scatter_add": (lambda x, n, u: x.at[n].add(u), [f(6), i(6, 9), f(9)]),
    "scatter_min_u32": (lambda x, n, u: x.at[n].min(u), [i(99, 6, dtype="uint32"), i(6, 9), i(99, 9, dtype="uint32")]),
    "scatter_mul": (lambda x, n, u: x.at[n].multiply(u), [f(6), i(6, 3), f(3)]),
    "take_along_axis": (lambda x, n: jnp.take_along_axis(x, n, 1), [X, i(6, 4, 2)]),
    "gather_nd": (lambda x, a, b: x[a, b], [X, i(4, 5), i(6, 5)]),
    "dynamic_slice": (lambda x, n: lax.dynamic_slice(x, (n, n), (2, 3)), [X, i(4)]),
    "dynamic_update": (
        lambda x, n: lax.dynamic_update_slice(x, jnp.ones((2, 2), x.dtype), (n, jnp.int32(1))),
        [X, i(4)],
    ),
    "masked_fill": (lambda x, n: jnp.where(n % 2 == 0, x, -jnp.inf).max(1), [X, N]),
    "argmax_argmin": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), [X]),
    "argmax_i8": (lambda x: jnp.argmax(x, 1), [i(100, 4, 6, dtype="int8")]),
    "mean_u8_image": (lambda x: x.astype(jnp.float32).mean() / 255, [i(256, 5, 5, dtype="uint8")]),
    "integer_division": (lambda a, b: (a // b, a % b, jnp.fmod(a, b)), [i(99, 9), i(9, 9) + 1]),
    "float_modulo": (lambda a, b: (a % b, jnp.fmod(a, b)), [f(9), p(9)]),
    "divmod_u32": (lambda a: (a // jnp.uint32(7), a % jnp.uint32(7)), [i(2**31, 9, dtype="uint32")]),
    "rounding": (lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)), [3 * f(9)]),
    "one_hot": (lambda n: jax.nn.one_hot(n, 5, dtype=jnp.bfloat16), [i(5, 6)]),
    "patches": (lambda x: x.reshape(2, 3, 2, 3, 2).transpose(0, 1, 3, 2, 4).reshape(2, 9, 4), [f(2, 6, 6)]),
    "roll_flip": (lambda x: jnp.roll(x, 2, 1)[::-1, ::2], [X]),
    "pad_reflect": (lambda x: jnp.pad(x, 2, mode="reflect"), [f(4, 5)]),
    "meshgrid": (lambda a, b: jnp.stack(jnp.meshgrid(a, b)), [f(3), f(4)]),
    "triangular_masks": (lambda x: jnp.tril(x) - jnp.triu(x, 1), [f(5, 5)]),
    "pairwise_distance": (lambda a, b: jnp.sqrt(((a[:, None] - b) ** 2).sum(-1)), [f(4, 3), f(5, 3)]),
    "nearest": (lambda a, b: jnp.argmin(((a[:, None] - b) ** 2).sum(-1), 1), [f(6, 3), f(4, 3)]),
    "nms_step": (
        lambda b, s: jnp.where(jnp.maximum(0, jnp.minimum(b, b[jnp.argmax(s)]) - 0.2).prod(-1) > 0.3, -1, s),
        [p(6, 2), p(6)],
    ),
    "bilinear": (lambda x: jax.image.resize(x, (6, 8), "bilinear"), [f(3, 4)]),
    "running_mean_f16": (lambda x: jnp.convolve(x, jnp.ones(3, jnp.float16) / 3, "valid"), [f(12, dtype="f16")]),
    "any_all": (lambda n: (jnp.any(n > 7, 1), jnp.all(n > 0, 0), jnp.count_nonzero(n)), [N]),
    "float8_roundtrip": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), [f(9)]),
    "sum_f16_to_f32": (lambda x: x.sum(dtype=jnp.float32), [f(64, dtype="f16")]),
    "logical_reduce": (lambda n: jnp.bitwise_xor.reduce(n), [i(2**31, 9, dtype="uint32")]),
}
