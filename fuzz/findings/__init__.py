"""From a disagreement to a bug report: triage, reduction, known rules, bundles, replay, the corpus."""
