"""`tenferro_ref.check` and `tenferro_ref.assert_parity`: one line from Python, or in another project's tests.

What checks is above this package; it is found by the entry point `checker` of the group `tenferro_ref.checking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tenferro_ref.program import Program

GROUP = "tenferro_ref.checking"


class CheckResult(Protocol):
    """The verdict of every executor; prints as the table of `tenferro-ref check`, in Jupyter too.

    Attributes
    ----------
    ok
        Whether no executor is wrong.
    rows
        One an executor, with the keys of `check --json` (FORMATS 4).
    compared
        Names of the executors, `native` aside, whose results were compared with something.
    """

    @property
    def ok(self) -> bool: ...
    @property
    def rows(self) -> tuple[dict[str, Any], ...]: ...
    @property
    def compared(self) -> tuple[str, ...]: ...
    def _repr_html_(self) -> str: ...


class Checker(Protocol):
    """Keeps the worker processes of executors between two checks."""

    def check(
        self, what: Program | Callable[..., Any], inputs: Sequence[Any], *, executors: str | Sequence[str],
        model: str | None,
    ) -> CheckResult:  # fmt: skip
        """As `check`."""

    def close(self) -> None:
        """End them."""


@contextmanager
def checker() -> Iterator[Checker]:
    """A checker, closed at the end of the block.

    Raises
    ------
    MissingDependency
        No installed package brings one.
    """
    from importlib.metadata import entry_points  # worker processes import this module for nothing

    for entry in entry_points(group=GROUP, name="checker"):
        made: Checker = entry.load()()
        break
    else:
        from tenferro_ref.errors import MissingDependency

        raise MissingDependency(name="a checker", remedy="install this package again: pip install .")
    try:
        yield made
    finally:
        made.close()


def check(
    what: Program | Callable[..., Any],
    inputs: Sequence[Any],
    *,
    executors: str | Sequence[str] = "all",
    model: str | None = None,
) -> CheckResult:
    """Run a program or a JAX function on executors and judge each result.

    Parameters
    ----------
    what
        A program (`tenferro_ref.program`), or a function that JAX can lower for these inputs.
    inputs
        Its inputs or arguments: arrays, of a function also trees of arrays.
    executors
        Names as of `tenferro-ref check --executors`, in a list or separated by commas; `native` is always among them.
    model
        Arithmetic model that executors other than `native` are held to, instead of their own: `cuda`, `ieee`, `interpreter`,
        `iree`, `numpy` or `xla`. With `ieee` one that flushes, contracts or rewrites is wrong.

    Raises
    ------
    UsageError, EnvironmentFault
        There is no such executor or model, or the executor does not work here; JAX cannot trace the function for these inputs.
    TenferroError
        The inputs do not fit the program, or the signature of the module that JAX makes of the function cannot be passed arrays.

    Examples
    --------
    >>> import jax, numpy as np, tenferro_ref
    >>> result = tenferro_ref.check(jax.nn.softmax, [np.ones((4, 9), np.float32)], executors="jax")
    >>> result.ok, result.compared
    (True, ('jax',))
    """
    with checker() as made:
        return made.check(what, inputs, executors=executors, model=model)


def assert_parity(
    function: Program | Callable[..., Any],
    *inputs: Any,
    executors: str | Sequence[str] = "all",
    model: str | None = None,
    using: Checker | None = None,
    **keywords: Any,
) -> CheckResult:
    """Check, and raise if an executor is wrong, or if nothing was compared.

    Parameters
    ----------
    inputs, executors, model
        As for `check`.
    using
        A checker that keeps worker processes between calls; the pytest fixture `assert_parity` brings its own.
    keywords
        None: a function's own are bound beforehand.

    Raises
    ------
    UsageError
        Keywords, or as for `check`.
    AssertionError
        With the table of verdicts.
    """
    __tracebackhide__ = True  # pytest shows the caller's line, and the table
    if keywords:
        from tenferro_ref.errors import UsageError

        detail = f"assert_parity has no keyword {', '.join(keywords)}; bind a function's own beforehand: functools.partial(function, axis=0)"
        raise UsageError(detail=detail)
    if using is None:
        with checker() as made:
            return assert_parity(function, *inputs, executors=executors, model=model, using=made)
    result = using.check(function, inputs, executors=executors, model=model)
    if not result.ok:
        raise AssertionError(f"executors disagree\n{result}")
    if not result.compared:
        raise AssertionError(f"no executor but native gave a result that could be compared\n{result}")
    return result
