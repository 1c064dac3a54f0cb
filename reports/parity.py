"""The report of a campaign: its forms, and the folder that they go into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fuzz.records import dumps
from fuzz.report import Report
from reports.csv import matrix_csv
from reports.html import render, site_pages
from reports.junit import junit_xml
from reports.markdown import MARK, summary
from reports.sarif import sarif
from reports.site import Site
from tenferro_ref.files import Product, read_bytes

_PAGE = '<meta name="generator" content="tenferro-ref report">'
#: Every form but the pages: name, mark, and what makes it of a report and the ids of the findings that have bundles in it.
_FORMS = (
    (Product("campaign.json", '"tenferro_campaign"'), lambda report, _: dumps(report.campaign)),
    (Product("junit.xml", '<testsuites name="tenferro-ref"'), lambda report, _: junit_xml(report.campaign)),
    (Product("summary.md", MARK), lambda report, _: summary(report)),
    (Product("matrix.csv", "group,op,dtype,executor,state,"), lambda report, _: matrix_csv(report.campaign)),
    (Product("findings.sarif", '"name": "tenferro-ref"'), lambda report, bundled: sarif(report.campaign, bundled)),
)
_ALWAYS = (Product("index.html", _PAGE), *(product for product, _ in _FORMS))
_SOMETIMES = (
    *(Product(f"{kind}/*.html", _PAGE) for kind in ("findings", "ops", "peers", "known")),
    Product("report.css", "tenferro-ref report"),
    Product("report.js", "tenferro-ref report"),
)
#: What a complete bundle has; the README is written last.
_BUNDLE = (
    "environment.json", "program.txt", "program.json", "primal.json", "module.mlir", "inputs.npz", "observed.npz",
    "enclosure.npz", "reproduce.py", "upstream.py", "README.md",
)  # fmt: skip


def _site(report: Report, folder: Path) -> Iterator[Product]:
    copied, bundled = _bundles(report, folder)
    for name, content in site_pages(report, bundled).items():
        yield Product(name, _PAGE if name.endswith(".html") else "tenferro-ref report", content)
    yield from (*copied, *_forms(report, bundled))


def _single(report: Report, folder: Path) -> Iterator[Product]:
    copied, bundled = _bundles(report, folder)
    yield Product("index.html", _PAGE, render(report, bundled))
    yield from (*copied, *_forms(report, bundled))


def _forms(report: Report, bundled: set[str]) -> Iterator[Product]:
    return (Product(product.name, product.mark, form(report, bundled)) for product, form in _FORMS)


def _bundles(report: Report, folder: Path) -> tuple[list[Product], set[str]]:
    """The bundles that are still to be copied into the report, and the ids of all findings that have one there then."""
    copied, bundled = [], set()
    for name in {finding.id for finding in report.campaign.findings}:
        source, target = (report.bundles or folder / "findings") / name, folder / "findings" / name
        if source.is_symlink() or not (source / "README.md").is_file():
            continue
        bundled.add(name)
        if source.resolve() != target.resolve():
            present = [path for part in _BUNDLE if (path := source / part).is_file() and not path.is_symlink()]
            copied += [Product(f"findings/{name}/{path.name}", "", read_bytes(path)) for path in present]
    return copied, bundled


#: A page a finding, an op and a peer; and all of them in one file.
SITE, SINGLE_FILE = Site(_site, _ALWAYS, _SOMETIMES), Site(_single, _ALWAYS, _SOMETIMES)
