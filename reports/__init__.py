"""From recorded results to HTML, JUnit XML and Markdown.

Reads the records of `fuzz.records` and `oracle.verdict`, and nothing else of the project.
"""

from reports.html import write_html
from reports.junit import write_junit
from reports.markdown import write_markdown
from reports.summary import Outcome, outcome

__all__ = ["Outcome", "outcome", "write_html", "write_junit", "write_markdown"]
