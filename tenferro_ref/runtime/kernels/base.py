"""The table of NumPy kernels, and what its rows share.

A row is `kernel(op, policy, *arrays)`: operands are dense column-major arrays whose types the op's rule has accepted; the
result is one such array, or a tuple of them, never a NumPy scalar. It may be a view of an operand; operands are never
written to. Only faults that depend on values are raised here. Floating-point warnings are the caller's to silence
(`run_kernel`, `NumpySession`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref.ops import Op, Policy
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array

#: Arrays whose dtype the op's rule has settled already.
Values: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[..., Array | tuple[Array, ...]]

KERNELS: Table[Kernel] = Table("NumPy kernels")


def run_kernel(op: Op, policy: Policy, *arrays: Array) -> tuple[Array, ...]:
    """One op on arrays that its rule accepts, with floating-point warnings silenced."""
    with np.errstate(all="ignore"):
        result = KERNELS[type(op)](op, policy, *arrays)
    return result if isinstance(result, tuple) else (result,)


def canonical(result: Any) -> Values:
    """`result`, which the caller has just computed, as an array in which every NaN is the positive quiet one.

    Which operand's NaN an addition or multiplication hands on depends, in NumPy, on whether the element falls into the
    vector part of the loop or into its tail (measured: NumPy 2.4 with AVX-512), so without this the bits would depend on
    where blocks begin. Ops that only move, pick or change the sign of values keep payloads and need not come here.
    """
    array: Values = np.asarray(result)
    kind = array.dtype.kind
    if kind in "fc":
        nan = np.isnan(array)
        if np.count_nonzero(nan):
            if kind == "f":
                array[nan] = np.nan
            else:
                for part in (array.real, array.imag):
                    part[np.isnan(part)] = np.nan
    return array
