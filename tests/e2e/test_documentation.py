"""The documentation as it is built: it opens from a folder, and no page asks the network for anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import chromium_or_skip

pytestmark = [pytest.mark.once, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("index.html", "tutorial.html", "reference/ops.html", "reference/python.html", "findings/index.html")


def test_the_documentation_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True, capture_output=True)
    places = {entry["location"] for entry in json.loads((tmp_path / "search/search_index.json").read_text())["docs"]}
    assert {"reference/ops.html#gather", "reference/python.html#tenferro_ref.checking.check"} <= places
    with chromium_or_skip() as browser:
        for page in PAGES:
            browser.open(tmp_path / page)
            assert [url for url in browser.requests() if not url.startswith("file://")] == []
            # the search asks for its index by the path that a server has
            assert [words for words in browser.console_errors() if "/search/" not in words] == []
            assert browser.script("return document.querySelectorAll('[data-md-color-scheme], .md-search').length") >= 2
