"""How a test judges random output: a declared error rate, and one rerun declared in advance.

A statistical test calls :func:`check` with a function that draws a sample of a given size and
returns a p-value. Below ``REJECT`` it fails at once. Between ``REJECT`` and ``GREY`` the sample
was merely unlucky or slightly off, so the test runs once more with four times the draws and a
fresh stream, and fails if that p-value is in the grey zone again. A correct sampler fails with
probability about REJECT + GREY**2, that is 1.1e-5, whatever the seed.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats

REJECT = 1e-6
GREY = 3e-3
FEWEST = 25.0


def check(p_value: Callable[[int, int], float], n_draws: int, seed: int = 0) -> None:
    """Assert that ``p_value(n_draws, seed)`` does not speak against the sampler."""
    objection = _object_to(p_value, n_draws, seed)
    assert objection is None, objection


def rejects(p_value: Callable[[int, int], float], n_draws: int, seed: int = 0) -> bool:
    """Whether :func:`check` would fail: used to show that a named mutant is caught."""
    return _object_to(p_value, n_draws, seed) is not None


def _object_to(p_value: Callable[[int, int], float], n_draws: int, seed: int) -> str | None:
    first = p_value(n_draws, seed)
    if first < REJECT:
        return f"p = {first:.2g} with {n_draws} draws"
    if first < GREY:
        again = p_value(4 * n_draws, seed + 1_000_003)
        if again < GREY:
            return f"p = {first:.2g}, then {again:.2g} with {4 * n_draws} draws"
    return None


def p_value_of_counts(counts, probabilities) -> float:
    """Chi-square p-value of counts against exact probabilities, rare cells pooled.

    Every cell, the pooled one too, expects at least 25, so that the chi-square law holds far
    enough into its tail for the declared error rates.
    """
    counts = np.asarray(counts, dtype=float).ravel()
    probabilities = np.asarray(probabilities, dtype=float).ravel()
    if np.any((probabilities == 0) & (counts > 0)):
        return 0.0
    order = np.argsort(probabilities)[np.sum(probabilities == 0) :]
    if len(order) == 1:
        return 1.0
    counts, expected = counts[order], probabilities[order] * counts.sum()
    n_rare = max(
        int(np.searchsorted(expected, FEWEST)),
        int(np.searchsorted(np.cumsum(expected), FEWEST)) + 1,
    )
    if n_rare >= len(expected):
        raise ValueError(f"{counts.sum():g} draws are too few to test this law")
    starts = np.append(0, np.arange(n_rare, len(expected)))
    counts, expected = np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    statistic = np.sum((counts - expected) ** 2 / expected)
    return float(stats.chi2.sf(statistic, len(counts) - 1))


def p_value_of_z(z) -> float:
    """Two-sided p-value of independent standard scores, corrected for their number."""
    z = np.atleast_1d(np.asarray(z, dtype=float))
    if not np.all(np.isfinite(z)):
        return 0.0
    smallest = 2 * stats.norm.sf(np.abs(z).max())
    return float(-np.expm1(z.size * np.log1p(-min(smallest, 1 - 1e-16))))
