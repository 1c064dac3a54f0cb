"""Linear algebra, transforms, special functions and statistics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy import linalg, signal, special, stats

from zoo.values import definite, f, p


def gaussian_process(x, y):
    k = jnp.exp(-0.5 * (x[:, None] - x) ** 2) + 0.1 * jnp.eye(x.shape[0])
    c = jnp.linalg.cholesky(k)
    a = linalg.solve_triangular(c, y, lower=True)
    return 0.5 * a @ a + jnp.log(jnp.diag(c)).sum()


def least_squares(a, b):
    return jnp.linalg.solve(a.T @ a + 0.1 * jnp.eye(a.shape[1]), a.T @ b)


def low_pass(x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * (jnp.arange(x.shape[-1] // 2 + 1) < 4))


def spectral_convolution(x, k):
    return jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(k, x.shape[-1])).real


def spectrogram(x):
    frames = x[jnp.arange(4)[:, None] * 8 + jnp.arange(16)]
    return jnp.abs(jnp.fft.rfft(frames * jnp.hanning(16)))


def ridge_path(a, b):
    return jax.vmap(lambda s: jnp.linalg.solve(a + s * jnp.eye(a.shape[0]), b))(jnp.array([0.1, 1.0, 10.0]))


def rotation(angles):
    c, s = jnp.cos(angles), jnp.sin(angles)
    return jnp.array([[c[0], -s[0], 0], [s[0], c[0], 0], [0, 0, 1]]) @ jnp.array(
        [[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]]
    )


def quaternion(a, b):
    return jnp.concatenate(
        [a[:1] * b[:1] - (a[1:] * b[1:]).sum(keepdims=True), a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])]
    )


X = f(4, 6)
SPECIAL = {
    "erf": special.erf, "erfc": special.erfc, "erfinv": lambda x: special.erfinv(jnp.tanh(x)), "lgamma": special.gammaln,
    "digamma": special.digamma, "bessel": special.i0e, "logsumexp": lambda x: special.logsumexp(x, 1), "expit": special.expit,
    "xlogy": lambda x: special.xlogy(x, x + 0.5), "sinh_cosh": lambda x: jnp.sinh(x) * jnp.cosh(x), "cbrt": jnp.cbrt,
    "arctan2": lambda x: jnp.arctan2(x, x + 1), "arcsin": lambda x: jnp.arcsin(x / 4), "sinc": jnp.sinc, "hypot": lambda x: jnp.hypot(x, 2 * x),
}  # fmt: skip
ZOO = {
    **{name: (function, [p(4, 5)]) for name, function in SPECIAL.items()},
    "erf_f64": (special.erf, [f(4, 5, dtype="f64")]),
    "cholesky": (jnp.linalg.cholesky, [definite(4)]),
    "cholesky_gradient": (jax.grad(lambda a: jnp.linalg.cholesky(a).sum()), [definite(4)]),
    "solve": (jnp.linalg.solve, [definite(4), f(4, 2)]),
    "inverse": (jnp.linalg.inv, [definite(4)]),
    "determinant": (jnp.linalg.det, [definite(4)]),
    "slogdet": (jnp.linalg.slogdet, [definite(4)]),
    "qr": (jnp.linalg.qr, [f(5, 3)]),
    "svd_values": (lambda a: jnp.linalg.svd(a, compute_uv=False), [f(4, 3)]),
    "eigh": (jnp.linalg.eigh, [definite(4)]),
    "triangular_solve": (lambda a, b: linalg.solve_triangular(jnp.tril(a), b, lower=True), [definite(4), f(4, 2)]),
    "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 5), [0.5 * f(3, 3)]),
    "expm": (linalg.expm, [0.3 * f(3, 3)]),
    "gaussian_process": (gaussian_process, [f(5), f(5, seed=1)]),
    "least_squares": (least_squares, [f(6, 3), f(6)]),
    "ridge_path": (ridge_path, [definite(3), f(3)]),
    "kronecker": (jnp.kron, [f(2, 3), f(3, 2)]),
    "einsum_batched": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [f(2, 3, 4), f(2, 4, 3)]),
    "fft": (jnp.fft.fft, [f(2, 8)]),
    "rfft_f64": (jnp.fft.rfft, [f(12, dtype="f64")]),
    "fft_2d": (lambda x: jnp.abs(jnp.fft.fft2(x)), [f(4, 6)]),
    "low_pass": (low_pass, [f(16)]),
    "low_pass_gradient": (jax.grad(lambda x: (low_pass(x) ** 2).sum()), [f(16)]),
    "spectral_convolution": (spectral_convolution, [f(16), f(3)]),
    "spectrogram": (spectrogram, [f(40)]),
    "convolve_2d": (lambda x, k: signal.convolve2d(x, k, "same"), [X, f(3, 3)]),
    "interpolate": (lambda x: jnp.interp(x, jnp.arange(5.0), jnp.array([0.0, 1, 4, 9, 16])), [p(6) * 2]),
    "polynomial": (lambda c, x: jnp.polyval(c, x), [f(5), f(6)]),
    "normal_logpdf": (stats.norm.logpdf, [X]),
    "normal_cdf": (stats.norm.cdf, [X]),
    "standardised": (lambda x: (x - x.mean(0)) / x.std(0), [X]),
    "covariance": (lambda x: jnp.cov(x), [X]),
    "correlation": (lambda x: jnp.corrcoef(x), [X]),
    "variance_bf16": (lambda x: x.var(1), [f(4, 16, dtype="bf16")]),
    "hessian": (jax.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), [f(3)]),
    "jacobian": (jax.jacfwd(lambda x: jnp.tanh(x) * x.sum()), [f(4)]),
    "rotation": (rotation, [f(2)]),
    "quaternion": (quaternion, [f(4), f(4, seed=1)]),
    "haversine": (lambda a, b: 2 * jnp.arcsin(jnp.sqrt(jnp.sin((a - b) / 2) ** 2)), [f(5), f(5, seed=1)]),
}
