"""Executors by name: what `--executors LIST` means, and what `all` is on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from oracle.peers.base import Executor
from oracle.peers.external import ExternalExecutor
from oracle.peers.jax import JaxExecutor
from oracle.peers.lanes import DEFAULT_LANE, LANES
from oracle.peers.native import from_name, native_variants
from oracle.peers.pjrt import PjrtExecutor
from oracle.peers.portable import InterpreterExecutor, IreeExecutor
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import CommandRefused, MissingDependency, UsageError
from tenferro_ref.isolation import Worker, WorkerSpec
from tenferro_ref.pjrt import PluginRef, discover, is_path, plugin_from_env, resolve

_NATIVE = {e.name: e for e in native_variants()}
#: In `Pool.allowed`: whatever a file names. No pattern, and no name of an executor.
ANY = "any command"
#: Executors on other people's libraries, cheapest first; each is an extra of this package.
OTHERS = ("interpreter", "jax", "jax-eager", "iree")
_SYNTAX = (
    "native, native-unsegmented, native-nopasses, native-fused, native-drawn, native-without:PASS, "
    "native:OPTION+OPTION, pjrt, pjrt:PATH_OR_PACKAGE[@LANE], "
    f"{', '.join(OTHERS)}, external:COMMAND, all"
)


@dataclass
class Pool:
    """Makes executors by name; executors of one plugin share its worker.

    Attributes
    ----------
    preload
        See `WorkerSpec.preload`.
    allowed
        Names of executors; a file may have the commands run and the libraries loaded that they do (`recorded`). `ANY`
        for all there are.
    """

    preload: str = ""
    request_seconds: float = 60.0
    allowed: Collection[str] = ()
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
        if head == "native":
            return from_name(name)
        if head.partition("@")[0] == "pjrt":
            target, lane = _plugin_and_lane(name)
            return self.pjrt(resolve(target) if target else plugin_from_env(), lane or DEFAULT_LANE, name)
        if name in OTHERS:
            return self._other(name)
        if head == "external":
            return ExternalExecutor(name.partition(":")[2], self.request_seconds)
        raise UsageError(detail=f"unknown executor {name!r}; known: {_SYNTAX}")

    def recorded(self, name: str, where: str) -> Executor:
        """The executor that the file `where` names: a bundle, or the record of a campaign or finding.

        Whoever calls may name any command or library; a file, which may be somebody else's, only what it is allowed.

        Raises
        ------
        CommandRefused
            It runs a command or loads a library by its path, and is not among `allowed`. Nothing was run.
        UsageError, MissingEnv, PluginLoad, PjrtPluginNotLoaded
            As `make`.
        """
        self.permit(name, where)
        return self.make(name)

    def permit(self, name: str, where: str) -> None:
        """Raise the `CommandRefused` of `recorded`, if there is one."""
        wants = names_code(name)
        if wants and ANY not in self.allowed and wants not in map(names_code, self.allowed):
            raise CommandRefused(where=where, wants=wants, executor=name)

    def pjrt(self, plugin: PluginRef, lane: str, name: str = "") -> PjrtExecutor:
        """The executor of `plugin` in `lane`."""
        if lane not in LANES:
            raise UsageError(detail=f"unknown lane {lane!r}; known: {', '.join(LANES)}")
        return PjrtExecutor(name or f"pjrt:{plugin.name}@{lane}", plugin, lane, self._worker(plugin.path, plugin))

    def _other(self, name: str) -> Executor:
        engine = name.partition("-")[0]
        worker = self._worker(engine, f"oracle.peers.engines.{engine}")
        if engine == "jax":
            return JaxExecutor(name, worker, jit=name == "jax")
        return InterpreterExecutor(worker) if engine == "interpreter" else IreeExecutor(worker)

    def _worker(self, key: str, serves: PluginRef | str) -> Worker:
        """The one worker of a plugin or engine."""
        if key not in self._workers:
            spec = WorkerSpec(serves, request_seconds=self.request_seconds, preload=self.preload)
            self._workers[key] = Worker(key if isinstance(serves, str) else serves.name, spec)
        return self._workers[key]

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def select(
        self, names: Sequence[str], *, lanes: Sequence[str] = (DEFAULT_LANE,), others: Sequence[str] = ()
    ) -> Selection:
        """Executors for a `--executors` list; `all` takes every installed one and lists the missing.

        `native` is always among them, first: it is what the others are compared with.

        Parameters
        ----------
        lanes
            Lanes of each plugin that `all` takes.
        others
            Which of `OTHERS` it takes: they differ in cost by a factor of a thousand.

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
            candidates: list[Executor] = [self.pjrt(plugin, lane) for plugin in plugins for lane in lanes]
            for executor in (*candidates, *map(self.make, others)):
                info = executor.info()
                if info.available:
                    executors.setdefault(executor.name, executor)
                else:
                    missing.append(info)
            if not plugins:
                missing.append(ExecutorInfo("pjrt", available=False, reason=str(_no_plugin())))
        return Selection(tuple(executors.values()), tuple(missing))


def names_code(name: str) -> str:
    """What the name of an executor has run that is not found by the name of a package, in words; "" for nothing."""
    if name.startswith("external:"):
        return f"run the command {name.removeprefix('external:')!r}"
    target = _plugin_and_lane(name)[0] if name.startswith("pjrt") else ""
    return f"load the library {target!r}" if is_path(target) else ""


def _plugin_and_lane(name: str) -> tuple[str, str]:
    target, _, lane = name.removeprefix("pjrt").removeprefix(":").partition("@")
    return target, lane


@dataclass(frozen=True)
class Selection:
    """Executors to use, and those that are not available, with the reason."""

    executors: tuple[Executor, ...]
    missing: tuple[ExecutorInfo, ...]


def _no_plugin() -> MissingDependency:
    return MissingDependency(name="a PJRT plugin", remedy="pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN")
