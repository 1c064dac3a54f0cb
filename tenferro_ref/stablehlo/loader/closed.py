"""A loaded program written as StableHLO again, with the arrays that its module brought along as constants in it."""

from __future__ import annotations

from collections.abc import Iterator

from tenferro_ref.dtype import DType
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo.emit import lower_into
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.loader.reader import Loaded
from tenferro_ref.stablehlo.writer import Body, Value
from tenferro_ref.tensor import Array


class _Closed(Body):
    """A function whose parameters end with the arguments; what follows becomes constants."""

    def __init__(self, arguments: int, bound: Iterator[Array]) -> None:
        super().__init__()
        self._free = arguments
        self._bound = bound

    def parameter(self, dtype: DType, shape: Shape) -> Value:
        if self._free:
            self._free -= 1
            return super().parameter(dtype, shape)
        text = _dense(next(self._bound))
        return self.line(f"constant dense<{text}> : {type_text(dtype, shape)}", dtype, shape)


def _dense(array: Array) -> str:
    if array.dtype.kind == "b":
        return str(array.tolist()).lower()
    return f'"0x{array.tobytes("C").hex().upper()}"'


def lower_loaded(loaded: Loaded, *, phase1_only: bool = False) -> str:
    """StableHLO text of the same signature as the module that was loaded; errors as `lower_to_stablehlo`."""
    body = _Closed(len(loaded.arguments), iter(loaded.bound))
    view = LoweringView.of(loaded.program)
    return body.module(lower_into(body, view, phase1_only=phase1_only))
