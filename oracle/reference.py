"""The reference of a case: the native answer and the enclosures, computed once and shared by all executors.

Input sets of one program are enclosed and compared together, along one more axis of every value; one set is the usual case.
What the verdict on an executor's answer is does not live here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from oracle.case import Case, by_program, live
from oracle.compare import Observation, compare_sets
from oracle.enclosure import MODELS, Enclosure, enclose, enclose_sets, of_set, sets_at_once, some_sets
from oracle.peers import Execution, NativeExecutor, attempt
from oracle.staged import decomposing
from oracle.verdict import Comparison
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, defects_in
from tenferro_ref.tensor import Array, same_bits

#: An answer inside this model is right for every executor; one that is only inside the executor's own model is counted as forgiven.
STRICT_MODEL = "ieee"


@dataclass(eq=False)
class Reference:
    """What a case should give.

    Attributes
    ----------
    sets
        The input sets of the program that are enclosed together, this one among them.
    """

    case: Case
    native: NativeExecutor
    sets: InputSets = field(init=False)
    #: Outputs that were inside a model, by its name.
    _right: list[tuple[str, tuple[Array, ...], Comparison]] = field(default_factory=list, init=False)

    #: By model, why the way through the module is open.
    _ways: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.sets = InputSets((self,))

    @cached_property
    def execution(self) -> Execution | TenferroError:
        """The native answer, or the error that the native executor raises."""
        return attempt(self.native, self.case)

    def enclosures(self, model: str) -> list[Enclosure]:
        """One enclosure an output.

        Raises
        ------
        UnsupportedOp
            The program has an op without an enclosure.
        Internal
            A rule has a defect.
        """
        ((sets, _, held),) = _enclosed([self], (model,))
        if isinstance(held, TenferroError):
            raise held
        return [of_set(e, sets.references.index(self)) for e in held[0]]

    def open_way(self, model: str) -> str:
        """Why it is not certain under a model which way the module goes; "" if it is, or goes one way only."""
        deciding = self.case.deciding
        if deciding is None:
            return ""
        if model not in self._ways:
            with defects_in("an enclosure"):
                try:
                    certain = all(e.decided.all() for e in enclose(deciding, self.case.inputs, MODELS[model]))
                    reason = "" if certain else "a condition on which the module branches or loops is not decided"
                except UnsupportedOp as error:
                    if self.case.watched is not None and decomposing(live(self.case.program)):
                        return ""  # judged in stages, with this condition
                    reason = f"a condition on which the module branches or loops has no enclosure: {error}"
            self._ways[model] = reason
        return self._ways[model]

    def known(self, model: str, outputs: tuple[Array, ...]) -> Comparison | None:
        """The comparison of these outputs, if the same bits were found inside the strictest model or inside `model` before."""
        for held, right, comparison in self._right:
            if held in (STRICT_MODEL, model) and len(right) == len(outputs) and all(map(same_bits, right, outputs)):
                return comparison
        return None

    def note(self, model: str, outputs: tuple[Array, ...], comparison: Comparison) -> None:
        """Keep the comparison of outputs that are inside a model."""
        self._right.append((model, outputs, comparison))


@dataclass(frozen=True, eq=False)
class InputSets:
    """Input sets of one program that are enclosed at once; what they have in common is kept here."""

    references: tuple[Reference, ...]
    _enclosures: dict[str, list[Enclosure]] = field(default_factory=dict, init=False)

    def enclosures(self, model: str) -> list[Enclosure]:
        """One enclosure an output, with the sets along the last axis.

        Raises
        ------
        UnsupportedOp
            The program has an op without an enclosure, or the sets have to be enclosed each for itself.
        Internal
            A rule has a defect.
        """
        if model not in self._enclosures:
            case, inputs = self.references[0].case, [r.case.inputs for r in self.references]
            with defects_in("an enclosure"):
                self._enclosures[model] = enclose_sets(
                    live(case.program), inputs, MODELS[model], arguments=len(case.arguments)
                )
        return self._enclosures[model]


def _enclosed(
    references: Iterable[Reference], models: Sequence[str]
) -> Iterator[tuple[InputSets, list[Reference], list[list[Enclosure]] | TenferroError]]:
    """The references by the sets that they are enclosed with, and for each model the enclosures, or why there are none."""
    together: dict[InputSets, list[Reference]] = {}
    for reference in references:
        together.setdefault(reference.sets, []).append(reference)
    for sets, chosen in together.items():
        try:
            yield sets, chosen, [sets.enclosures(model) for model in models]
        except UnsupportedOp as error:
            if len(sets.references) == 1:
                yield sets, chosen, error
                continue
            for reference in sets.references:  # it may be one of the sets that has no enclosure
                reference.sets = InputSets((reference,))
            yield from _enclosed(chosen, models)
        except Internal as error:
            yield sets, chosen, error


def compare_all(
    outputs: Mapping[Reference, tuple[Array, ...]], model: str
) -> dict[Reference, Comparison | TenferroError]:
    """Hold outputs of many cases to the enclosures of the strictest model, and what is outside those to `model`.

    Returns
    -------
    dict
        For each reference, whose native answer is no error, the comparison or the error of the enclosure.
    """
    results: dict[Reference, Comparison | TenferroError] = {}
    for reference, seen in outputs.items():
        if known := reference.known(model, seen):
            results[reference] = known
    for held in dict.fromkeys((STRICT_MODEL, model)):
        left = {reference: seen for reference, seen in outputs.items() if reference not in results}
        for reference, result in _compared(left, held):
            right = isinstance(result, Comparison) and not result.outside
            if right and isinstance(result, Comparison):
                reference.note(held, outputs[reference], result)
            if right or held == model or isinstance(result, TenferroError):
                results[reference] = result
    return results


def _compared(
    outputs: Mapping[Reference, tuple[Array, ...]], model: str
) -> Iterator[tuple[Reference, Comparison | TenferroError]]:
    """The comparison of each of the outputs with its enclosure under one model."""
    observations: dict[Observation, list[Reference]] = {}
    for sets, references, held in _enclosed(outputs, [model] if model == STRICT_MODEL else [model, STRICT_MODEL]):
        if isinstance(held, TenferroError):
            yield from ((reference, held) for reference in references)
            continue
        places = [sets.references.index(r) for r in references]
        own, *strict = ([some_sets(e, places) for e in enclosures] for enclosures in held)
        native = [r.execution.outputs for r in references if isinstance(r.execution, Execution)]
        observation = Observation(own, strict[0] if strict else None, [outputs[r] for r in references], native)
        observations[observation] = references
    for references, comparisons in zip(observations.values(), compare_sets(list(observations)), strict=True):
        yield from zip(references, comparisons, strict=True)


def prepare(references: Sequence[Reference]) -> None:
    """Compute now what every verdict needs, so that the threads that ask for verdicts do not wait for one another.

    The input sets of a program are compiled once, and enclosed and compared together.
    """
    sound: dict[Reference, tuple[Array, ...]] = {}
    for group in by_program([reference.case for reference in references]):
        chosen = [references[i] for i in group]
        for reference, result in zip(chosen, chosen[0].native.run_many([r.case for r in chosen]), strict=True):
            reference.execution = result
        executed = {r: r.execution.outputs for r in chosen if isinstance(r.execution, Execution)}
        _put_together(list(executed))
        sound |= executed
    if sound:
        compare_all(sound, references[0].native.model)


def _put_together(references: Sequence[Reference]) -> None:
    """Make of the input sets of a program as many as are enclosed at once."""
    size = 1
    if len(references) > 1:
        size = sets_at_once(live(references[0].case.program), references[0].case.shapes)
    for start in range(0, len(references), size):
        sets = InputSets(tuple(references[start : start + size]))
        for reference in sets.references:
            reference.sets = sets


__all__ = ["STRICT_MODEL", "InputSets", "Reference", "compare_all", "prepare"]
