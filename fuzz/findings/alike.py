"""When two disagreements look alike: the classes of their wrong values, the words of their errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oracle.verdict import Answer, Verdict
from tenferro_ref.errors import WorkerDied

#: A place in a C++ library, as its failed checks name it.
_SOURCE = re.compile(r"\b(\w+\.(?:cc|cpp|h)):\d")
#: What a library logs that is not fatal: a process may end behind such a line for another reason.
_LOGGED = re.compile(r"[IWE]\d{4} ")


def value_class(words: str) -> str:
    """The class of a wrong value. Where NaN is due, all numbers are one class: the value may be arbitrary, another in each run."""
    return re.sub(r"^expected NaN, got (finite|\+0|-0|inf|-inf)(?= \(|$)", "expected NaN, got a number", words)


def either_sign(words: str) -> str:
    """One name for a value class and for the class of the negated values."""
    opposite = {"inf": "-inf", "-inf": "inf", "+0": "-0", "-0": "+0"}
    return min(words, re.sub(r"-?\binf\b|[+-]0\b", lambda found: opposite[found[0]], words))


def class_of(answer: Answer) -> str:
    """The value class of an answer."""
    return value_class(answer.comparison.value_class)


def how_of(answer: Answer) -> str:
    """The value class, or the kind of an error; of a death with the source file of the check that failed, or the signal."""
    kind = class_of(answer) or answer.reason.partition(":")[0]
    return f"{kind}{_cause(answer.error)}" if answer.verdict is Verdict.CRASH and answer.error else kind


def _cause(error: Mapping[str, Any]) -> str:
    how = str(error.get("how", ""))
    words = WorkerDied(worker="", how=how, stderr_tail=str(error.get("stderr_tail", ""))).last_words
    if not _LOGGED.match(words) and (files := _SOURCE.findall(words)):
        return f" in {files[-1]}"  # a check that a call succeeds tells which one inside did not
    return f" by {how.removeprefix('signal ')}" if how.startswith("signal ") else ""


def complaint(answer: Answer) -> str:
    """The error without places, names, types and numbers: the same for all programs that one defect refuses."""
    words = answer.reason.partition("error: ")[2] or answer.reason
    return re.sub(r"(tensor|vector|memref)<[^>]*>|%\w+|\d+", "#", words.partition(": %")[0].partition("\n")[0])


def alike(one: Answer, other: Answer) -> bool:
    """Whether the verdicts agree, and of two errors the words, of two deaths the check that failed."""
    if one.verdict is not other.verdict:
        return False
    if one.verdict is Verdict.CRASH:
        return how_of(one) == how_of(other)
    return one.verdict is not Verdict.ERROR or complaint(one) == complaint(other)
