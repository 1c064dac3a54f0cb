"""Loops, branches, random numbers and bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, random

from zoo.networks import gru
from zoo.values import f, i, p


def rnn(x, w, u):
    def step(h, row):
        h = jnp.tanh(row @ w + h @ u)
        return h, h

    return lax.scan(step, jnp.zeros(u.shape[0]), x)


def scanned_gru(x, w, u):
    return lax.scan(lambda h, row: (gru(h, row, w, u),) * 2, jnp.zeros((x.shape[1], 4)), x)[0]


def newton(x):
    def step(c):
        y = c[0]
        return y - (y * y - x) / (2 * y), c[1] + 1

    return lax.while_loop(lambda c: c[1] < 6, step, (jnp.ones_like(x), 0))[0]


def collatz(n):
    def step(c):
        n, steps = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda c: c[0] > 1, step, (n, 0))[1]


def gcd(a, b):
    return lax.while_loop(lambda c: (c[1] != 0).any(), lambda c: (jnp.where(c[1] != 0, c[1], c[0]),
                          jnp.where(c[1] != 0, c[0] % jnp.maximum(c[1], 1), 0)), (a, b))[0]  # fmt: skip


def power_iteration(a, x):
    return lax.fori_loop(0, 5, lambda _, v: (w := a @ v) / jnp.linalg.norm(w), x)


def kalman(x):
    def step(c, z):
        m, v = c
        k = (v + 0.1) / (v + 0.6)
        return (m + k * (z - m), (1 - k) * (v + 0.1)), m

    return lax.scan(step, (0.0, 1.0), x)[1]


def branch(n, x):
    return lax.switch(n, [jnp.sin, jnp.cos, lambda v: v * v], x)


def euler(x):
    return lax.fori_loop(0, 8, lambda _, v: v + 0.1 * jnp.stack([v[1], -jnp.sin(v[0])]), x)


def runge_kutta(y):
    def g(y):
        return jnp.stack([y[0] * (1 - y[1]), y[1] * (y[0] - 1)])

    def step(y, _):
        a = g(y)
        b = g(y + 0.05 * a)
        c = g(y + 0.05 * b)
        d = g(y + 0.1 * c)
        y = y + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        return y, y

    return lax.scan(step, y, None, 5)[1]


def mandelbrot(c):
    return lax.fori_loop(0, 6, lambda _, z: jnp.where(jnp.abs(z) < 2, z * z + c, z), jnp.zeros_like(c))


def life(board):
    around = sum(jnp.roll(board, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)


def bisection(x):
    def step(_, c):
        a, b = c
        m = 0.5 * (a + b)
        low = m * m * m < x
        return jnp.where(low, m, a), jnp.where(low, b, m)

    return lax.fori_loop(0, 10, step, (jnp.zeros_like(x), jnp.full_like(x, 4.0)))[0]


def xorshift(x):
    x = x ^ (x << 13)
    x = x ^ (x >> 17)
    return x ^ (x << 5)


def fnv(data):
    return lax.fori_loop(0, data.shape[0], lambda k, h: (h ^ data[k].astype(jnp.uint32)) * jnp.uint32(16777619),
                         jnp.uint32(2166136261))  # fmt: skip


def packed(bits):
    return (bits.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)).sum(dtype=jnp.uint32)


def quantised(x):
    scale = jnp.abs(x).max() / 127
    return jnp.clip(jnp.round(x / scale), -128, 127).astype(jnp.int8), scale


def int8_matmul(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


def sampled(logits):
    return random.categorical(random.key(0), logits, shape=(5,))


def beam(scores):
    total, chosen = lax.top_k((scores[:, None] + scores).ravel(), 3)
    return total, chosen // scores.shape[0], chosen % scores.shape[0]


KEY = 7
ZOO = {
    "rnn_scan": (rnn, [f(5, 3), f(3, 4), 0.5 * f(4, 4)]),
    "rnn_gradient": (jax.grad(lambda w, x, u: rnn(x, w, u)[1].sum()), [f(3, 4), f(5, 3), 0.5 * f(4, 4)]),
    "gru_scan": (scanned_gru, [f(4, 2, 3), f(3, 12), f(4, 12)]),
    "newton_while": (newton, [p(6)]),
    "collatz_while": (collatz, [i(27, seed=4)]),
    "gcd_while": (gcd, [i(99, 5), i(99, 5, seed=1)]),
    "power_iteration": (power_iteration, [f(4, 4), f(4)]),
    "kalman_scan": (kalman, [f(8)]),
    "switch": (branch, [i(3), f(5)]),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.exp, jnp.tanh, x), [f(5)]),
    "pendulum": (euler, [f(2)]),
    "runge_kutta": (runge_kutta, [p(2)]),
    "mandelbrot": (mandelbrot, [(f(3, 3) + 1j * f(3, 3, seed=1)).astype("complex64") * 0.5]),
    "life": (life, [i(2, 6, 6, dtype="int8")]),
    "bisection": (bisection, [p(5)]),
    "cumsum_associative": (lambda x: lax.associative_scan(jnp.add, x), [f(9)]),
    "linear_recurrence": (
        lambda a, b: lax.associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a, b)),
        [p(8), f(8)],
    ),
    "vmapped_while": (jax.vmap(newton), [p(3, 2)]),
    "checkpointed": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), [f(5)]),
    "uniform": (lambda x: x + random.uniform(random.key(KEY), (6,)), [f(6)]),
    "normal": (lambda x: x + random.normal(random.key(KEY), (6,)), [f(6)]),
    "normal_bf16": (lambda x: x + random.normal(random.key(KEY), (6,), jnp.bfloat16), [f(6, dtype="bf16")]),
    "randint": (lambda x: x + random.randint(random.key(KEY), (6,), 0, 10), [i(5, 6)]),
    "permutation": (lambda x: random.permutation(random.key(KEY), x), [f(7)]),
    "categorical": (sampled, [f(4)]),
    "gumbel": (lambda x: jnp.argmax(x + random.gumbel(random.key(KEY), x.shape)), [f(7)]),
    "bits_of_key": (lambda n: random.bits(random.fold_in(random.key(KEY), n), (4,)), [i(9, dtype="uint32")]),
    "xorshift": (xorshift, [i(2**31, 6, dtype="uint32")]),
    "fnv_hash": (fnv, [i(256, 9, dtype="uint8")]),
    "packed_bits": (packed, [i(2, 32)]),
    "popcount": (lambda x: lax.population_count(x) + lax.clz(x), [i(2**31, 6, dtype="uint32")]),
    "float_bits": (lambda x: lax.bitcast_convert_type(x, jnp.uint32) >> 23, [f(6)]),
    "quantised_i8": (quantised, [f(4, 5)]),
    "int8_matmul": (int8_matmul, [i(256, 3, 4, dtype="int8"), i(256, 4, 2, dtype="int8")]),
    "saturating_u8": (
        lambda a, b: jnp.clip(a.astype(jnp.int32) + b, 0, 255).astype(jnp.uint8),
        [i(256, 9, dtype="uint8"), i(256, 9, dtype="uint8", seed=1)],
    ),
    "beam_search_step": (beam, [f(5)]),
}
