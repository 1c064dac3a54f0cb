"""Commands that compare executors: `check`, `golden`, `parity`, `fuzz`, `mutants`."""
