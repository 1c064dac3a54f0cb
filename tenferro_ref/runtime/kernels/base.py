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

from tenferro_ref import ops
from tenferro_ref.dtype import ANY, DType
from tenferro_ref.narrow import narrowed
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
        function: Callable[..., Values] = partial(_settled_ufunc, row)
    else:
        function = partial(row.function, op, policy) if isinstance(row, PerPolicy) else partial(row, op)
    if policy.dtypes == "engine" or not _computes(op):
        return function
    return partial(_widened, op, function)


def _settled_ufunc(ufunc: np.ufunc, *arrays: Values) -> Values:
    return canonical(ufunc(*arrays))


def _computes(op: Op) -> bool:
    """Whether the op makes new values of its operands' in one step; others only move them, or consist of ops that do."""
    of_bits = (ops.Bits, ops.Bitcast, ops.ReducePrecision, ops.Repeated)  # of the operand as it is
    if isinstance(op, (*of_bits, ops.ReduceSumSquares)):  # the last is made of two others, each of which rounds
        return False
    return op.dtypes is not ANY or isinstance(op, ops.Compare)


def _widened(op: Op, function: Callable[..., Values], *arrays: Values) -> Values:
    """`function` on dtypes that NumPy has no exact arithmetic of: in float64, rounded once, or in int64, modulo the width."""
    dtype = DType.of(arrays[-1])
    if dtype.is_narrow_float:
        wide: Any = np.float64
    elif dtype.is_int and dtype.bits < 8:
        wide = np.int64
    else:
        return function(*arrays)
    result = function(*(a.astype(wide) if DType.of(a) is dtype else a for a in arrays))
    if result.dtype != wide:
        return result
    if isinstance(op, ops.ReduceMax | ops.ReduceMin):  # over no element they give the extremes of the wide dtype
        result = np.clip(result, *dtype.extremes)
    if dtype.is_int:
        return np.asarray(result.astype(dtype.numpy))
    return narrowed(dtype, result)


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
