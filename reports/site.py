"""The files of a report, and the folder that they go into: the entry point `site` of the group `tenferro_ref.report`."""

from __future__ import annotations

from pathlib import Path

from fuzz.records import Campaign, dumps
from reports.html import render
from reports.junit import junit_xml
from reports.markdown import MARK, summary
from tenferro_ref.files import Product, check_products, write_products

_WRITERS = (
    (Product("index.html", '<meta name="generator" content="tenferro-ref report">'), render),
    (Product("campaign.json", '"tenferro_campaign"'), dumps),
    (Product("junit.xml", '<testsuites name="tenferro-ref"'), junit_xml),
    (Product("summary.md", MARK), summary),
)


def check(folder: Path) -> None:
    """Fail now if a report could not be written into `folder` later; errors as `write_products`."""
    check_products(folder, [product for product, _ in _WRITERS])


def write(campaign: Campaign, folder: Path) -> Path:
    """Write all forms of the report into `folder`, or none of them; gives the page.

    Raises
    ------
    UsageError
        A file of that name is there that is no report's.
    OutputError
        Something cannot be written.
    """
    write_products(folder, [Product(p.name, p.mark, form(campaign)) for p, form in _WRITERS])
    return folder / "index.html"
