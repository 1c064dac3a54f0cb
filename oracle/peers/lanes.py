"""Lanes: named sets of compile options under which one plugin is several peers.

Values are XLA debug options, sent with each executable.
"""

from __future__ import annotations

from collections.abc import Callable

from tenferro_ref.errors import UsageError
from tenferro_ref.suggest import did_you_mean

Option = str | int | bool | float
Options = dict[str, Option]

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
#: What every lane but `defaults` adds on a platform: XLA:GPU leaves out conversions to a type of fewer digits and back otherwise,
#: and computes narrow floats without rounding between operations.
ON_PLATFORM: dict[str, Options] = {"cuda": {"xla_allow_excess_precision": False}}

#: How many programs share a module, one in other lanes (docs/adr/0035): 40 -> 9-19 ms for a program at 32 on the older two
#: builds where nothing is optimised; elsewhere each fusion kernel costs as much as before, and a fifth is saved at 4.
PROGRAMS_A_MODULE = {"fast": 32, "parity": 4, "defaults": 4}
#: Processor time of a program beside one in lane `fast`, where that is not `Family.cost` (docs/measurements/campaigns.md).
COSTS = {"fast": 1.0, "level0": 2.0}


def lane_options(lane: str, platform: str, knows: Callable[[str, Option], bool]) -> Options:
    """Compile options of `lane` for a client, without those that it does not take.

    Newer builds lack `xla_cpu_use_fusion_emitters`; to disable the fusion passes there instead gives wrong transposes (35 of
    600 programs).

    Parameters
    ----------
    platform, knows
        As the client says (`Client.platform_name`, `Client.knows`), since a file's name says neither. What does not call
        itself "cpu" is sent no option of XLA:CPU.

    Raises
    ------
    UsageError
        There is no such lane.
    """
    if lane not in LANES:
        raise unknown_lane(lane)
    wanted = {o: v for o, v in LANES[lane].items() if platform == "cpu" or not o.startswith("xla_cpu_")}
    if lane != "defaults":
        wanted |= ON_PLATFORM.get(platform, {})
    return {option: value for option, value in wanted.items() if knows(option, value)}


def unknown_lane(lane: str) -> UsageError:
    """The error of a lane that there is not."""
    return UsageError(detail=f"unknown lane {lane!r}; known: {', '.join(LANES)}{did_you_mean(lane, LANES)}")
