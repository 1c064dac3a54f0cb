"""The interface between executor and backend, in the engine's terms, and the NumPy backend.

Values inside a program are dense column-major arrays. A backend runs instructions; which ones, in what order and with
which buffers alive is the executor's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.ops import Op, Policy, TensorType
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime.fusion import BLOCK, FusionPlan, evaluate_plan
from tenferro_ref.runtime.kernels import bind, run_kernel
from tenferro_ref.runtime.kernels.elementwise import multiply
from tenferro_ref.tensor import Array

#: As `TensorBackend.dot_general`.
Contract: TypeAlias = Callable[[ops.DotGeneral, Policy, Array, Array], Array]


class BackendSession(Protocol):
    """Scope in which consecutive backend-session instructions run."""

    def execute_backend_op(self, op: Op, policy: Policy, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        """Results of an op of `Category.BACKEND`, on operands that the op's rule has accepted."""
        ...

    def execute_fused(
        self, plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array]
    ) -> Mapping[int, Array] | None:
        """The plan's outputs by slot, or None if this backend does not fuse it."""
        ...

    def broadcast_multiply(self, shape: tuple[int, ...], lhs: Array, rhs: Array) -> Array | None:
        """Product of two arrays that broadcast, axis by axis, to `shape`, or None if this backend has no such path.

        Triplet and pair segments are evaluated by it; the operands are views, rarely contiguous.
        """
        ...

    def reclaim_buffer(self, array: Array) -> None:
        """The slot that held `array` is dead. Other slots may hold views of it: kernels are free to return them."""
        ...


@runtime_checkable
class TensorBackend(Protocol):
    """Where a program's instructions run."""

    def check(self, program: ExecProgram) -> None:
        """Refuse, before anything runs, a program with ops that this backend does not have.

        Raises
        ------
        UnsupportedOp
            The first of them.
        """
        ...

    def with_backend_session(self) -> AbstractContextManager[BackendSession]:
        """Open a session for consecutive backend instructions."""
        ...

    def dot_general(self, op: ops.DotGeneral, policy: Policy, lhs: Array, rhs: Array) -> Array:
        """The contraction of two operands that the op's rule has accepted."""
        ...

    @property
    def contraction(self) -> Contract | None:
        """What contracts in one call what a program does by Transpose, Reshape and DotGeneral; None to have these run."""
        ...

    def upload_host_tensor(self, array: Array) -> Array:
        """Place a constant where the backend computes."""
        ...

    def download_to_host(self, array: Array) -> Array:
        """A program output as an array on the host."""
        ...

    def reclaim_buffer(self, array: Array) -> None:
        """As `BackendSession.reclaim_buffer`, outside of a session."""
        ...


class NumpySession:
    """Session of the NumPy backend: floating-point warnings are silenced inside; fused runs go block by block."""

    __slots__ = ("_errstate", "block")

    def __init__(self, block: int = BLOCK) -> None:
        self.block = block

    def __enter__(self) -> NumpySession:
        self._errstate = np.errstate(all="ignore")
        self._errstate.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._errstate.__exit__(kind, error, traceback)

    def execute_backend_op(self, op: Op, policy: Policy, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        return (bind(op, policy)(*operands),)

    def execute_fused(
        self, plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array]
    ) -> Mapping[int, Array] | None:
        return evaluate_plan(plan, policy, type_, values, self.block)

    def broadcast_multiply(self, shape: tuple[int, ...], lhs: Array, rhs: Array) -> Array | None:
        dtype = DType.of(lhs)
        if dtype.is_narrow_float or (dtype.is_int and dtype.bits < 8):
            return None  # kernels compute these in a wider dtype
        return multiply(lhs, rhs, shape)

    def reclaim_buffer(self, array: Array) -> None:
        """Nothing to do: the memory goes with the last reference."""


class NumpyBackend:
    """The reference backend: the standard algebra, every op. It has no state.

    Parameters
    ----------
    block
        Elements that a fused run computes at a time.

    Raises
    ------
    InvalidArgument
        A block has no elements.
    """

    def __init__(self, block: int = BLOCK) -> None:
        if block < 1:
            raise InvalidArgument(op="NumpyBackend", argument="block", detail=f"expected 1 or more, got {block}")
        self.block = block

    def check(self, program: ExecProgram) -> None:
        """Nothing is refused."""

    def with_backend_session(self) -> NumpySession:
        return NumpySession(self.block)

    def dot_general(self, op: ops.DotGeneral, policy: Policy, lhs: Array, rhs: Array) -> Array:
        return run_kernel(op, policy, lhs, rhs)[0]

    @property
    def contraction(self) -> Contract | None:
        """None: the instructions are what this backend is there to run."""
        return None

    def upload_host_tensor(self, array: Array) -> Array:
        return array

    def download_to_host(self, array: Array) -> Array:
        return array

    def reclaim_buffer(self, array: Array) -> None:
        """Nothing to do: the memory goes with the last reference."""


class ContractingBackend(NumpyBackend):
    """The same, but a contraction that a program spells out as Transpose, Reshape and DotGeneral is one call of it."""

    @property
    def contraction(self) -> Contract | None:
        return self.dot_general
