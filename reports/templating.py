"""The templates of all pages: how they are found, what they may ask for, and that text from outside stays text.

Everything that a record says is escaped there (autoescape), after `visible` has seen it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fuzz.summary import disagreements, plural
from oracle.verdict import ORIGINS, Verdict
from reports import text
from reports.matrix import BY_SLUG
from tenferro_ref.escape import visible

_ORDER = {verdict.value: number for number, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is shown, with a note on what was left out, and the numbers of the lines that stand out."""

    shown: str
    note: str = ""
    marked: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(cls, whole: str, marked: Iterable[int] = (), **limits: int) -> Text:
        return cls(*text.shorten(visible(whole), **limits), frozenset(marked))

    @property
    def lines(self) -> list[str]:
        return self.shown.removesuffix("\n").split("\n")


def asset(name: str) -> str:
    """The style sheet or the script of this package."""
    return (resources.files("reports") / "static" / name).read_text("utf-8")


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "clip": text.clip,
        "count": text.count,
        "share": text.share,
        "ulp": text.ulp,
        "seconds": text.seconds,
        "plural": plural,
        "disagreements": disagreements,
        "verdicts": _verdict_counts,
        "breakable": lambda name: Markup("<wbr>").join(re.split("(?<=[a-z])(?=[A-Z])", name)),
        "safe_svg": lambda plot: Markup(plot.svg),  # noqa: S704 - drawn by `plots` from numbers only
    }
    environment.globals |= {"by_slug": BY_SLUG, "origins": ORIGINS}
    return environment


def _verdict_counts(verdicts: dict[str, int]) -> str:
    """`118 pass, 2 mismatch`, mildest first."""
    ordered = sorted(verdicts, key=lambda verdict: _ORDER.get(verdict, len(_ORDER)))
    return ", ".join(f"{verdicts[v]:,} {v}" for v in ordered if verdicts[v])
