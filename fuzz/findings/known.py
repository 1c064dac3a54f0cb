"""What is known: rules that recognise a finding as one of the pages in docs/findings/.

The rules are in `known_findings.toml`; a finding is known if every field of a rule matches (shell patterns). A rule speaks
only of the builds that it names, by what they report of themselves, so that a file's name changes nothing. A rule past
its `expires` date no longer matches: its page has to be looked at again.
"""

from __future__ import annotations

import datetime
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec
from msgspec import structs

from fuzz.records import Finding
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_bytes

DEFAULT_RULES = Path(__file__).with_name("known_findings.toml")


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule, of shell patterns.

    Attributes
    ----------
    page
        Name of the page in docs/findings/, without `.md`.
    signature
        Pattern of `Finding.signature`.
    builds
        Patterns of `Finding.build`; in a file, names of its table `builds`.
    """

    page: str
    signature: str
    expires: datetime.date
    builds: tuple[str, ...]
    verdict: str = "mismatch"
    executor: str = "*"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    builds: dict[str, str] = {}
    known: tuple[Known, ...] = ()


def match(finding: Finding, rules: tuple[Known, ...], today: datetime.date | None = None) -> str:
    """The page that describes `finding`, "" if none does."""
    return page_of(finding.signature, finding.verdict, finding.executor, finding.build, rules, today)


def page_of(
    signature: str,
    verdict: str,
    executor: str,
    build: str,
    rules: tuple[Known, ...],
    today: datetime.date | None = None,
) -> str:
    """The page that describes a disagreement, given as the fields of a `Finding`; "" if none does.

    JAX has no lanes: its findings are matched as if a plugin showed them in every lane as well.
    """
    day = today or datetime.date.today()
    signatures = {signature, re.sub(r"only jax(-eager)?$", "every lane", signature)}
    for rule in rules:
        if (
            day <= rule.expires
            and any(fnmatchcase(signature, rule.signature) for signature in signatures)
            and fnmatchcase(verdict, rule.verdict)
            and fnmatchcase(executor, rule.executor)
            and any(fnmatchcase(build, pattern) for pattern in rule.builds)
        ):
            return rule.page
    return ""


def pages() -> dict[str, str]:
    """Topic `findings`: the pages that rules recognise disagreements as, with the signature of one."""
    return {rule.page: rule.signature for rule in reversed(load_known())}


@cache
def load_known(path: Path = DEFAULT_RULES) -> tuple[Known, ...]:
    """Read a rules file.

    Raises
    ------
    FormatError
        Unreadable, not TOML, unknown or missing keys, a wrong type, a build that is not in the table.
    """
    try:
        file = msgspec.toml.decode(read_bytes(path), type=_File)
    except msgspec.MsgspecError as error:
        raise FormatError(where=str(path), detail=f"no file of rules: {error}") from None
    for rule in file.known:
        for name in rule.builds:
            if name not in file.builds:
                detail = f"the rule of {rule.page} names the build {name!r}, which is not in the table `builds`"
                raise FormatError(where=str(path), detail=detail)
    return tuple(structs.replace(rule, builds=tuple(file.builds[name] for name in rule.builds)) for rule in file.known)
