"""JAX functions lowered in a worker of their own, since importing and tracing them runs their authors' code.

A request is `{"function", "inputs"}` ("package.module:function", packed arrays), its answer `{"code"}`: StableHLO text. What the
function raises ends the worker, whose last words are where it was raised, and what.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from tenferro_ref.errors import UsageError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine, library
from tenferro_ref.isolation.wire import Message

#: What JAX makes 32 bits, or complex numbers of 64, of by default.
_WIDE = frozenset({"float64", "int64", "uint64", "complex128"})


def open(settings: Message) -> Engine:
    """Load JAX for the CPU; modules are looked for in the current folder, too."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["JAX_TRACEBACK_FILTERING"] = "off"  # or the last words of a worker are JAX's about its filter
    jax = library("jax", "jax")
    sys.path.insert(0, os.getcwd())
    sys.excepthook = _last_words

    def answer(request: Message) -> Message:
        module, _, name = request["function"].partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UsageError(detail=f"{request['function']}: {error}") from None
        arrays = [wire.unpack(a) for a in request["inputs"]]
        # only arrays of 64 bits need JAX's switch, which changes what functions mean
        jax.config.update("jax_enable_x64", any(a.dtype.name in _WIDE for a in arrays))
        return {"code": jax.jit(function, keep_unused=True).lower(*arrays).as_text()}

    return Engine({"jax": jax.__version__}, answer)


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The traceback, and in the last line the place in the author's own code with the first line of the message."""
    traceback.print_exception(kind, error, trace)
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: "
    else:
        own = [
            frame
            for frame in traceback.extract_tb(trace)
            if not {"jax", "tenferro_ref", "importlib"} & {*Path(frame.filename).parts} and frame.filename[0] != "<"
        ]
        place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    words = (str(error).splitlines() or [""])[0]
    print(f"{place.removeprefix(os.getcwd() + os.sep)}{kind.__name__}: {words}", file=sys.stderr)
