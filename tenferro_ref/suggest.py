"""The name that was probably meant, for messages about a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 80


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'NAME'?`, to be appended to a message; "" where no known name is close.

    Upper and lower case do not count: `f64` is close to `F64`.
    """
    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1) if len(word) <= _LONGEST else []
    return f"; did you mean {names[close[0]]!r}?" if close else ""
