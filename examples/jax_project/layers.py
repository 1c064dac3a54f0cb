"""Functions of a small network, as they might stand in any project that uses JAX."""

import jax
import jax.numpy as jnp


def normalised(x, epsilon=1e-5):
    """Each row shifted to mean 0 and scaled to variance 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)


def attention(q, k, v):
    """Values weighted by how well queries and keys agree."""
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])) @ v


def log_sum_exp_naive(x):
    """Overflows where `jax.scipy.special.logsumexp` does not; a compiler that rewrites it may hide that."""
    return jnp.log(jnp.exp(x).sum(axis=-1))
