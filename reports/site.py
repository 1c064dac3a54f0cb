"""A report as files in a folder that somebody named: all of it or nothing, and nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tenferro_ref.files import Product, check_products, remove_products, write_products

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Site(Generic[Record]):
    """What writes the report of a record; the entry points of the group `tenferro_ref.report` are such.

    Attributes
    ----------
    files
        All files of a record's report, given its folder; `index.html` is the one to open.
    always
        Those that every report has, by name and mark.
    sometimes
        Patterns of the names of all others, with their marks: what an earlier report left of them is removed.
    """

    files: Callable[[Record, Path], Iterable[Product]]
    always: tuple[Product, ...]
    sometimes: tuple[Product, ...] = ()

    def check(self, folder: Path) -> None:
        """Fail now if a report could not be written into `folder` later; errors as `check_products`."""
        check_products(folder, self.always)

    def write(self, record: Record, folder: Path) -> Path:
        """Write the report into `folder`, or none of it; gives the page to open.

        Raises
        ------
        UsageError
            A file of that name is there that is no report's.
        OutputError
            Something cannot be written.
        """
        files = list(self.files(record, folder))
        write_products(folder, files)
        remove_products(folder, self.sometimes, {file.name for file in files})
        return folder / "index.html"
