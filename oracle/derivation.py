"""Derivative programs as cases: made of a primal case by transforms, with seeds for their further inputs.

A derivative of a derivative is one too. Its inputs are those of the primal program, then for each transform in turn a
tangent an input (jvp) or a cotangent an output (vjp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import PCG64, Generator

from oracle.case import Case, Derivation
from tenferro_ref import ops
from tenferro_ref.autodiff import Derivative, jvp, vjp
from tenferro_ref.autodiff.errors import UnsupportedAdRule, UnsupportedMetadata
from tenferro_ref.dims import evaluate, expr_of
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import FormatError, Internal, TenferroError, defects_in
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, GraphProgram, Value, loads
from tenferro_ref.tensor import Array, type_of

TRANSFORMS: dict[str, Callable[[GraphProgram], Derivative]] = {"jvp": jvp, "vjp": vjp}

#: Makes the array of a further input from its number, its type and its shape.
Seeds = Callable[[int, DType, tuple[int, ...]], Array]


def derive(program: GraphProgram, transforms: Sequence[str]) -> GraphProgram:
    """The program after all transforms; errors as `tenferro_ref.autodiff.jvp`."""
    for transform in transforms:
        program = TRANSFORMS[transform](program).program
    return program


@contextmanager
def rules_applied(program: GraphProgram) -> Iterator[None]:
    """Where rules are applied to a valid program: that there is none is an answer, all else is a defect.

    Raises
    ------
    Internal
        A rule made something that no program can hold, or misses constant extents where all are.
    """
    try:
        with defects_in("a derivative rule"):
            yield
    except UnsupportedMetadata as error:
        sized = any(isinstance(ins.op, ops.GatherDynamicSliceSizes) for ins in program.instructions)
        if sized or not all(type_.is_static for type_ in program.slot_types.values()):
            raise
        raise Internal(detail=f"a derivative rule, of a program whose extents are constant: {error}") from error
    except (Internal, UnsupportedAdRule):
        raise
    except TenferroError as error:
        raise Internal(detail=f"a derivative rule, of a valid program: {error.kind}: {error}") from error


def derived(primal: Case, transforms: Sequence[str], seeds: Seeds) -> Case | None:
    """A derivative of a case as a case.

    None where an op has no rule, or every derivative is zero, or one would break a rule at these inputs: the sum along an
    axis whose symbol stands for no elements, which the engine's policy refuses.

    Raises
    ------
    Internal
        A rule has a defect.
    """
    try:
        with rules_applied(primal.program):
            program = derive(primal.program, transforms)
    except (UnsupportedAdRule, UnsupportedMetadata):
        return None
    if not program.output_slots:
        return None
    inputs = with_seeds(program, primal.inputs, seeds)
    if program.symbols and program.at([type_of(a) for a in inputs]).error is not None:
        return None
    return Case.of(program, inputs, derivation=Derivation(primal.program, tuple(transforms)))


def underived(primal: Case, transforms: Sequence[str]) -> Case:
    """The case of a derivative that could not be made (`oracle.unmade`)."""
    return Case(primal.program, primal.inputs, derivation=Derivation(primal.program, tuple(transforms)))


def with_seeds(program: GraphProgram, inputs: Sequence[Array], seeds: Seeds) -> list[Array]:
    """`inputs`, and seeds for the further inputs of `program`, whose extents may be those of earlier inputs."""
    arrays = list(inputs)
    for number in range(len(arrays), len(program.input_types)):
        type_ = program.input_types[number]
        shapes = [a.shape for a in arrays]
        shape = tuple(evaluate(expr_of(extent), shapes) for extent in type_.shape)
        arrays.append(seeds(number, type_.dtype, shape))
    return arrays


def derivation_of(primal: str, transforms: Sequence[str], where: str) -> Derivation:
    """The derivation that a file tells of.

    Raises
    ------
    FormatError
        The primal program cannot be read, or a transform is none.
    """
    if unknown := [t for t in transforms if t not in TRANSFORMS]:
        raise FormatError(where=where, detail=f"{unknown[0]!r} is no transform; known: {', '.join(TRANSFORMS)}")
    return Derivation(loads(primal, where).to_graph(), tuple(transforms))


def plain_seed(number: int, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Numbers of few bits between -2 and 2, none of them zero."""
    rng = Generator(PCG64(number))

    def eighths() -> Array:
        return np.asarray(rng.integers(1, 17, shape) * rng.choice((-0.125, 0.125), shape))

    values = np.empty(shape, dtype.numpy, order="F")
    values.real = eighths()
    if dtype.is_complex:
        values.imag = eighths()
    return values


