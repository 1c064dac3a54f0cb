"""What is known: rules that recognise a finding as one of the pages in docs/findings/.

The rules are in `known_findings.toml`, one table a page; a finding is known if every field that a rule names matches
(shell patterns). A rule past its `expires` date no longer matches: the page has to be looked at again.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from fuzz.records import Finding
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text

DEFAULT_RULES = Path(__file__).with_name("known_findings.toml")


@dataclass(frozen=True, slots=True)
class Known:
    """One rule. The patterns default to "anything"; `signature` and `page` are required.

    Attributes
    ----------
    page
        Name of the page in docs/findings/, without `.md`.
    signature
        Pattern of `Finding.signature`.
    """

    page: str
    signature: str
    expires: datetime.date
    verdict: str = "mismatch"
    executor: str = "*"


def match(finding: Finding, rules: tuple[Known, ...], today: datetime.date | None = None) -> str:
    """The page that describes `finding`, "" if none does.

    JAX has no lanes: what it shows is what a plugin shows in every lane, and known by the same rules.
    """
    day = today or datetime.date.today()
    signatures = {finding.signature, re.sub(r"only jax(-eager)?$", "every lane", finding.signature)}
    for rule in rules:
        if (
            day <= rule.expires
            and any(fnmatchcase(signature, rule.signature) for signature in signatures)
            and fnmatchcase(finding.verdict, rule.verdict)
            and fnmatchcase(finding.executor, rule.executor)
        ):
            return rule.page
    return ""


@cache
def load_known(path: Path = DEFAULT_RULES) -> tuple[Known, ...]:
    """Read a rules file.

    Raises
    ------
    FormatError
        Unreadable, not TOML, unknown or missing keys, a wrong type.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(where=str(path), detail=f"not TOML: {error}") from None
    if set(content) - {"known"}:
        raise FormatError(where=str(path), detail="only [[known]] tables are allowed")
    types = {f.name: datetime.date if f.name == "expires" else str for f in fields(Known)}
    rules = []
    for i, entry in enumerate(content.get("known", [])):
        where = f"{path}: known[{i}]"
        for key, value in entry.items():
            if key not in types or not isinstance(value, types[key]):
                raise FormatError(
                    where=f"{where}.{key}", detail=f"unknown key or wrong type; known: {', '.join(types)}"
                )
        try:
            rules.append(Known(**entry))
        except TypeError:
            raise FormatError(where=where, detail="page, signature and expires are required") from None
    return tuple(rules)
