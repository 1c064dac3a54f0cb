"""Executors by name: what `--executors LIST` means, and what `all` is on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oracle.executors.base import Executor
from oracle.executors.lanes import DEFAULT_LANE, LANES
from oracle.executors.native import native_variants
from oracle.executors.pjrt import PjrtExecutor
from oracle.isolation import Worker, WorkerSpec
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import MissingDependency, UsageError
from tenferro_ref.pjrt import PluginRef, discover, plugin_from_env, resolve

_NATIVE = {e.name: e for e in native_variants()}
_SYNTAX = "native, native-unsegmented, native-nopasses, native-without:PASS, pjrt, pjrt:PATH_OR_PACKAGE[@LANE], all"


@dataclass
class Pool:
    """Makes executors by name; executors of one plugin share its worker.

    Attributes
    ----------
    preload
        See `WorkerSpec.preload`.
    """

    preload: str = ""
    request_seconds: float = 60.0
    _workers: dict[str, Worker] = field(default_factory=dict)

    def make(self, name: str) -> Executor:
        """The executor called `name`.

        Raises
        ------
        UsageError
            There is no executor of that name, or no such lane.
        MissingEnv, PluginLoad, PjrtPluginNotLoaded
            `pjrt` without its variable; a plugin that is not there.
        """
        if name in _NATIVE:
            return _NATIVE[name]
        head, _, rest = name.partition(":")
        if head == "native-without":
            known = ", ".join(n.partition(":")[2] for n in _NATIVE if ":" in n)
            raise UsageError(detail=f"executor {name!r}: no pass {rest!r}; known: {known}")
        if head.partition("@")[0] == "pjrt":
            target, _, lane = name.removeprefix("pjrt").removeprefix(":").partition("@")
            return self.pjrt(resolve(target) if target else plugin_from_env(), lane or DEFAULT_LANE, name)
        raise UsageError(detail=f"unknown executor {name!r}; known: {_SYNTAX}")

    def pjrt(self, plugin: PluginRef, lane: str, name: str = "") -> PjrtExecutor:
        """The executor of `plugin` in `lane`."""
        if lane not in LANES:
            raise UsageError(detail=f"unknown lane {lane!r}; known: {', '.join(LANES)}")
        worker = self._workers.get(plugin.path)
        if worker is None:
            spec = WorkerSpec(plugin, request_seconds=self.request_seconds, preload=self.preload)
            worker = self._workers[plugin.path] = Worker(plugin.name, spec)
        return PjrtExecutor(name or f"pjrt:{plugin.name}@{lane}", plugin, lane, worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def select(self, names: Sequence[str], *, lanes: Sequence[str] = (DEFAULT_LANE,)) -> Selection:
        """Executors for a `--executors` list; `all` takes every installed one and lists the missing.

        `native` is always among them, first: it is what the others are compared with.

        Raises
        ------
        UsageError
            A name that is no executor's.
        EnvironmentFault
            An executor asked for by name that does not work here.
        """
        executors: dict[str, Executor] = {"native": _NATIVE["native"]}
        missing: list[ExecutorInfo] = []
        for name in names:
            if name != "all":
                if name not in executors:
                    executors[name] = self.make(name)
                    executors[name].open()
                continue
            for native in _NATIVE.values():
                executors.setdefault(native.name, native)
            plugins = [p for p in discover() if p.platform in ("cpu", "")]
            for plugin in plugins:
                for lane in lanes:
                    executor = self.pjrt(plugin, lane)
                    info = executor.info()
                    if info.available:
                        executors.setdefault(executor.name, executor)
                    else:
                        missing.append(info)
            if not plugins:
                missing.append(ExecutorInfo("pjrt", available=False, reason=str(_no_plugin())))
        return Selection(tuple(executors.values()), tuple(missing))


@dataclass(frozen=True)
class Selection:
    """Executors to use, and those that are not available, with the reason."""

    executors: tuple[Executor, ...]
    missing: tuple[ExecutorInfo, ...]


def _no_plugin() -> MissingDependency:
    return MissingDependency(name="a PJRT plugin", remedy="pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN")
