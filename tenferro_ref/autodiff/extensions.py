"""Derivative rules of the families einsum and fft (SEMANTICS B.3)."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.autodiff.elementwise import T, X, not_linear
from tenferro_ref.autodiff.rules import (
    JVP,
    TRANSPOSE,
    Cotangents,
    Operand,
    Optional,
    conj,
    constant_extent,
    expanded,
    linear,
    total,
)
from tenferro_ref.extensions import einsum, fft
from tenferro_ref.program import Value

# --- einsum: linear in each operand -----------------------------------------------------------------------------------


@JVP.row(*einsum.EINSUM.keys)
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    apply = y[0].builder.apply
    return total(*(None if u is None else apply(op, *x[:i], u, *x[i + 1 :]) for i, u in enumerate(t)))


@TRANSPOSE.row(*einsum.EINSUM.keys)
def _(op: ops.Extension, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """The contraction of the cotangent with the other operands, put where the operand's labels are."""
    places = [i for i, operand in enumerate(x) if linear(operand)]
    if len(places) > 1:
        raise not_linear(op)
    (place,) = places
    equation = einsum.parse(op)
    own, others = equation.inputs[place], [labels for i, labels in enumerate(equation.inputs) if i != place]
    known = [conj(operand) for operand in x if isinstance(operand, Value)]
    labels = list(dict.fromkeys(own))
    present = [label for label in labels if label in equation.output + "".join(others)]
    text = f"{','.join([equation.output, *others])}->{''.join(present)}"
    path = {"path": einsum.path_of_adjoint(equation.path, place)} if equation.path else {}
    value = g.builder.apply(ops.Extension.of(op.family, op.op, {"equation": text, **path}), g, *known)
    type_ = x[place].type.with_dtype(value.dtype)
    if len(present) < len(labels):
        shape = [type_.shape[own.index(label)] for label in labels]
        value = expanded(value, [i for i, label in enumerate(labels) if label not in present], type_.with_shape(shape))
    for position, label in enumerate(own):
        if label in own[:position]:  # a diagonal was taken
            value = value.builder.apply(ops.EmbedDiag(labels.index(label), position), value)
            labels.insert(position, label)
    return tuple(value if i == place else None for i in range(len(x)))


# --- fft: linear ------------------------------------------------------------------------------------------------------

#: The adjoint of a transform is the transform back, scaled by the other convention.
_SWAPPED = {"Backward": "forward", "Ortho": "ortho", "Forward": "backward"}


@JVP.row(*fft.FFT.keys)
def _(op: ops.Extension, x: X, y: X, t: X) -> Optional:
    return t[0].builder.apply(op, t[0])


@TRANSPOSE.row(*fft.FFT.keys)
def _(op: ops.Extension, x: tuple[Operand, ...], g: Value) -> Cotangents:
    spec = fft.transform(op, g.ndim)
    axis, norm = spec.axis, _SWAPPED[spec.norm]
    length = constant_extent(op, x[0].type.shape[axis])
    if op.op == "fft":
        value = fft.ifft(g, axis=axis, norm=norm)
    elif op.op == "ifft":
        value = fft.fft(g, axis=axis, norm=norm)
    elif op.op == "rfft":  # the spectrum's other half has no cotangent
        n = length if spec.n is None else spec.n
        value = fft.ifft(_fitted(op, g, axis, n), axis=axis, norm=norm)
    else:
        value = _halved(op, fft.rfft(g, axis=axis, norm=norm), axis, constant_extent(op, g.shape[axis]))
    return (_fitted(op, value, axis, length),)


def _halved(op: ops.Extension, spectrum: Value, axis: int, n: int) -> Value:
    """Frequencies that stand for two counted twice; those that are real, as real numbers."""
    middle = spectrum.shape[axis] if n % 2 else n // 2

    def part(start: int, end: int) -> Value:
        return _cut(op, spectrum, axis, start, end)

    def real(value: Value) -> Value:
        return value.astype(value.dtype.real).astype(value.dtype)

    parts = [real(part(0, 1)), part(1, constant_extent(op, middle)) * 2.0]
    if not n % 2:
        parts.append(real(part(n // 2, n // 2 + 1)))
    return spectrum.builder.apply(ops.Concatenate(axis), *parts)


def _fitted(op: ops.Extension, value: Value, axis: int, length: int) -> Value:
    """`value` cut off or filled with zeros to `length` along `axis`."""
    extent = constant_extent(op, value.shape[axis])
    if extent > length:
        return _cut(op, value, axis, 0, length)
    high = tuple(length - extent if i == axis else 0 for i in range(value.ndim))
    zero = (0,) * value.ndim
    return value if extent == length else value.builder.apply(ops.Pad(zero, high, zero), value)


def _cut(op: ops.Extension, value: Value, axis: int, start: int, end: int) -> Value:
    extents = [constant_extent(op, extent) for extent in value.shape]
    starts = tuple(start if i == axis else 0 for i in range(value.ndim))
    limits = tuple(end if i == axis else extent for i, extent in enumerate(extents))
    return value.builder.apply(ops.Slice(starts, limits, (1,) * value.ndim), value)
