"""Lanes: named sets of compile options under which one plugin is several peers.

Values are XLA debug options, sent with each executable.
"""

from __future__ import annotations

from collections.abc import Callable

from tenferro_ref.errors import UsageError

Options = dict[str, str | int | bool | float]

#: XLA's defaults, but maximum(1, NaN) = NaN: through the C API `fast_min_max` is on, in jaxlib it is off.
_PARITY: Options = {"xla_cpu_enable_fast_min_max": False}

LANES: dict[str, Options] = {
    "parity": _PARITY,
    "defaults": {},
    "no-algsimp": {**_PARITY, "xla_disable_hlo_passes": "algsimp"},
    "level0": {**_PARITY, "xla_backend_optimization_level": 0},
    "fast": {
        **_PARITY,
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    },
}
DEFAULT_LANE = "parity"

#: Flags that newer builds do not have; to disable the fusion passes there instead gives wrong transposes (35 of 600 programs).
_REMOVED = frozenset({"xla_cpu_use_fusion_emitters"})

#: How many programs share a module, one in other lanes: only in this lane does it pay (40 -> 9-19 ms for a program at 32 on the
#: older two builds); in the others each fusion kernel costs as much as before, and on some builds more in a large module.
PROGRAMS_A_MODULE = {"fast": 32}


def lane_options(lane: str, platform: str, knows: Callable[[str], bool]) -> Options:
    """Compile options of `lane` for a client.

    Parameters
    ----------
    platform, knows
        As the client says (`Client.platform_name`, `Client.knows`), since a file's name says neither.

    Raises
    ------
    UsageError
        There is no such lane.
    """
    if lane not in LANES:
        raise UsageError(detail=f"unknown lane {lane!r}; known: {', '.join(LANES)}")
    if platform != "cpu":
        return {flag: value for flag, value in LANES[lane].items() if not flag.startswith("xla_cpu_")}
    return {flag: value for flag, value in LANES[lane].items() if flag not in _REMOVED or knows(flag)}