def kept_seeds(case: Case) -> Seeds:
    """The seeds of a case where they fit, plain ones elsewhere: for smaller programs of the same derivation."""
    assert case.derivation is not None
    first = len(case.derivation.primal.input_slots)
    known = case.inputs[first:]

    def seed(number: int, dtype: DType, shape: tuple[int, ...]) -> Array:
        for array in known[number - first :][:1]:
            if DType.of(array) is dtype and array.shape == shape:
                return array
        return plain_seed(number, dtype, shape)

    return seed


def derived_alike(case: Case, primal: Case) -> Case | None:
    """The derivative of a smaller program, by the transforms of a case and with its seeds where they fit.

    None where there is none, or where a rule has a defect that is not what is looked for.
    """
    assert case.derivation is not None
    try:
        return derived(primal, case.derivation.transforms, kept_seeds(case))
    except Internal:
        return underived(primal, case.derivation.transforms) if case.unmade else None


# --- the last transform -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Differentiated:
    """The program that the last transform of a case was applied to, at its inputs, with both products.

    Attributes
    ----------
    program
        With the extents of the inputs.
    tangents, cotangents
        Seeds of the two products.
    """

    program: GraphProgram
    inputs: tuple[Array, ...]
    forward: Derivative
    backward: Derivative
    tangents: tuple[Array, ...]
    cotangents: tuple[Array, ...]


def differentiated(case: Case) -> Differentiated:
    """Both products at the last transform of a derivative case, made anew; errors as `tenferro_ref.autodiff.vjp`.

    Raises
    ------
    Internal
        A rule has a defect.
    """
    derivation = case.derivation
    assert derivation is not None
    with rules_applied(derivation.primal):
        program = derive(derivation.primal, derivation.transforms[:-1])
        forward, backward = jvp(program), vjp(program)
    inputs, given = case.inputs[: len(program.input_slots)], case.inputs[len(program.input_slots) :]
    count = len(inputs)
    pushes = derivation.transforms[-1] == "jvp"
    tangents = given if pushes else with_seeds(forward.program, inputs, plain_seed)[count:]
    cotangents = with_seeds(backward.program, inputs, plain_seed)[count:] if pushes else given
    return Differentiated(program, inputs, forward, backward, tuple(tangents), tuple(cotangents))


def inner_products(d: Differentiated) -> tuple[Case, Case]:
    """`<cotangents, jvp(tangents)>` and `<vjp(cotangents), tangents>`: programs of one output, F64 of rank 0."""
    return (
        _inner_product(d.forward, (*d.inputs, *d.tangents), d.backward, len(d.inputs), d.cotangents),
        _inner_product(d.backward, (*d.inputs, *d.cotangents), d.forward, len(d.inputs), d.tangents),
    )


def replayed(builder: GraphBuilder, program: GraphProgram, inputs: Sequence[Value]) -> list[Value]:
    """The outputs of a program whose instructions are appended to the builder's, on values of the builder."""
    values = dict(zip(program.input_slots, inputs, strict=True))
    for ins in program.instructions:
        results = builder.apply_many(ins.op, *(values[slot] for slot in ins.input_slots))
        values.update(zip(ins.output_slots, results, strict=True))
    return [values[slot] for slot in program.output_slots]


def _inner_product(
    one: Derivative, inputs: Sequence[Array], other: Derivative, count: int, seeds: Sequence[Array]
) -> Case:
    """The results of one product with the seeds of the other one: both are of the same values, in the same order."""
    program = concrete(one.program, inputs)
    builder = GraphBuilder(program.name, program.policy)
    outputs = replayed(builder, program, [builder.typed_input(t) for t in program.input_types])
    partners = [builder.typed_input(type_of(seed)) for seed in seeds]
    terms = [
        _term(partners[seed - count], outputs[result])
        for seed, result in zip(other.seeds, one.results, strict=True)
        if seed is not None and result is not None and seeds[seed - count].size
    ]
    total: Value = builder.constant(0.0, DType.F64)
    for term in terms:
        total = total + term
    return Case.of(builder.build(total), (*inputs, *seeds))


def _term(a: Value, b: Value) -> Value:
    """`Re(conj(a) b)`, summed, in F64."""
    if a.dtype.is_complex:
        a = a.builder.apply(ops.Conj(), a)
    product = a * b
    return product.sum(range(product.ndim)).astype(DType.F64)


def concrete(program: GraphProgram, inputs: Sequence[Array]) -> GraphProgram:
    """The program with the extents of these inputs."""
    return replace(program, input_types=tuple(type_of(a) for a in inputs), symbols=())


def results(program: GraphProgram, transform: str, made: Derivative) -> list[tuple[TensorType, int | None]]:
    """Type and place of each derivative of floats and complex numbers; of those that are zero the place is None."""
    types = program.input_types if transform == "vjp" else program.output_types
    return [(t, place) for t, place in zip(types, made.results, strict=True) if t.dtype in INEXACT]
