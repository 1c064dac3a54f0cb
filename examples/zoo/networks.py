"""Layers, attention, convolutional networks and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from zoo.values import f, i, p

_NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, k, stride=1, padding="SAME", **options):
    return lax.conv_general_dilated(x, k, (stride, stride), padding, dimension_numbers=_NHWC, **options)


def layer_norm(x, scale, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + bias


def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def batch_norm(x, scale, bias):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / jnp.sqrt(var + 1e-5) * scale + bias


def group_norm(x, groups=2):
    n, h, w, c = x.shape
    y = x.reshape(n, h, w, groups, c // groups)
    y = (y - y.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(y.var((1, 2, 4), keepdims=True) + 1e-5)
    return y.reshape(x.shape)


def dense(x, w, b):
    return x @ w + b


def mlp(x, w, v):
    return nn.gelu(x @ w) @ v


def swiglu(x, w, v, o):
    return (nn.silu(x @ w) * (x @ v)) @ o


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)


def causal_attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)


def rotary(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000.0 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


def alibi(q, k):
    n = q.shape[0]
    return nn.softmax(q @ k.T - jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)) * 0.25)


def embedding(table, tokens):
    return table[tokens] * jnp.sqrt(table.shape[1]).astype(table.dtype)


def one_hot_embedding(table, tokens):
    return nn.one_hot(tokens, table.shape[0]) @ table


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def avg_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9


def lenet(x, k, w):
    return max_pool(nn.relu(conv(x, k))).reshape(x.shape[0], -1) @ w


def resnet_block(x, k, m):
    return nn.relu(x + conv(nn.relu(conv(x, k)), m))


def unet_up(x, k):
    return lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=_NHWC)


def squeeze_excite(x, w, v):
    return x * nn.sigmoid(nn.relu(x.mean((1, 2)) @ w) @ v)[:, None, None]


def gru(h, x, w, u):
    r, z, n = jnp.split(x @ w, 3, -1)
    hr, hz, hn = jnp.split(h @ u, 3, -1)
    z = nn.sigmoid(z + hz)
    return (1 - z) * jnp.tanh(n + nn.sigmoid(r + hr) * hn) + z * h


def lstm(h, c, x, w):
    i_, f_, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
    c = nn.sigmoid(f_) * c + nn.sigmoid(i_) * jnp.tanh(g)
    return nn.sigmoid(o) * jnp.tanh(c), c


def mixture(x, gates, experts):
    weights, chosen = lax.top_k(nn.softmax(x @ gates), 2)
    return jnp.einsum("nk,nkd->nd", weights, jnp.einsum("ni,nkid->nkd", x, experts[chosen]))


def dropout(x):
    keep = jax.random.bernoulli(jax.random.key(3), 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0)


def summed(function, argnums=0):
    """The gradient of the sum of the squares of what a function gives."""
    return jax.grad(lambda *a: (function(*a).astype(jnp.float32) ** 2).sum(), argnums)


X, IMAGE, KERNEL = f(4, 8), f(2, 6, 6, 2), f(3, 3, 2, 2, seed=1)
HEADS = [f(2, 5, 2, 4, seed=s) for s in (1, 2, 3)]
HALF = [f(2, 5, 2, 4, seed=s, dtype="bf16") for s in (1, 2, 3)]
ACTIVATIONS = {
    name: (function, [f(4, 9)])
    for name, function in {
        "relu": nn.relu, "gelu_tanh": nn.gelu, "gelu_exact": lambda x: nn.gelu(x, approximate=False), "silu": nn.silu,
        "elu": nn.elu, "selu": nn.selu, "softplus": nn.softplus, "mish": lambda x: x * jnp.tanh(nn.softplus(x)),
        "hard_swish": nn.hard_swish, "leaky_relu": nn.leaky_relu, "log_sigmoid": nn.log_sigmoid, "glu": lambda x: nn.glu(x[:, :8]),
        "softmax": nn.softmax, "log_softmax": nn.log_softmax,
    }.items()
}  # fmt: skip
ZOO = {
    **ACTIVATIONS,
    "softmax_bf16": (nn.softmax, [f(4, 9, dtype="bf16")]),
    "gelu_f16": (nn.gelu, [f(4, 9, dtype="f16")]),
    "dense": (dense, [X, f(8, 3), f(3)]),
    "dense_bf16": (dense, [f(4, 8, dtype="bf16"), f(8, 3, dtype="bf16"), f(3, dtype="bf16")]),
    "mlp": (mlp, [X, f(8, 16), f(16, 3)]),
    "mlp_gradient": (summed(mlp, (1, 2)), [X, f(8, 16), f(16, 3)]),
    "swiglu": (swiglu, [X, f(8, 6), f(8, 6, seed=1), f(6, 8)]),
    "layer_norm": (layer_norm, [X, p(8), f(8)]),
    "layer_norm_gradient": (summed(layer_norm), [X, p(8), f(8)]),
    "layer_norm_bf16": (layer_norm, [f(4, 8, dtype="bf16"), p(8, dtype="bf16"), f(8, dtype="bf16")]),
    "rms_norm": (rms_norm, [X, p(8)]),
    "batch_norm": (batch_norm, [IMAGE, p(2), f(2)]),
    "batch_norm_gradient": (summed(batch_norm), [IMAGE, p(2), f(2)]),
    "group_norm": (group_norm, [f(2, 3, 3, 4)]),
    "attention": (attention, HEADS),
    "attention_bf16": (attention, HALF),
    "attention_gradient": (summed(attention, (0, 1, 2)), HEADS),
    "causal_attention": (causal_attention, HEADS),
    "causal_attention_gradient": (summed(causal_attention), HEADS),
    "rotary": (rotary, [f(2, 5, 8)]),
    "alibi": (alibi, [f(5, 4), f(5, 4, seed=1)]),
    "embedding": (embedding, [f(7, 4), i(7, 2, 3)]),
    "embedding_gradient": (summed(embedding), [f(7, 4), i(7, 2, 3)]),
    "one_hot_embedding": (one_hot_embedding, [f(7, 4), i(7, 2, 3)]),
    "conv": (conv, [IMAGE, KERNEL]),
    "conv_strided": (lambda x, k: conv(x, k, 2), [IMAGE, KERNEL]),
    "conv_dilated": (lambda x, k: conv(x, k, rhs_dilation=(2, 2)), [IMAGE, KERNEL]),
    "conv_depthwise": (lambda x, k: conv(x, k, feature_group_count=2), [IMAGE, f(3, 3, 1, 4)]),
    "conv_f16": (conv, [f(2, 6, 6, 2, dtype="f16"), f(3, 3, 2, 2, dtype="f16")]),
    "conv_gradient": (summed(conv, (0, 1)), [IMAGE, KERNEL]),
    "conv_1d": (lambda x, k: jnp.convolve(x, k, "same"), [f(16), f(3)]),
    "max_pool": (max_pool, [IMAGE]),
    "max_pool_gradient": (summed(max_pool), [IMAGE]),
    "avg_pool": (avg_pool, [IMAGE]),
    "avg_pool_gradient": (summed(avg_pool), [IMAGE]),
    "lenet": (lenet, [IMAGE, KERNEL, f(18, 5)]),
    "lenet_gradient": (summed(lenet, (1, 2)), [IMAGE, KERNEL, f(18, 5)]),
    "resnet_block": (resnet_block, [IMAGE, KERNEL, f(3, 3, 2, 2)]),
    "unet_up": (unet_up, [f(1, 3, 3, 2), KERNEL]),
    "squeeze_excite": (squeeze_excite, [IMAGE, f(2, 3), f(3, 2)]),
    "gru": (gru, [f(3, 4), f(3, 5), f(5, 12), f(4, 12)]),
    "lstm": (lstm, [f(3, 4), f(3, 4, seed=1), f(3, 5), f(9, 16)]),
    "mixture": (mixture, [f(3, 4), f(4, 5), f(5, 4, 2)]),
    "dropout": (dropout, [X]),
}
