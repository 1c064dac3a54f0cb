"""The identity of an executor: the parts of its name, and the facts about its family.

A name is `FAMILY[-VARIANT][:BUILD]`, for a plugin also `[@LANE]` at its end: `native`, `native-without:TransposeFolding`,
`pjrt:xla081@parity`, `jax-eager`, `external:COMMAND`. Names are what the command line takes and what stores keep; this is the
only place that takes one apart or puts one together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oracle.peers.lanes import COSTS, PROGRAMS_A_MODULE
from tenferro_ref.pjrt import is_path


@dataclass(frozen=True)
class Family:
    """What the executors of a family have in common.

    Attributes
    ----------
    model
        Arithmetic model that their results are held to.
    engine
        Module that a worker serves for them, "" for those that have no worker, or a plugin in it.
    extra
        Extra of this package that they come with, "" for none.
    packages
        Those of the extra that a bundle names.
    variants
        What may follow the family's name after a hyphen.
    programs_a_module
        How many programs are compiled together.
    cost
        About how much processor time a program takes beside one in lane `fast` of a plugin; 0 where no optimising compiler has a
        part in it, which is cheap beside those. Lanes have their own (`COSTS`).
    """

    model: str = "ieee"
    engine: str = ""
    extra: str = ""
    packages: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("",)
    programs_a_module: int = 1
    cost: float = 0.0


_JAX = ("jax", "jaxlib")
#: Families of executors, cheapest first.
FAMILIES = {
    "native": Family(
        "numpy",
        variants=(
            "",
            "unsegmented",
            "nopasses",
            "fused",
            "decomposed",
            "contracted",
            "drawn",
            "rewritten",
            "reloaded",
            "algebras",
            "without",
        ),
    ),
    # "reloaded" serialises what it has compiled, loads that, and runs it; "kernels" calls ours for ops that StableHLO lacks;
    # "rewritten" runs an equal program
    "pjrt": Family("xla", variants=("", "reloaded", "kernels", "rewritten"), cost=3.0),
    # its functions are those of the C library and it keeps subnormals, as the native executor does
    "interpreter": Family("interpreter", "oracle.peers.engines.interpreter", "jax", _JAX),
    "jax": Family("xla", "oracle.peers.engines.jax", "jax", _JAX, variants=("", "eager"), cost=4.0),
    "iree": Family(
        "iree",
        "oracle.peers.engines.iree",
        "iree",
        ("iree-base-compiler", "iree-base-runtime"),
        programs_a_module=16,
        cost=4.0,
    ),
    # XLA's own tool, one process a program
    "run-hlo-module": Family("xla", cost=4.0),
    # "served" is kept running, and answers one program after the other
    "external": Family("numpy", variants=("", "served")),
    "derivative": Family(extra="jax", packages=_JAX, variants=("adjoint", "differences", "jax")),
}


@dataclass(frozen=True)
class Peer:
    """The identity of an executor.

    Attributes
    ----------
    family
        A key of `FAMILIES`; names that are none of ours are kept as they are, with an empty `Family`.
    variant
        Another way of running the same code: "unsegmented", "eager", ...; "" for the usual one.
    build
        What is run: a plugin by its name, package or path, a command, a pass that is left out, options.
    lane
        Named set of compile options, "" for the default one.
    """

    family: str
    variant: str = ""
    build: str = ""
    lane: str = ""

    @classmethod
    def parse(cls, name: str) -> Peer:
        """The peer of that name; `str` gives the name back."""
        lane = ""
        if "@" in name and re.match("pjrt(-reloaded|-kernels|-rewritten)?[:@]", name):
            name, _, lane = name.rpartition("@")  # a path may have an @, too
        head, _, build = name.partition(":")
        family, _, variant = (head, "", "") if head in FAMILIES else head.partition("-")
        return cls(family, variant, build, lane)

    def __str__(self) -> str:
        parts = (("", self.family), ("-", self.variant), (":", self.build), ("@", self.lane))
        name = "".join(mark + part for mark, part in parts if part)
        return f"{name}@" if self.family == "pjrt" and "@" in self.build and not self.lane else name

    @property
    def kind(self) -> str:
        """Family and variant alone: `jax-eager` of itself, `pjrt` of any plugin in any lane."""
        return str(Peer(self.family, self.variant))

    @property
    def code(self) -> str:
        """The command or library file that it runs, in words; "" for executors that come with a package."""
        if self.family == "external":
            return f"run the command {self.build!r}"
        return f"load the library {self.build!r}" if self.family == "pjrt" and is_path(self.build) else ""

    @property
    def about(self) -> Family:
        """The facts about its family."""
        return FAMILIES.get(self.family, Family())

    @property
    def model(self) -> str:
        """Arithmetic model that its results are held to."""
        return self.about.model

    @property
    def programs_a_module(self) -> int:
        """How many programs are compiled together."""
        return PROGRAMS_A_MODULE.get(self.lane, 1) if self.family == "pjrt" else self.about.programs_a_module

    @property
    def cost(self) -> float:
        """That of its family, or of its lane."""
        return COSTS.get(self.lane, self.about.cost) if self.family == "pjrt" else self.about.cost


#: Names of the executors on other people's libraries.
OTHERS = tuple(
    str(Peer(family, variant)) for family, about in FAMILIES.items() if about.engine for variant in about.variants
)
