"""Arrays to call functions with, the same ones each time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

HALVES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def f(*shape: int, dtype: str = "f32", seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(HALVES[dtype])


def p(*shape: int, dtype: str = "f32", seed: int = 0) -> Any:
    """Positive numbers of ordinary size."""
    return np.random.default_rng([seed, *shape]).uniform(0.1, 2.0, shape).astype(HALVES[dtype])


def i(most: int, *shape: int, dtype: str = "int32", seed: int = 0) -> Any:
    """Integers in [0, most)."""
    return np.random.default_rng([seed, *shape]).integers(0, most, shape).astype(dtype)


def definite(n: int, dtype: str = "f32") -> Any:
    """A symmetric positive definite matrix."""
    a = np.random.default_rng(n).standard_normal((n, n))
    return (a @ a.T + n * np.eye(n)).astype(HALVES[dtype])
