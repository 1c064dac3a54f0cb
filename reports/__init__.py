"""From recorded results to HTML, JSON, JUnit XML and Markdown."""
