"""Executors by name: what `--executors LIST` means, and what `all` is on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from oracle.peers.algebras import AlgebrasExecutor
from oracle.peers.base import Executor
from oracle.peers.derivative import AdjointExecutor, DifferencesExecutor, JaxDerivativeExecutor
from oracle.peers.errors import CommandRefused
from oracle.peers.external import ExternalExecutor, ServedExecutor
from oracle.peers.jax import JaxExecutor
from oracle.peers.lanes import DEFAULT_LANE, LANES, unknown_lane
from oracle.peers.native import NativeExecutor, from_peer, native_variants
from oracle.peers.peer import FAMILIES, Peer
from oracle.peers.pjrt import PjrtExecutor
from oracle.peers.portable import InterpreterExecutor, IreeExecutor
from oracle.peers.run_hlo_module import RunHloModuleExecutor
from oracle.peers.topics import EXECUTORS
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import MissingDependency, UsageError
from tenferro_ref.isolation import Worker, WorkerSpec
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.pjrt import PluginRef, discover, is_path, plugin_from_env, resolve
from tenferro_ref.suggest import did_you_mean

#: In `Pool.allowed`: whatever a file names. No pattern, and no name of an executor.
ANY = "any command"
#: Names of the checks of derivative rules.
DERIVATIVES = tuple(str(Peer("derivative", variant)) for variant in FAMILIES["derivative"].variants)
_JAX_DERIVATIVES = "oracle.peers.engines.jax_derivative"
_CLASSES = {"jax": JaxExecutor, "interpreter": InterpreterExecutor, "iree": IreeExecutor}


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
    reader
        Of StableHLO modules.
    """

    preload: str = ""
    request_seconds: float = 60.0
    allowed: Collection[str] = ()
    reader: Reader = field(default_factory=Reader)
    _workers: dict[str, Worker] = field(default_factory=dict)
    _served: dict[str, ServedExecutor] = field(default_factory=dict)

    def make(self, name: str) -> Executor:
        """The executor called `name`.

        Raises
        ------
        UsageError
            There is no executor of that name, or no such lane.
        MissingEnv, PluginLoad, PjrtPluginNotLoaded
            `pjrt` without its variable; a plugin that is not there.
        """
        peer = Peer.parse(name)
        if (
            ":" in name and not peer.build and peer.family != "native"
        ):  # `pjrt:$PLUGIN` of an unset variable is not `pjrt`
            raise UsageError(detail=f"{name!r} names nothing behind the colon")
        if peer.family == "pjrt" and {*"*?["} & {*peer.build} and not is_path(peer.build):
            raise UsageError(detail=f"{name!r} is a pattern, as --require takes it; name the executors, or take `all`")
        if peer.family not in FAMILIES or peer.variant not in peer.about.variants:
            raise _unknown(name)
        match peer.family:
            case "native" if name == "native-algebras":
                return AlgebrasExecutor()
            case "native":
                return from_peer(peer)
            case "pjrt":
                return self._pjrt(resolve(peer.build) if peer.build else plugin_from_env(), peer)
            case "external":
                return self._external(peer)
            case "run-hlo-module" if not peer.build:
                return RunHloModuleExecutor(self.request_seconds)
        if not peer.build and peer.family == "derivative":
            return self._derivative(peer)
        if peer.build:
            raise _unknown(name)
        return _CLASSES[peer.family](name, self._worker(peer.family, peer.about.engine))

    def recorded(self, name: str, where: str) -> Executor:
        """The executor that the file `where` names: a bundle, or the record of a campaign or finding.

        The command line may name any command or library; a file, which may come from elsewhere, only what `allowed` lists.

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
        wants = Peer.parse(name).code
        if wants and ANY not in self.allowed and wants not in (Peer.parse(other).code for other in self.allowed):
            raise CommandRefused(where=where, wants=wants, executor=name)

    def pjrt(self, plugin: PluginRef, lane: str) -> PjrtExecutor:
        """The executor of `plugin` in `lane`."""
        return self._pjrt(plugin, Peer("pjrt", build=plugin.name, lane=lane))

    def _external(self, peer: Peer) -> Executor:
        if not peer.variant:
            return ExternalExecutor(peer.build, self.request_seconds)
        served = ServedExecutor(peer.build, self.request_seconds)
        return self._served.setdefault(served.name, served)

    def _derivative(self, peer: Peer) -> Executor:
        if peer.variant == "adjoint":
            return AdjointExecutor(str(peer))
        if peer.variant == "differences":
            return DifferencesExecutor(str(peer))
        return JaxDerivativeExecutor(str(peer), self._worker("JAX's derivatives", _JAX_DERIVATIVES))

    def _pjrt(self, plugin: PluginRef, peer: Peer) -> PjrtExecutor:
        if peer.lane and peer.lane not in LANES:
            raise unknown_lane(peer.lane)
        return PjrtExecutor(str(peer), self._worker(plugin.path, plugin), plugin=plugin, reader=self.reader)

    def _worker(self, key: str, serves: PluginRef | str) -> Worker:
        """The one worker of a plugin or engine."""
        if key not in self._workers:
            spec = WorkerSpec(serves, request_seconds=self.request_seconds, preload=self.preload)
            self._workers[key] = Worker(key if isinstance(serves, str) else serves.name, spec)
        return self._workers[key]

    def close(self) -> None:
        """End all workers."""
        self.reader.close()
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        for served in self._served.values():
            served.close()

    def select(
        self,
        names: Sequence[str],
        *,
        lanes: Sequence[str] = (DEFAULT_LANE,),
        last: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> Selection:
        """Executors for a `--executors` list; `all` takes every one that is installed and lists the missing.

        `native` is always among them, first: it is what the others are compared with.

        Parameters
        ----------
        lanes
            Lanes of each plugin that `all` takes.
        last
            Lanes that only the last plugin takes beside those, of the builds on PyPI the newest.
        others
            Which of `OTHERS` it takes: they differ in cost by a factor of a thousand.

        Raises
        ------
        UsageError
            A name that is no executor's.
        EnvironmentFault
            An executor asked for by name that does not work here.
        """
        executors: dict[str, Executor] = {"native": NativeExecutor()}
        missing: list[ExecutorInfo] = []
        for name in names:
            if name != "all":
                executor = self.make(name)
                if executor.name not in executors:
                    executor.open()
                    executors[executor.name] = executor
                continue
            for native in native_variants():
                executors.setdefault(native.name, native)
            found = discover()
            plugins = [p for p in found if p.platform in ("cpu", "")]
            for plugin in found:
                if plugin not in plugins:  # loading one may take minutes to find that its device is not here
                    reason = f"platform {plugin.platform}: name it to have it take part"
                    missing.append(ExecutorInfo(str(Peer("pjrt", build=plugin.name)), available=False, reason=reason))
            candidates: list[Executor] = [self.pjrt(plugin, lane) for plugin in plugins for lane in lanes]
            candidates += [self.pjrt(plugin, lane) for plugin in plugins[-1:] for lane in last]
            for executor in (*candidates, *map(self.make, others)):
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


def _unknown(name: str) -> UsageError:
    names = (str(Peer(family, variant)) for family, about in FAMILIES.items() for variant in about.variants)
    hint = did_you_mean(Peer.parse(name).kind, (*names, "all"))
    return UsageError(detail=f"unknown executor {name!r}; known: {', '.join(EXECUTORS)}{hint}")


def _no_plugin() -> MissingDependency:
    return MissingDependency(name="a PJRT plugin", remedy="pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN")
