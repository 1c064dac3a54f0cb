"""Runtime of the einsum family, on NumPy by way of opt_einsum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from opt_einsum import contract

from tenferro_ref import ops
from tenferro_ref.dtype import DType, promote
from tenferro_ref.extensions.einsum import extents, parse, path
from tenferro_ref.tensor import Array


def execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The contraction of all inputs."""
    equation = parse(op)
    dtype = promote(DType.of(x) for x in inputs).numpy
    # copies: NumPy multiplies two operands that are one buffer by another routine, with other roundings
    operands = [np.array(x, dtype, order="F") for x in inputs]
    shapes = tuple(x.shape for x in operands)
    sizes = extents(op, equation, shapes)
    if any(sizes[label] == 0 for label in equation.summed):
        return [np.zeros([sizes[label] for label in equation.output], dtype, order="F")]
    reduced = [equation.reduced(i) for i in range(len(operands))]
    with np.errstate(all="ignore"):
        terms = [
            x if labels == kept else contract(f"{labels}->{kept}", x)
            for x, labels, kept in zip(operands, equation.inputs, reduced, strict=True)
        ]
        text = f"{','.join(reduced)}->{equation.kept}"
        result = np.asarray(contract(text, *terms, optimize=list(path(equation, shapes))))
    return [result if equation.kept == equation.output else _on_diagonal(result, equation.output, equation.kept)]


def _on_diagonal(x: Array, labels: str, kept: str) -> Array:
    """Zeros with axes `labels`, and `x` with axes `kept` where the indices of equal labels agree."""
    result = np.zeros([x.shape[kept.index(label)] for label in labels], x.dtype, order="F")
    index = np.ix_(*(np.arange(n) for n in x.shape))
    result[tuple(index[kept.index(label)] for label in labels)] = x
    return result
