"""Numbers and long text, as a report shows them. No markup is made here; `tenferro_ref.escape` makes text harmless."""

from __future__ import annotations

import math

MISSING = "\u2013"


def count(value: int) -> str:
    return f"{value:,}"


def share(value: float | None) -> str:
    """A share between 0 and 1 in percent; never rounded up to 100 % or down to 0 %."""
    if value is None:
        return MISSING
    if 0 < value < 0.001:
        return "< 0.1 %"
    if 0.999 < value < 1:
        return "> 99.9 %"
    return f"{value * 100:.1f} %" if 0 < value < 1 else f"{value * 100:.0f} %"


def ulp(value: float | None) -> str:
    """A distance in ULPs."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞"
    if value >= 1e6:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"


def seconds(value: float) -> str:
    """A duration: `0.42 s`, `41.0 s`, `2 min 51 s`, `1 h 02 min`."""
    if value < 59.95:
        return f"{value:.2g} s" if value < 1 else f"{value:.1f} s"
    minutes, left = divmod(round(value), 60)
    return f"{minutes} min {left:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def shorten(text: str, lines: int = 200, characters: int = 20_000) -> tuple[str, str]:
    """The beginning of a long text, and a note on what is left out ("" if nothing is).

    Whole lines are kept where there are any; one long line is cut.
    """
    head = "\n".join(text.split("\n", lines)[:lines])
    if len(head) > characters:
        head = head[:characters]
        if (cut := head.rfind("\n")) > characters // 2:
            head = head[:cut]
    if len(head) == len(text):
        return text, ""
    left = len(text) - len(head)
    more = text.count("\n", len(head))
    return (
        head,
        f"{left:,} characters{f' ({more:,} lines)' if more > 1 else ''} left out here; campaign.json has all of it",
    )


def clip(text: str, characters: int) -> str:
    """The beginning of a text that belongs on one line."""
    return text if len(text) <= characters else text[: characters - 1] + "…"
