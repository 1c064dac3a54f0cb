"""The pages of docs/findings/ as a report shows them: a report has its own copy, so that its links hold wherever it lies."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

#: In a wheel they lie inside this package, in a clone in the documentation.
_FOLDERS = (resources.files("reports") / "findings", Path(__file__).parents[1] / "docs" / "findings")


@cache
def _source(name: str) -> str:
    """The page in Markdown; "" if there is none of that name."""
    if not re.fullmatch(r"[\w-]{1,120}", name, re.ASCII):
        return ""
    pages = (folder / f"{name}.md" for folder in _FOLDERS)
    return next((page.read_text("utf-8") for page in pages if page.is_file()), "")


def known_page(name: str, link: Callable[[str], str] = lambda _: "", level: int = 2) -> Markup:
    """A page of docs/findings/ as HTML; empty if there is none of that name.

    Parameters
    ----------
    link
        The address of another such page, "" if the report has no copy of it: then the words stay, without a link.
    level
        Of its heading: 1 where it is the whole document.
    """
    source = re.sub(r"<!--.*?-->\n?", "", _source(name), flags=re.S)
    source = re.sub(r"^# ", "#" * level + " ", source)

    def linked(match: re.Match[str]) -> str:
        address = link(match[2].rpartition("/")[2].removesuffix(".md"))
        return f"[{match[1]}]({address})" if address else match[1]

    source = re.sub(r"\[([^\]\n]+)\]\((?!https?:)([^)\s]+)\)", linked, source)
    return Markup(MarkdownIt("js-default", {"html": False, "linkify": False}).render(source))  # noqa: S704 - our own page
