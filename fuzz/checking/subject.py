"""What is checked: a case, or a StableHLO module that cannot be read as a program, with its inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.generate.values.inputs import random_arguments, random_inputs
from oracle.case import Case, Derivation, Refusal
from oracle.given_case import given_case
from tenferro_ref.console import fitting, is_stablehlo, read_content, read_text_form, transformed
from tenferro_ref.errors import (
    FormatError,
    LoweringError,
    MissingDependency,
    TenferroError,
    UsageError,
    WorkerDied,
)
from tenferro_ref.files import read_text
from tenferro_ref.isolation import Worker, WorkerSpec, wire
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.ops import TensorType
from tenferro_ref.program import loads
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.loader import MOST_OPERATIONS
from tenferro_ref.tensor import Array, column_major, load_npz, same_bits, type_of

_CLOSE_OVER = "inputs are arrays; bind what is static or a keyword beforehand: functools.partial(function, axis=0)"
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class Subject:
    """One thing to check, with one set of inputs.

    Attributes
    ----------
    case
        None for a module that cannot be read as a program, for the reason `unread`.
    source, arguments
        The module and the arguments of its `main`; None and () for what is no module, and for a module that nothing can be run
        of, for the reason `unread`.
    inputs
        "given", or of what kind they were drawn: "ordinary", "special".
    drawn
        What was drawn, as a file of inputs has it; None where inputs were given.
    """

    name: str
    case: Case | None
    source: Source | None = None
    arguments: tuple[Array, ...] = ()
    unread: TenferroError | None = None
    inputs: str = "given"
    drawn: tuple[Array, ...] | None = None

    @property
    def reads(self) -> str:
        """Dtypes and shapes of the inputs, in words."""
        arrays = self.arguments if self.case is None else self.case.arguments
        return ", ".join(str(type_of(a)) for a in arrays)


@dataclass(frozen=True)
class Inputs:
    """Where the inputs of a subject come from: a file (in0, in1, ...) or, if that is None, a seed."""

    seed: int
    file: str | None = None

    def given(self, types: Sequence[TensorType]) -> list[Array] | None:
        """The file's arrays, for inputs of these types; None where they are drawn."""
        return None if self.file is None else load_npz(self.file, "in", types)


def module_subjects(code: str | bytes, where: str, inputs: Inputs, reader: Reader) -> list[Subject]:
    """A StableHLO module as it is: with the inputs of a file, or once with ordinary numbers and once with special ones.

    Raises
    ------
    FormatError
        No module, or inputs that do not fit it.
    """
    try:
        source = reader.source(code, where)
    except LoweringError as error:  # its signature has what cannot be passed as an array: dynamic extents, tokens
        return [Subject(where, None, unread=error)]
    given = inputs.given(source.arguments)
    if given is not None:
        _check_fit(source.arguments, given, inputs.file or "", where)
        return [given_subject(source, given, reader)]
    drawn = [random_arguments(source, inputs.seed, special=special) for special in (False, True)]
    alike = all(map(same_bits, *drawn))
    return [
        replace(given_subject(source, arguments, reader), inputs=name, drawn=arguments)
        for name, arguments in zip(("ordinary", "special"), drawn[: 1 if alike else 2], strict=False)
    ]


def named_function_subject(name: str, inputs: Inputs, reader: Reader) -> Subject:
    """The JAX function `package.module:function`, called with the arrays of a file.

    Raises
    ------
    UsageError
        No inputs are given, or there is no such function.
    FormatError
        JAX cannot trace the function for these inputs.
    MissingDependency
        There is no JAX.
    """
    if inputs.file is None:
        raise UsageError(detail=f"{name}: a JAX function needs --inputs NPZ: in0, in1, ... are its arguments")
    arrays = load_npz(inputs.file, "in")
    with Worker("JAX", WorkerSpec("tenferro_ref.isolation.engines.lowering")) as worker:
        worker.facts  # noqa: B018 - starts it, so that what is missing is not blamed on the function
        try:
            answer = worker.request({"function": name, "inputs": [wire.pack(a) for a in arrays]})
        except WorkerDied as died:
            # the last line that the worker writes is the place and the error; one that was killed has written none
            words = died.stderr_tail.splitlines() if died.how == "exit status 1" else []
            detail = f"JAX cannot trace it for these inputs: {words[-1] if words else died}"
            raise FormatError(where=name, detail=detail) from None
    return given_subject(reader.source(answer["code"], name), arrays, reader)


