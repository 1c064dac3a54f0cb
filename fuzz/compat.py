"""Which versions of StableHLO an op can be written at, and which of these a plugin takes, with the same results.

A program of each op is written as a portable artifact of every version that the bindings know. Those of one version are compiled as one
module; where a plugin does not take it, or gives other results than for the text, each op is asked alone. What a plugin declares
(`stablehlo_minimum_version`, `stablehlo_current_version`) is what it must take; versions outside that range that it takes too are listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.generate.config import Config, admitted
from fuzz.generate.decode import GENE, grow
from fuzz.generate.header import HEADER
from fuzz.generate.ops import STRATEGY
from oracle.case import Case
from oracle.peers.modules import Module, write
from oracle.peers.pjrt import PjrtExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, UnsupportedOp
from tenferro_ref.isolation import wire
from tenferro_ref.ops import OPS
from tenferro_ref.stablehlo.serialized import serialize, versions

#: Dtypes in the order in which an op's program has them.
_DTYPES = (DType.F32, DType.I32, DType.Bool, DType.C32)
_DRAWS = 32


@dataclass(frozen=True)
class Taken:
    """What became of the artifacts of one version on one plugin.

    Attributes
    ----------
    failures
        Why, by op, for each that was refused or gave other results; empty if all were taken.
    declared
        Whether the plugin says that it takes this version.
    """

    version: str
    declared: bool
    failures: dict[str, str]


@dataclass(frozen=True)
class Compatibility:
    """The whole matrix.

    Attributes
    ----------
    oldest
        By op, the oldest version that its program can be written at; "" if StableHLO has no form for the op.
    plugins
        By executor, what became of each version.
    """

    oldest: dict[str, str]
    plugins: dict[str, tuple[Taken, ...]]

    @property
    def holds(self) -> bool:
        """Whether every plugin takes all that it declares."""
        return not any(taken.failures for several in self.plugins.values() for taken in several if taken.declared)


def programs() -> dict[str, Case]:
    """A program of one instruction for each op outside the extension families, the same in every run."""
    found: dict[str, Case] = {}
    for op in OPS:
        if op not in STRATEGY:
            continue
        for dtype in _DTYPES:
            case = _program(op, dtype) if admitted(op, (dtype,)) and op is not ops.Extension else None
            if case is not None:
                found[op.__name__] = case
                break
    return found


def _program(op: type[Any], dtype: DType) -> Case | None:
    """The first program drawn that StableHLO has a form for; if none has, the first."""
    config, first = _config(op, dtype), None
    for number in range(_DRAWS):
        data = hashlib.shake_256(f"compat {op.__name__} {number}".encode()).digest(HEADER + GENE)
        growth = grow(config, data[:HEADER], [data[HEADER:]])
        program = growth.finish()
        if len(program.instructions) == 1 and type(program.instructions[0].op) is op:
            case = Case.of(program, growth.inputs(program))
            if _module([case]).types:
                return case
            first = first or case
    return first


def _config(op: type[Any], dtype: DType) -> Config:
    others = (DType.F64,) if op is ops.Convert else (DType.I64,)  # for indices
    return Config(
        ops=(op,), dtypes=(dtype, *others), max_instructions=1, max_elements=24, usual_elements=24, dim_exprs=False, motifs=False,
        anchors=False, symbolic=0, linalg=0, policies=0,
    )  # fmt: skip


def oldest_versions(cases: dict[str, Case]) -> dict[str, str]:
    """By op, the oldest version at which its program can be written."""
    oldest = {}
    for name, case in cases.items():
        module = _module([case])
        oldest[name] = next((v for v in versions() if _artifact(module, v) is not None), "") if module.types else ""
    return oldest


def compatibility(
    executors: Sequence[PjrtExecutor], progress: Callable[[str], None] = lambda said: None
) -> Compatibility:
    """Ask each plugin for every version.

    Raises
    ------
    MissingDependency
        There is no jaxlib, whose bindings write the artifacts.
    """
    cases = programs()
    oldest = oldest_versions(cases)
    plugins = {}
    for executor in executors:
        taken = []
        for version in versions():
            progress(f"{executor.name}: {version}")
            named = {n: c for n, c in cases.items() if oldest[n] and _key(oldest[n]) <= _key(version)}
            taken.append(Taken(version, _declared(executor, version), _failures(executor, named, version)))
        plugins[executor.name] = tuple(taken)
    return Compatibility(oldest, plugins)


def _failures(executor: PjrtExecutor, cases: dict[str, Case], version: str) -> dict[str, str]:
    if not cases or not _refused(executor, list(cases.values()), version):
        return {}
    alone = {name: _refused(executor, [case], version) for name, case in cases.items()}
    failures = {name: why for name, why in alone.items() if why}
    return failures or {"all together": _refused(executor, list(cases.values()), version)}


def _refused(executor: PjrtExecutor, cases: Sequence[Case], version: str) -> str:
    """Why the plugin does not take the artifact, or gives other results than for the text; "" if all is well."""
    module = _module(cases)
    arrays = [[wire.pack(a) for i in module.types for a in cases[i].inputs]]
    message = module.message(executor.options, arrays)
    try:
        (expected,), _ = executor.worker.request(message, wire.output_sets)
    except TenferroError as error:
        return f"as text: {error}"
    try:
        code = serialize(module.code, f"portable={version}")
        (got,), _ = executor.worker.request({**message, "code": code}, wire.output_sets)
    except TenferroError as error:
        return str(error)
    same = all(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") for x, y in zip(got, expected, strict=True))
    return "" if same else "other results than for the text"


def _module(cases: Sequence[Case]) -> Module:
    return write(lambda view: None, False, cases)


def _artifact(module: Module, version: str) -> bytes | None:
    try:
        return serialize(module.code, f"portable={version}")
    except UnsupportedOp:
        return None


def _declared(executor: PjrtExecutor, version: str) -> bool:
    facts = executor.worker.facts
    least, most = (facts.get(f"stablehlo_{end}_version", "") for end in ("minimum", "current"))
    return bool(least and most) and _key(least) <= _key(version) <= _key(most)


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
