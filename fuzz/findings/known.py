"""What is known: rules that recognise a finding as one of the pages in docs/findings/.

The rules are in `known_findings.toml`; a finding is known if every field of a rule matches (shell patterns). A rule names ops,
dtype, value class and cause, none of them by a bare `*`, and the builds that it speaks of by what they report of themselves, so
that a file's name changes nothing. A rule past its `expires` date no longer matches: its page has to be looked at again.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec
from msgspec import structs

from fuzz.records import Finding
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_toml

DEFAULT_RULES = Path(__file__).with_name("known_findings.toml")


#: Ops that a pattern need not name: constants, and what moves elements; in a program, and in a module as given.
_UNNAMED = frozenset({
    "BroadcastInDim", "Concatenate", "Constant", "DynamicSlice", "Pad", "Reshape", "Reverse", "Slice", "Transpose",
    "broadcast_in_dim", "concatenate", "constant", "dynamic_slice", "pad", "reshape", "reverse", "slice", "transpose",
})  # fmt: skip
#: Of more than two in a row, of which arrays are made, a pattern need not name the others.
_CONSTANTS = frozenset({"Constant", "constant"})
#: Any ops, first or last in a pattern: a death is known by the check that failed, whatever is left of its program.
_ANY = "..."
#: The executor in rules about the C API, whose signature is `section: name` of a check of `tenferro-ref conform`.
CONFORM = "conform"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule.

    Attributes
    ----------
    page
        Name of the page in docs/findings/, without `.md`.
    signatures
        Patterns of `Finding.signature`, of which one has to match (`fits`); of a check of `conform`, patterns of its name.
    builds
        Patterns of `Finding.build`; in a file, names of its table `builds`.
    op
        Pattern of `Finding.op`, the wrong instruction with the ops that made its operands: for a result that differs from run to
        run, which chance may keep from being reduced.
    """

    page: str
    signatures: tuple[str, ...]
    expires: datetime.date
    builds: tuple[str, ...]
    verdict: str = "mismatch"
    executor: str = "*"
    op: str = "*"

    def covers(self, signature: str, verdict: str, executor: str, build: str, op: str = "") -> bool:
        """Whether a disagreement, given as the fields of a `Finding`, is what the rule describes."""
        return self.speaks_of(verdict, executor, build) and self.describes(signature, op)

    def describes(self, signature: str, op: str) -> bool:
        """Whether a signature and a wrong instruction are those of the rule."""
        return fnmatchcase(op, self.op) and any(fits(pattern, signature) for pattern in self.signatures)

    def speaks_of(self, verdict: str, executor: str, build: str) -> bool:
        """Whether the rule is about such disagreements at all, whatever their signature."""
        return (
            fnmatchcase(verdict, self.verdict)
            and fnmatchcase(executor, self.executor)
            and any(fnmatchcase(build, pattern) for pattern in self.builds)
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    builds: dict[str, str] = {}
    known: tuple[Known, ...] = ()


def fits(pattern: str, signature: str) -> bool:
    """Whether each part of a signature is one of the alternatives (` or `) of that part of the pattern.

    Ops are compared one by one: all of them, or without constants and ops that move elements, where the pattern names none such;
    two constants in a row stand for more. Before the others, and behind them, `...` stands for any ops, or none.
    `Scatter` is one with indices of any type, `Scatter(U8)` of that type (`naming.named`).
    """
    wanted, parts = pattern.split(" | "), signature.split(" | ")
    if len(wanted) != 4 or len(parts) != 4:
        return fnmatchcase(signature, pattern)
    return any(_is_chain(w.split(" > "), parts[0].split(" > ")) for w in wanted[0].split(" or ")) and all(
        any(fnmatchcase(part, p) for p in alternatives(w)) for w, part in zip(wanted[1:], parts[1:], strict=True)
    )


def alternatives(part: str) -> list[str]:
    """What one part of a pattern allows; each value class begins with `expected`, and `NaN or a range` is within one."""
    return re.split(" or (?=expected )", part) if part.startswith("expected ") else part.split(" or ")


def _is_chain(wanted: list[str], ops: list[str]) -> bool:
    left = [op for op in ops if op.partition("(")[0] not in _UNNAMED or any(_is_op(w, op) for w in wanted)]
    few = [op for i, op in enumerate(left) if op not in _CONSTANTS or left[max(i - 2, 0) : i] != [op, op]]
    named = [op for op in wanted if op != _ANY]
    return any(
        all(map(_is_op, named, chain[start:]))
        for chain in (ops, left, few)
        for start in _starts(wanted, spare=len(chain) - len(named))
    )


def _starts(wanted: list[str], spare: int) -> range:
    """Where the ops that a pattern names may begin in a chain that has `spare` more of them."""
    first, last = (0 if wanted[-1] == _ANY else spare), (spare if wanted[0] == _ANY else 0)
    return range(first, last + 1) if spare >= 0 else range(0)


def _is_op(wanted: str, op: str) -> bool:
    return fnmatchcase(op, wanted) or ("(" not in wanted and fnmatchcase(op.partition("(")[0], wanted))


def match(finding: Finding, rules: tuple[Known, ...], today: datetime.date | None = None) -> str:
    """The page that describes `finding`, "" if none does."""
    rules = rules_of(finding.verdict, finding.executor, finding.build, rules, today)
    return _page(finding.signature, finding.op, rules)


def match_all(findings: Iterable[Finding], rules: tuple[Known, ...]) -> list[str]:
    """What `match` gives for each of `findings`.

    Rules are chosen once for all findings of one executor, verdict and build, of which a store has few.
    """
    chosen: dict[tuple[str, str, str], tuple[Known, ...]] = {}
    pages = []
    for finding in findings:
        which = (finding.verdict, finding.executor, finding.build)
        if which not in chosen:
            chosen[which] = rules_of(*which, rules)
        pages.append(_page(finding.signature, finding.op, chosen[which]))
    return pages


def page_of(
    signature: str,
    verdict: str,
    executor: str,
    build: str,
    rules: tuple[Known, ...],
    op: str = "",
) -> str:
    """The page that describes a disagreement, given as the fields of a `Finding`; "" if none does."""
    return _page(signature, op, rules_of(verdict, executor, build, rules))


def uncovered(finding: Finding, builds: Mapping[str, str], rules: tuple[Known, ...]) -> list[str]:
    """The executors, of those given with their builds, that show a finding and of which no rule that describes it speaks."""
    return [
        executor
        for executor, build in builds.items()
        if build and not page_of(finding.signature, finding.verdict, executor, build, rules, finding.op)
    ]


def rules_of(
    verdict: str, executor: str, build: str, rules: tuple[Known, ...], today: datetime.date | None = None
) -> tuple[Known, ...]:
    """The rules that are in force for a verdict, an executor and a build."""
    day = today or datetime.date.today()
    return tuple(rule for rule in rules if day <= rule.expires and rule.speaks_of(verdict, executor, build))


def _page(signature: str, op: str, rules: tuple[Known, ...]) -> str:
    """JAX has no lanes: its findings are matched as if a plugin showed them in every lane as well."""
    signatures = {signature, re.sub(r"only jax(-eager)?$", "every lane", signature)}
    for rule in rules:
        if any(rule.describes(s, op) for s in signatures):
            return rule.page
    return ""


def pages() -> dict[str, str]:
    """Topic `findings`: the pages that rules recognise disagreements as, with the signature of one."""
    return {rule.page: rule.signatures[0] for rule in reversed(load_known())}


def stale(findings: Iterable[Finding], rules: tuple[Known, ...]) -> list[tuple[str, str]]:
    """Page and signature of rules that match none of the findings, though some are of a build that the rule names.

    Checks of `conform` are no findings of a campaign, so that their rules are never listed.
    """
    rows = [(f.signature, f.verdict, f.executor, f.build, f.op) for f in findings]
    builds = {row[3] for row in rows}
    there = [r for r in rules if r.executor != CONFORM and any(fnmatchcase(b, p) for b in builds for p in r.builds)]
    one_each = [structs.replace(rule, signatures=(s,)) for rule in there for s in rule.signatures]
    return [(r.page, r.signatures[0]) for r in one_each if not any(r.covers(*row) for row in rows)]


@cache
def load_known(path: Path = DEFAULT_RULES) -> tuple[Known, ...]:
    """Read a rules file.

    Raises
    ------
    FormatError
        Unreadable, not TOML, unknown or missing keys, a wrong type, a build that is not in the table, a signature that does not
        say which ops, dtypes, value classes and causes it means.
    """
    try:
        file = msgspec.convert(read_toml(path), _File)
    except msgspec.MsgspecError as error:
        raise FormatError(where=str(path), detail=f"no file of rules: {error}") from None
    for rule in file.known:
        for name in rule.builds:
            if name not in file.builds:
                detail = f"the rule of {rule.page} names the build {name!r}, which is not in the table `builds`"
                raise FormatError(where=str(path), detail=detail)
        for signature in rule.signatures:
            if rule.executor != CONFORM and not _is_narrow(signature):
                detail = f"the rule of {rule.page} needs four parts, none of them *: {signature!r}"
                raise FormatError(where=str(path), detail=detail)
    return tuple(structs.replace(rule, builds=tuple(file.builds[name] for name in rule.builds)) for rule in file.known)


def _is_narrow(signature: str) -> bool:
    parts = signature.split(" | ")
    words = {word for part in parts for choice in alternatives(part) for word in choice.split(" > ")}
    return len(parts) == 4 and words.isdisjoint(("*", "expected *, got *")) and _ANY not in parts[0].split(" or ")
