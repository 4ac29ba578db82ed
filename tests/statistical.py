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


def check(p_value: Callable[[int, int], float], n_draws: int, seed: int = 0) -> None:
    """Assert that ``p_value(n_draws, seed)`` does not speak against the sampler."""
    first = p_value(n_draws, seed)
    assert first >= REJECT, f"p = {first:.2g} with {n_draws} draws"
    if first < GREY:
        again = p_value(4 * n_draws, seed + 1_000_003)
        assert again >= GREY, f"p = {first:.2g}, then {again:.2g} with {4 * n_draws} draws"


def rejects(p_value: Callable[[int, int], float], n_draws: int, seed: int = 0) -> bool:
    """Whether :func:`check` would fail: used to show that a named mutant is caught."""
    try:
        check(p_value, n_draws, seed)
    except AssertionError:
        return True
    return False


def p_value_of_counts(counts, probabilities) -> float:
    """Chi-square p-value of counts against exact probabilities, rare cells pooled."""
    counts = np.asarray(counts, dtype=float).ravel()
    expected = np.asarray(probabilities, dtype=float).ravel() * counts.sum()
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    # Pool the rarest cells until each pooled cell expects at least five.
    n_rare = int(np.searchsorted(np.cumsum(expected), 5.0)) + 1
    if n_rare >= len(expected) or expected[n_rare:].min(initial=np.inf) < 5.0:
        n_rare = int(np.sum(expected < 5.0))
    if n_rare > 1:
        counts = np.concatenate([[counts[:n_rare].sum()], counts[n_rare:]])
        expected = np.concatenate([[expected[:n_rare].sum()], expected[n_rare:]])
    if np.any((expected == 0) & (counts > 0)):
        return 0.0
    keep = expected > 0
    statistic = np.sum((counts[keep] - expected[keep]) ** 2 / expected[keep])
    return float(stats.chi2.sf(statistic, max(int(keep.sum()) - 1, 1)))


def p_value_of_z(z) -> float:
    """Two-sided p-value of independent standard scores, corrected for their number."""
    z = np.atleast_1d(np.asarray(z, dtype=float))
    if not np.all(np.isfinite(z)):
        return 0.0
    smallest = 2 * stats.norm.sf(np.abs(z).max())
    return float(-np.expm1(z.size * np.log1p(-min(smallest, 1 - 1e-16))))
