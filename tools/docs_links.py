"""A hook of MkDocs: where a page names a file of the repository, the name is a link to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/tensor4all/tenferro-ref"
#: A path in backquotes, which is not the text of a link already.
_NAMED = re.compile(r"(?<!\[)`((?:benchmarks|examples|fuzz|oracle|reports|tenferro_ref|tests|tools)/[\w./-]+)`")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with a link where it names a file or folder that is there; blocks of code stay as they are."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _NAMED.sub(_link, part) for part in parts)


def _link(found: re.Match[str]) -> str:
    path = ROOT / found[1]
    if not path.exists():
        return found[0]
    return f"[`{found[1]}`]({REPOSITORY}/{'tree' if path.is_dir() else 'blob'}/main/{found[1]})"
