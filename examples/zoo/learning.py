"""Losses, metrics and optimisers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from zoo.networks import mlp
from zoo.values import f, i, p


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()


def smoothed(logits, labels):
    targets = nn.one_hot(labels, logits.shape[1]) * 0.9 + 0.1 / logits.shape[1]
    return -(targets * nn.log_softmax(logits)).sum(-1).mean()


def binary(logits, labels):
    return jnp.mean(jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits))))


def huber(x, y):
    off = jnp.abs(x - y)
    return jnp.where(off < 1, 0.5 * off**2, off - 0.5).mean()


def focal(logits, labels):
    likely = jnp.take_along_axis(nn.softmax(logits), labels[:, None], 1)
    return -((1 - likely) ** 2 * jnp.log(likely)).mean()


def kl(a, b):
    log_a, log_b = nn.log_softmax(a), nn.log_softmax(b)
    return (jnp.exp(log_a) * (log_a - log_b)).sum(-1).mean()


def contrastive(a, b):
    a, b = (v / jnp.linalg.norm(v, axis=-1, keepdims=True) for v in (a, b))
    return cross_entropy(a @ b.T / 0.07, jnp.arange(a.shape[0]))


def triplet(a, b, c):
    return jnp.maximum(((a - b) ** 2).sum(-1) - ((a - c) ** 2).sum(-1) + 0.2, 0).mean()


def hinge(x, y):
    return jnp.maximum(0, 1 - x * y).mean()


def cosine(a, b):
    return (a * b).sum(-1) / (jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1))


def vae(mean, log_var):
    return -0.5 * (1 + log_var - mean**2 - jnp.exp(log_var)).sum(-1).mean()


def sgd(w, g, m):
    m = 0.9 * m + g
    return w - 0.1 * (g + 0.9 * m), m


def adam(w, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


def adamw(w, g, m, v, t):
    moved, m, v = adam(w, g, m, v, t)
    return moved - 1e-4 * w, m, v


def lion(w, g, m):
    return w - 1e-3 * jnp.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g


def rmsprop(w, g, v):
    v = 0.9 * v + 0.1 * g**2
    return w - 0.01 * g * lax.rsqrt(v + 1e-8), v


def adafactor(w, g, r, c):
    r, c = 0.9 * r + 0.1 * (g * g).mean(1), 0.9 * c + 0.1 * (g * g).mean(0)
    return w - 0.01 * g / jnp.sqrt(jnp.outer(r, c) / r.mean() + 1e-30), r, c


def clipped(g):
    norm = jnp.sqrt(jnp.sum(g * g))
    return g * jnp.minimum(1.0, 1.0 / norm)


def schedule(step):
    t = jnp.clip(step / 100.0, 0, 1)
    return jnp.where(step < 10, step / 10.0, 0.5 * (1 + jnp.cos(jnp.pi * t)))


def newton_schulz(g):
    x = g / jnp.linalg.norm(g)
    for _ in range(3):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x


def accuracy(logits, labels):
    return (jnp.argmax(logits, -1) == labels).mean(dtype=jnp.float32)


def top_3(logits, labels):
    return (lax.top_k(logits, 3)[1] == labels[:, None]).any(-1)


def confusion(a, b):
    return jnp.zeros((4, 4), jnp.int32).at[a, b].add(1)


def training_step(w, v, x, y):
    loss, (dw, dv) = jax.value_and_grad(lambda w, v: cross_entropy(mlp(x, w, v), y), (0, 1))(w, v)
    return loss, w - 0.1 * dw, v - 0.1 * dv


def ema(old, new):
    return jax.tree.map(lambda a, b: (0.99 * a.astype(jnp.float32) + 0.01 * b).astype(a.dtype), old, new)


def loss_scaled(w, x):
    scaled = jax.grad(lambda w: (1024 * ((x @ w) ** 2).sum()).astype(jnp.float32))(w)
    return jnp.where(jnp.isfinite(scaled).all(), scaled.astype(jnp.float32) / 1024, 0)


LOGITS, LABELS, A, B, C = f(5, 4), i(4, 5), f(4, 6), f(4, 6, seed=1), f(4, 6, seed=2)
ZOO = {
    "cross_entropy": (cross_entropy, [LOGITS, LABELS]),
    "cross_entropy_gradient": (jax.grad(cross_entropy), [LOGITS, LABELS]),
    "cross_entropy_bf16": (cross_entropy, [f(5, 4, dtype="bf16"), LABELS]),
    "smoothed_cross_entropy": (smoothed, [LOGITS, LABELS]),
    "binary_cross_entropy": (binary, [f(7), i(2, 7).astype("float32")]),
    "huber": (huber, [A, B]),
    "huber_gradient": (jax.grad(huber), [A, B]),
    "focal": (focal, [LOGITS, LABELS]),
    "kl": (kl, [A, B]),
    "contrastive": (contrastive, [A, B]),
    "triplet": (triplet, [A, B, C]),
    "hinge": (hinge, [f(7), f(7, seed=1)]),
    "cosine_similarity": (cosine, [A, B]),
    "vae": (vae, [A, B]),
    "sgd": (sgd, [A, B, C]),
    "adam": (adam, [A, B, C, p(4, 6), p()]),
    "adamw": (adamw, [A, B, C, p(4, 6), p()]),
    "lion": (lion, [A, B, C]),
    "rmsprop": (rmsprop, [A, B, p(4, 6)]),
    "adafactor": (adafactor, [A, B, p(4), p(6)]),
    "gradient_clipping": (clipped, [A]),
    "warmup_cosine": (schedule, [i(100, 8, dtype="int32")]),
    "newton_schulz": (newton_schulz, [A]),
    "accuracy": (accuracy, [LOGITS, LABELS]),
    "top_3": (top_3, [LOGITS, LABELS]),
    "confusion": (confusion, [i(4, 9), i(4, 9, seed=1)]),
    "training_step": (training_step, [f(6, 8), f(8, 4), A, i(4, 4)]),
    "ema_bf16": (ema, [f(4, 3, dtype="bf16"), f(4, 3)]),
    "loss_scaling_f16": (loss_scaled, [f(6, 2, dtype="f16"), f(4, 6, dtype="f16")]),
}
