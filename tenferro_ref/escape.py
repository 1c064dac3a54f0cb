"""Text from outside made safe for the place that shows it: a plugin's message, the name of an executor, a path.

Text is escaped where it is shown and not before: records keep it as it came. HTML is jinja's work (autoescape), on text that
`visible` has seen; XML is ElementTree's, likewise.
"""

from __future__ import annotations

import re

#: Control characters as visible pictures; marks that reorder, join or separate text, lone surrogates and non-characters as
#: escapes: they would drive a terminal, rearrange the page, or be refused by a parser.
_VISIBLE = {c: chr(0x2400 + c) for c in range(0x20) if chr(c) not in "\t\n"} | {0x7F: "\u2421"}
_VISIBLE |= {c: f"\\u{c:04x}" for c in (*range(0x80, 0xA0), 0x061C, *range(0x200B, 0x2010), *range(0x2028, 0x202F))}
_VISIBLE |= {c: f"\\u{c:04x}" for c in (*range(0x2060, 0x206A), *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF)}
_VISIBLE |= {c: f"\\U{c:08x}" for c in range(0xE0000, 0xE0080)}

#: A mention of a person or an issue, escaped: services look for them in what Markdown gives, where no backslash is left.
_MENTION = re.compile(r"(?<!\w)(\\[@#])(?=\w)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")


def visible(text: str) -> str:
    """`text` with all that acts instead of being read made visible; line ends become LF, and stay."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def line(text: str) -> str:
    """One line for a terminal or a list: `visible`, and a space for line ends and tabs."""
    return re.sub(r"[\t\n]+", " ", visible(text))


def markdown(text: str) -> str:
    """One line of Markdown in which nothing is markup, a link, a mention, or the end of a table's cell."""
    words = re.sub(r"([\\`*_{}\[\]<>|#~&@!])", r"\\\1", " ".join(visible(text).split()))
    words = _MENTION.sub("\\1\u200b", words)
    return re.sub(r"(?i)(?<=www)(?=\.)|(?=://)", r"\\", words)


def code(text: str) -> str:
    """One line as an inline code span, whatever backticks are in it."""
    words = " ".join(visible(text).split()) or " "
    fence = _fence(words, 1)
    return f"{fence} {words} {fence}" if "`" in words else f"{fence}{words}{fence}"


def code_block(text: str) -> str:
    """Lines as a block of code that nothing in them ends."""
    words = visible(text).strip("\n")
    fence = _fence(words, 3)
    return f"{fence}\n{words}\n{fence}"


def _fence(words: str, least: int) -> str:
    """Backticks, more than there are anywhere in a row."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", words)), default=0))


def is_identifier(text: object) -> bool:
    """Whether it is a name as programs have them: ASCII letters, digits and underscores, 80 of them at most."""
    return isinstance(text, str) and _IDENTIFIER.fullmatch(text) is not None
