"""A page as a flat list of elements: enough to count cells and to see what is markup and what is text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "wbr", "hr", "path", "use", "rect"})


@dataclass
class Element:
    tag: str
    attrs: dict[str, str]
    page: Page
    start: int
    end: int = 0

    @property
    def text(self) -> str:
        """All text below."""
        return "".join(self.page.texts[self.start : self.end])


@dataclass(eq=False, repr=False)
class Page(HTMLParser):
    """Every element with its attributes and text. Raises ValueError on tags that do not nest."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {k: v or "" for k, v in attrs}
        if len(found) != len(attrs):
            raise ValueError(f"<{tag}> has an attribute twice: {attrs}")
        self.elements.append(Element(tag, found, self, len(self.texts)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1].tag != tag:
            raise ValueError(f"</{tag}> closes {[e.tag for e in self.open]}, line {self.getpos()[0]}")
        self.open.pop().end = len(self.texts)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def select(self, tag: str = "", **attrs: str | None) -> list[Element]:
        """Elements of that tag with those attributes (`_` for `-`); None: any value."""
        wanted = {k.rstrip("_").replace("_", "-"): v for k, v in attrs.items()}
        return [
            e
            for e in self.elements
            if tag in ("", e.tag) and all(k in e.attrs and v in (None, e.attrs[k]) for k, v in wanted.items())
        ]


def parse(html: str) -> Page:
    """The page; all elements are closed."""
    page = Page()
    page.feed(html)
    page.close()
    if page.open:
        raise ValueError(f"never closed: {[e.tag for e in page.open]}")
    return page
