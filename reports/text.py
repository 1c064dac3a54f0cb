"""Numbers and long or hostile text, as a report shows them. No markup is made here."""

from __future__ import annotations

import hashlib
import math

#: Control characters as visible pictures, bidirectional overrides and lone surrogates as escapes: text from a crashed
#: plugin must not rearrange the page that shows it.
_VISIBLE = {c: chr(0x2400 + c) for c in range(0x20) if chr(c) not in "\t\n"} | {0x7F: "\u2421"}
_VISIBLE |= {c: f"\\u{c:04x}" for c in (*range(0x80, 0xA0), *range(0x200E, 0x2010), *range(0x202A, 0x202F))}
_VISIBLE |= {c: f"\\u{c:04x}" for c in (*range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}

MISSING = "\u2013"


def visible(text: str) -> str:
    """`text` with everything that a browser or an XML parser would choke on made visible; line ends become LF."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


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


def anchor(*parts: str) -> str:
    """A fragment name that stays the same from one campaign to the next."""
    return "f-" + hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:10]
