"""When two disagreements look alike: the classes of their wrong values, the words of their errors."""

from __future__ import annotations

import re

from oracle.verdict import Answer, Verdict


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
    """The kind of error: the value class, or the kind of an error."""
    return class_of(answer) or answer.reason.partition(":")[0]


def complaint(answer: Answer) -> str:
    """The error without places, names, types and numbers: the same for all programs that one defect refuses."""
    words = answer.reason.partition("error: ")[2] or answer.reason
    return re.sub(r"(tensor|vector|memref)<[^>]*>|%\w+|\d+", "#", words.partition(": %")[0].partition("\n")[0])


def alike(one: Answer, other: Answer) -> bool:
    """Whether the verdicts agree, and of two errors the words."""
    return one.verdict is other.verdict and (one.verdict is not Verdict.ERROR or complaint(one) == complaint(other))
