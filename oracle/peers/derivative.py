"""Checks of derivative rules: what a derivative program is equal to over the real numbers, computed in another way.

A wrong rule makes a wrong program, which every executor runs alike. These executors give no values: they differentiate the
primal program anew, and give enclosures of two sides, which must have a value in common wherever both are bounded.

`derivative-adjoint`      `<cotangents, jvp(tangents)> = <vjp(cotangents), tangents>`; the vjp is the gradient of a real number, and
                          the transpose of a program in an input in which it is linear
`derivative-differences`  `f(x + d) - f(x)`, and the tangent of d within what second derivatives leave open
`derivative-jax`          the derivative that JAX takes of the primal program, op by op, as a program
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from oracle.case import Case, Derivation
from oracle.conventions import check_determined, check_unregularised, for_jax
from oracle.derivation import TRANSFORMS, Differentiated, concrete, differentiated, inner_products, results
from oracle.differences import quotients
from oracle.enclosure import IEEE, REAL, Enclosure, enclose
from oracle.enclosure.value import point
from oracle.linearity import by_gradient, by_transposes
from oracle.ordinary import ordinary, with_nans, without_claims
from oracle.peers.base import Execution, Executor
from tenferro_ref.autodiff import Derivative
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.isolation import Worker, wire
from tenferro_ref.program import GraphProgram, dumps, loads
from tenferro_ref.tensor import Array


@dataclass
class DerivativeExecutor(Executor):
    """Two sides of an equation that holds for a derivative over the real numbers."""

    name: str

    def run(self, case: Case) -> Execution:
        raise UnsupportedOp(op="program", reason=f"{self.name} gives no values; it compares two programs")

    @abstractmethod
    def sides(self, case: Case) -> tuple[list[Enclosure], list[Enclosure]]:
        """What must have values in common, for a case that was derived.

        Raises
        ------
        TenferroError
            There is no such equation, or no enclosure of a side.
        """


@dataclass
class AdjointExecutor(DerivativeExecutor):
    """The two inner products that both products of a program give."""

    def requirements(self) -> tuple[str, ...]:
        return ()

    def sides(self, case: Case) -> tuple[list[Enclosure], list[Enclosure]]:
        d = differentiated(case)
        one, other = (enclose(s.program, s.inputs, REAL) for s in inner_products(d))
        for more, others in (by_gradient(d), by_transposes(d)):
            one, other = [*one, *more], [*other, *others]
        return [without_claims(e) for e in one], other


@dataclass
class DifferencesExecutor(DerivativeExecutor):
    """Difference quotients of the program that the last transform was applied to."""

    def requirements(self) -> tuple[str, ...]:
        return ()

    def sides(self, case: Case) -> tuple[list[Enclosure], list[Enclosure]]:
        ours, theirs = quotients(differentiated(case))
        return [without_claims(e) for e in ours], theirs


@dataclass
class JaxDerivativeExecutor(DerivativeExecutor):
    """The derivative of the primal program by `jax.jvp` and `jax.vjp`, lowered to StableHLO and read back as a program.

    A derivative that ours leaves out as zero is zero there, too.
    """

    worker: Worker

    def open(self) -> None:
        self.worker.facts  # noqa: B018 - starts the worker

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.worker.facts.items()

    def close(self) -> None:
        self.worker.close()

    def sides(self, case: Case) -> tuple[list[Enclosure], list[Enclosure]]:
        derivation = case.derivation
        assert derivation is not None
        check_determined(derivation.primal)
        if len(derivation.transforms) > 1:
            check_unregularised(derivation.primal)  # JAX's has the second derivative of the function
        d, last = differentiated(case), derivation.transforms[-1]
        own, seeds = (d.forward, d.tangents) if last == "jvp" else (d.backward, d.cotangents)
        inputs = (*d.inputs, *seeds)
        program, bound = self._differentiated(derivation, inputs)
        theirs = enclose(program, (*inputs, *bound), REAL)
        ours = _whole(enclose(concrete(own.program, inputs), inputs, REAL), d, own, last)
        if ordinary(d):
            computed = _whole(enclose(concrete(own.program, inputs), inputs, IEEE), d, own, last)
            return [with_nans(e, ieee) for e, ieee in zip(ours, computed, strict=True)], theirs
        return [without_claims(e) for e in ours], theirs

    def _differentiated(self, derivation: Derivation, inputs: Sequence[Array]) -> tuple[GraphProgram, list[Array]]:
        """JAX's program, and the arrays that it brings along behind its inputs."""
        message = {
            "program": dumps(for_jax(derivation.primal)),
            "transforms": list(_steps(derivation)),
            "inputs": [wire.pack(a) for a in inputs],
        }
        answer = self.worker.request(message)
        if "refusal" in answer:
            raise wire.unpack_error(answer["refusal"])
        return loads(answer["program"], "JAX's derivative").to_graph(), list(map(wire.unpack, answer["bound"]))


def _whole(made: Sequence[Enclosure], d: Differentiated, own: Derivative, last: str) -> list[Enclosure]:
    """The results of a derivative with those that are left out: zeros."""
    return [
        point(np.zeros(type_.static_shape, type_.dtype.numpy)) if place is None else made[place]
        for type_, place in results(concrete(d.program, d.inputs), last, own)
    ]


def _steps(derivation: Derivation) -> Iterator[tuple[str, int, list[int]]]:
    """Each transform with the number of inputs before it, and which of its results the next one reads: those that are no
    zeros, or all of the last one."""
    program = derivation.primal
    for number, transform in enumerate(derivation.transforms, 1):
        made = TRANSFORMS[transform](program)
        last = number == len(derivation.transforms)
        kept = [i for i, (_, place) in enumerate(results(program, transform, made)) if last or place is not None]
        yield transform, len(program.input_slots), kept
        program = made.program
