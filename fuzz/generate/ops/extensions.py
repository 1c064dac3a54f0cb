"""The row of `STRATEGY` for Extension: einsum over one to three operands, and transforms of the fft family.

Decompositions and solvers are in `linalg`: whether a matrix may be factored depends on its values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import log2
from typing import Any

from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.shapes import Shape, shape_of, volume
from fuzz.generate.table import STRATEGY
from tenferro_ref import ops
from tenferro_ref.dtype import NUMERIC, DType
from tenferro_ref.extensions import einsum, fft
from tenferro_ref.program import Value
from tenferro_ref.table import Table

_LABELS = "ijklmnopqrst"
#: The same labels, as others write them: capitals, whose order is another one, and letters of two alphabets.
_WRITTEN = [str.maketrans(_LABELS, letters) for letters in (_LABELS, "iJkLmNoPqRsT", "λaβbδcεdζeθf")]
#: Products that one einsum may cost when its operands are taken all at once.
_MAX_WORK = 2**14


#: (growing program) -> result: appends one op of a family, on operands that it chooses; keyed by family.
GROW_EXTENSION: Table[Callable[[Growth], Value]] = Table("generator")


@STRATEGY.row(ops.Extension)
def _(g: Growth, op: type[Any]) -> Value:
    others = [family for family in GROW_EXTENSION if family not in (fft.FAMILY, einsum.FAMILY)]
    if others and g.choices.chance(50):
        family = g.choices.choose(others)
    else:
        family = fft.FAMILY if _spectra(g) and g.choices.chance(45) else einsum.FAMILY
    return GROW_EXTENSION[family](g)


@GROW_EXTENSION.row(einsum.FAMILY)
def contracted(g: Growth) -> Value:
    """Append an einsum."""
    choices = g.choices
    dtypes, extents = [d for d in g.config.dtypes if d in NUMERIC], dict[str, int]()
    if g.config.max_rank >= 4 and g.limit >= 2**4 and choices.chance(20):
        x, labels = _two_diagonals(g, g.wanted_dtype or g.dtype(dtypes), extents)
    else:
        x = g.operand(dtypes, lambda v: v.type.rank <= 4)
        labels = _labelled(g, shape_of(x), extents)
    operands, equations = [x], [labels]
    for _ in range(choices.choose((1, 1, 0, 2))):
        trial = dict(extents)
        labels = _shared(g, trial)
        shape = tuple(trial[label] for label in labels)
        if volume(shape) > g.limit or volume(list(trial.values())) > _MAX_WORK:
            break
        extents = trial
        operands.append(g.typed(choices.choose(dtypes) if choices.chance(8) else x.dtype, shape))
        equations.append(labels)
    output = _output(g, extents, equations)
    estimates = [g.estimates[v.slot] for v in operands]
    summed = [e for label, e in extents.items() if label not in output]
    size = sum(e.size for e in estimates) + log2(max(1, volume(summed)))
    equation = f"{','.join(equations)}->{output}".translate(_WRITTEN[choices.choose((0, 0, 0, 1, 2))])
    estimate = Estimate(all(e.positive for e in estimates), size)
    return g.apply(ops.Extension.of(einsum.FAMILY, "einsum", {"equation": equation}), *operands, estimate=estimate)


def _two_diagonals(g: Growth, dtype: DType, extents: dict[str, int]) -> tuple[Value, str]:
    """A new operand with two labels that come twice, and what it is labelled with."""
    for label in "ij":
        extents[label] = 2 if g.limit < 3**4 else 2 + g.choices.pick(2)
    labels = g.choices.choose(("iijj", "ijij", "ijji"))
    return g.fresh(dtype, tuple(extents[label] for label in labels)), labels


def _labelled(g: Growth, shape: Shape, extents: dict[str, int]) -> str:
    """Labels for the axes of a value; axes of one extent may share one, which takes the diagonal."""
    labels = ""
    for extent in shape:
        alike = [label for label in labels if extents[label] == extent]
        label = g.choices.choose(alike) if alike and g.choices.chance(20) else _LABELS[len(extents)]
        extents[label] = extent
        labels += label
    return labels


def _shared(g: Growth, extents: dict[str, int]) -> str:
    """Labels of a further operand: some that there are, in any order, and perhaps a new one or one twice."""
    choices, known = g.choices, list(extents)
    chosen = [known[i] for i in choices.permutation(len(known))[: min(choices.pick(4), g.max_rank - 1)]]
    if choices.chance(50) and len(extents) < len(_LABELS):
        label = _LABELS[len(extents)]
        extents[label] = g.extent()
        chosen.insert(choices.pick(len(chosen) + 1), label)
    if chosen and len(chosen) < g.max_rank and choices.chance(8):
        chosen.append(chosen[0])
    return "".join(chosen)


def _output(g: Growth, extents: dict[str, int], operands: list[str]) -> str:
    """Some of the labels in any order; now and then one of them twice, which embeds a diagonal, or those that need not be written.

    These are the labels that occur once, and before them a label of several operands for which an ellipsis may stand.
    """
    choices, known = g.choices, list(extents)
    once = [label for label, n in sorted(Counter("".join(operands)).items()) if n == 1][: g.max_rank]
    if choices.chance(30):
        shared = [label for label in known if label not in once and all(part.count(label) < 2 for part in operands)]
        if shared and len(once) < g.max_rank and choices.chance(50):
            once.insert(0, choices.choose(shared))
        if volume([extents[label] for label in once]) <= g.limit:
            return "".join(once)
    kept = [known[i] for i in choices.permutation(len(known)) if not choices.chance(45)][: g.max_rank]
    while volume([extents[label] for label in kept]) > g.limit:
        kept.remove(max(kept, key=extents.__getitem__))
    if kept and len(kept) < g.max_rank and choices.chance(18):
        twice = [*kept, kept[0]]
        if volume([extents[label] for label in twice]) <= g.limit:
            kept = twice
    return "".join(kept)


def _spectra(g: Growth) -> list[DType]:
    """Real dtypes that may be transformed: the spectrum of F32 is C32, programs without complex numbers have none."""
    return [d for d in (DType.F32, DType.F64) if {d, d.complex} <= {*g.config.dtypes}]


@GROW_EXTENSION.row(fft.FAMILY)
def _transform(g: Growth) -> Value:
    """Append a transform, and another of the same operand: under another norm, and with what else is drawn."""
    name, norm = g.choices.choose(tuple(fft.DTYPES)), g.choices.pick(len(fft.NORMS))
    x = _transformed(g, name)
    op, estimate = _configured(g, name, x, fft.NORMS[norm])
    made = g.apply(op, x, estimate=estimate)
    if g.room:
        other = (norm + 1 + g.choices.pick(len(fft.NORMS) - 1)) % len(fft.NORMS)
        g.show(_configured(g, name, x, fft.NORMS[other])[0], x)
    return made


def transformed(g: Growth, name: str) -> Value:
    """Append that op of the fft family."""
    x = _transformed(g, name)
    op, estimate = _configured(g, name, x, g.choices.choose(fft.NORMS))
    return g.apply(op, x, estimate=estimate)


def _transformed(g: Growth, name: str) -> Value:
    """What it transforms."""
    choices, spectra = g.choices, _spectra(g)
    admitted = [d for d in g.config.dtypes if d in fft.DTYPES[name] and d.real in spectra]
    if choices.chance(10) and name != "irfft" and g.max_rank > 1:  # nothing, which `n` makes zeros of
        return g.fresh(g.dtype(admitted), choices.choose(((0,), (0, 2), (3, 0))))
    x = g.operand(admitted, lambda v: v.type.rank >= 1 and 0 not in v.shape and volume(shape_of(v)) <= 4096)
    return g.fresh(x.dtype, (4,)) if 0 in x.shape or not x.shape else x


def _configured(g: Growth, name: str, x: Value, norm: str) -> tuple[ops.Extension, Estimate]:
    """The op for an operand, and the estimate of its result."""
    choices, shape = g.choices, shape_of(x)
    axis = choices.pick(len(shape))
    implied = shape[axis] if name != "irfft" else 2 * (shape[axis] - 1)
    n = None if implied and choices.chance(60) else 1 + choices.pick(9)
    config = {"n": n, "axis": axis - len(shape) if choices.chance(30) else axis, "norm": norm}
    return ops.Extension.of(fft.FAMILY, name, config), Estimate(False, g.estimates[x.slot].size + log2(n or implied))
