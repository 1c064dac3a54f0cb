"""Lanes: named sets of compile options under which one plugin is several peers.

Values are XLA debug options, sent per executable. `lane_options` also knows what differs between builds.
"""

from __future__ import annotations

from tenferro_ref.errors import UsageError
from tenferro_ref.pjrt import PluginRef

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

#: How many programs share a module. Only the fast lane gains: its fixed cost dominates (40 -> 9-19 ms a program at 32
#: on the older two builds), while the other lanes pay for each fusion kernel and some builds more in a large module.
_PROGRAMS_A_MODULE = {"fast": 32}


def programs_a_module(lane: str) -> int:
    """How many programs are compiled together in `lane`."""
    return _PROGRAMS_A_MODULE.get(lane, 1)


def lane_options(lane: str, plugin: PluginRef) -> Options:
    """Compile options of `lane` on `plugin`.

    Raises
    ------
    UsageError
        There is no such lane.
    """
    if lane not in LANES:
        raise UsageError(detail=f"unknown lane {lane!r}; known: {', '.join(LANES)}")
    options = dict(LANES[lane])
    if plugin.platform not in ("cpu", ""):
        options = {k: v for k, v in options.items() if not k.startswith("xla_cpu_")}
    if plugin.name == "lam115":
        # the flag is gone from that build; disabling its fusion passes instead gives wrong transposes (35 of 600 programs)
        options.pop("xla_cpu_use_fusion_emitters", None)
    return options
