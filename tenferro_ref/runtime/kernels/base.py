"""The table of NumPy kernels, and what its rows share.

A row is `kernel(op, *arrays)`: operands are dense column-major arrays whose types the op's rule has accepted; the result is
one such array, never a NumPy scalar. It may be a view of an operand; operands are never written to. A row that depends on the
program's policy is a `PerPolicy`; a ufunc is a row as it is. Only errors that depend on values are raised here.
Floating-point warnings are the caller's to silence (`run_kernel`, `NumpySession`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref.ops import Op, Policy
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array

#: Arrays whose dtype the op's rule has settled already.
Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class PerPolicy:
    """A row that depends on the policy: `function(op, policy, *arrays)`."""

    function: Callable[..., Values]


Kernel: TypeAlias = Callable[..., Values] | np.ufunc | PerPolicy

KERNELS: Table[Kernel] = Table("NumPy kernels")


def bind(op: Op, policy: Policy) -> Callable[..., Values]:
    """The function that computes `op` from its operands.

    Raises
    ------
    UnsupportedOp
        The op has no kernel.
    """
    row = KERNELS[type(op)]
    if isinstance(row, np.ufunc):
        return lambda *arrays: canonical(row(*arrays))
    return partial(row.function, op, policy) if isinstance(row, PerPolicy) else partial(row, op)


def run_kernel(op: Op, policy: Policy, *arrays: Array) -> tuple[Array, ...]:
    """The result of one op on arrays that its rule accepts, with floating-point warnings silenced."""
    with np.errstate(all="ignore"):
        return (bind(op, policy)(*arrays),)


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