def function_subject(function: Callable[..., Any], arrays: Sequence[Any], reader: Reader, name: str = "") -> Subject:
    """A JAX function with the arrays to call it with, as the module that JAX makes of it.

    The arrays are what JAX takes them for: of 32 bits where they have 64, unless `jax_enable_x64` is set; of typed keys their data.

    Raises
    ------
    MissingDependency
        There is no JAX.
    UsageError
        JAX cannot trace the function for these arrays; the error that it raised is the cause.
    TenferroError
        As `module_subject`.
    """
    try:
        import jax
    except ImportError:
        raise MissingDependency.of_extra("jax", "jax", "it runs the function") from None
    name = name or _name_of(function)
    try:
        lowered = jax.jit(function, keep_unused=True).lower(*arrays)
        taken = zip(jax.tree.leaves(tuple(arrays)), jax.tree.leaves(lowered.args_info), strict=True)
        leaves = [
            np.asarray(jax.random.key_data(leaf))
            if jax.dtypes.issubdtype(info.dtype, jax.dtypes.prng_key)
            else np.asarray(leaf).astype(info.dtype, copy=False)
            for leaf, info in taken
        ]
    # what JAX raises for functions that it cannot trace, and for what is no array, one that is deleted, a number beyond its dtype
    except (IndexError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        words = (str(error).splitlines() or [""])[0]
        detail = f"{name}: JAX cannot trace it for these inputs: {type(error).__name__}: {words}; {_CLOSE_OVER}"
        raise UsageError(detail=detail) from error
    return given_subject(reader.source(lowered.as_text(), name), leaves, reader)


def _name_of(function: Callable[..., Any]) -> str:
    """A function's name, of a `partial` that of what it calls; of another object that can be called its class's."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def given_subject(source: Source, arguments: Sequence[Array], reader: Reader, most: int = MOST_OPERATIONS) -> Subject:
    """A module with its arguments; it is read as a program if it can be, and has up to `most` operations."""
    arguments = tuple(map(column_major, arguments))
    try:
        return Subject(source.where, given_case(source, arguments, reader, most), source, arguments)
    except TenferroError as unread:
        return Subject(source.where, None, source, arguments, unread)


def _check_fit(types: Sequence[TensorType], arguments: Sequence[Array], file: str, where: str) -> None:
    if len(types) != len(arguments):
        detail = f"does not fit {where}: {len(arguments)} arrays for {len(types)} arguments"
        raise FormatError(where=file, detail=detail)
    for i, (type_, array) in enumerate(zip(types, arguments, strict=True)):
        if type_of(array) != type_:
            detail = f"does not fit {where}: in{i} is {type_of(array)}, argument {i} is {type_}"
            raise FormatError(where=file, detail=detail)


def file_subjects(
    file: str, inputs: Inputs, reader: Reader, *, transform: str | None = None, written: bool = False
) -> list[Subject]:
    """A program or module of a file, or a JAX function `package.module:function`, once for each set of inputs. The arrays that a module brings along follow the arguments, seeds of a derivative them.

    Parameters
    ----------
    transform
        "jvp" or "vjp": the program's derivative instead, which no module has.
    written
        A module is read as a program, which executors are given instead.

    Raises
    ------
    TenferroError
        The file cannot be read, or its inputs do not fit.
    """
    if _FUNCTION.fullmatch(file) and not Path(file).exists():
        if transform is not None or written:
            raise UsageError(
                detail=f"{file}: a JAX function is run as JAX lowers it; write its StableHLO to a file first"
            )
        return [named_function_subject(file, inputs, reader)]
    content, where = read_content(file)
    bound: tuple[Array, ...] = ()
    if isinstance(content, bytes) or is_stablehlo(content):
        if transform is None and not written:
            return module_subjects(content, where, inputs, reader)
        loaded = reader.load(content, where)
        program, bound = loaded.program, loaded.bound
    else:
        program = read_text_form(content, where)
    program = program.to_graph()
    arguments = len(program.input_slots) - len(bound)
    # where arrays are bound, only the arguments are differentiated: nothing else is known of such a derivative
    derivation = Derivation(program, (transform,)) if transform and not bound else None
    program = transformed(program, transform, arguments)
    behind = arguments + len(bound)
    arrays = inputs.given([*program.input_types[:arguments], *program.input_types[behind:]])
    if arrays is None:
        values = random_inputs(program, inputs.seed)
        chosen = [*values[:arguments], *bound, *values[behind:]]
        case = Case.of(program, chosen, derivation=derivation)
        return [Subject(where, case, drawn=(*values[:arguments], *values[behind:]))]
    chosen = fitting(program, where, inputs.file or "", arrays, arguments, bound)
    return [Subject(where, Case.of(program, chosen, derivation=derivation))]


def invalid_subject(file: str, inputs: Inputs) -> Subject:
    """A program that breaks a rule; it has no text form and no StableHLO, and what it declares must be sound."""
    program = loads(read_text(file), file, infer=False)
    if program.kind != "graph":
        raise UsageError(detail=f"{file}: only graph programs can be invalid")
    try:
        program.slot_types  # noqa: B018 - infers
    except TenferroError as error:
        if error.place.startswith("$.inputs"):
            raise
        facts = error.facts()
        due = Refusal(f"{error.place}: {error.text()}", error.kind, facts.get("op"), facts.get("axis"))
        arrays = inputs.given(program.input_types)
        if arrays is None:
            values = random_inputs(program, inputs.seed)
            return Subject(file, Case.of(program, values, due), drawn=values)
        return Subject(file, Case.of(program, fitting(program, file, inputs.file or "", arrays), due))
    raise UsageError(detail=f"{file}: breaks no rule; without --invalid its results are compared")
