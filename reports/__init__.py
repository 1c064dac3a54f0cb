"""From recorded results to HTML, JUnit XML and Markdown; reads the records of `fuzz.records` and `oracle.verdict` alone."""
