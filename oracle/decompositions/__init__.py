"""Decompositions and solvers, judged by residuals and invariants.

Factors are not unique, so no element of them is compared. What is checked is what every backward stable algorithm gives:
the factors multiply to the matrix; they are triangular, orthogonal, ordered, permutations. Residuals are evaluated in a
wider type, and what that evaluation may be off is added to their bounds, so that nothing fails which is right.

Bounds of eliminations and substitutions are theorems, with their constants (`Scale.eliminated`). Of orthogonal factors,
singular values and eigenvalues the theorems have "a small integer constant": there the bound is a demand (`Scale.demanded`),
of which `python -m tools.margins` measures how much implementations use. Theorems and equations are those of Higham,
Accuracy and Stability of Numerical Algorithms (2nd edition, 2002).
"""

from oracle.decompositions import factors, householder, routines, solvers, spectra

__all__ = ["factors", "householder", "routines", "solvers", "spectra"]
