"""Graphs with known log Z on which the table is judged, and how it is judged."""

import functools
from typing import NamedTuple

import numpy as np
from scipy import stats

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import path_table
from bayesknn.model import log_normalizer_exact
from tests.model.enumeration import enumerate_log_normalizer
from tests.statistical import p_value_of_z

BETAS = np.array([0.6, 1.4, 2.5, 4.0])
# Errors come from some dozens of batches and 64 replicates, so that scores have the tails of
# Student's law: their spread is a little above one, and this is how far it may be from it.
SPREAD = (0.85, 1.2)


class Case(NamedTuple):
    """A graph, its classes and what log Z is."""

    graph: NeighborGraph
    n_classes: int
    class_weight: np.ndarray | None
    exact: np.ndarray  # (k_max, n_betas)

    def make_table(self, random_state, **options):
        return path_table(
            self.graph,
            self.n_classes,
            class_weight=self.class_weight,
            exact=False,
            random_state=random_state,
            **options,
        )


@functools.cache
def make_case(n, k_max, n_classes, class_weight=None):
    weights = None if class_weight is None else np.array(class_weight)
    points = np.random.default_rng(1).normal(size=(n, 2))
    graph = NeighborGraph.from_points(points, k_max=k_max)
    compute = enumerate_log_normalizer if n <= 12 else log_normalizer_exact
    exact = [compute(graph, BETAS, k, n_classes, weights) for k in range(1, k_max + 1)]
    return Case(graph, n_classes, weights, np.array(exact))


def scores(case, table):
    """Return (value - exact) / error at every k and beta."""
    ks = range(1, table.k_max + 1)
    values = np.array([table.log_normalizer(BETAS, k) for k in ks])
    errors = np.array([table.error(BETAS, k) for k in ks])
    return (values - case.exact[: table.k_max]) / errors


def p_value_of_scores(z, spread=SPREAD):
    """Return the p-value of scores of shape (n_tables, n_k, n_betas): mean 0, spread about 1.

    Along beta they are not independent, so each beta is judged on its own.
    """
    n_tables, n_k, n_betas = z.shape
    totals = np.sum(z**2, axis=(0, 1))
    n = n_tables * n_k
    wide = stats.chi2.sf(totals / spread[1] ** 2, n).min()
    narrow = stats.chi2.cdf(totals / spread[0] ** 2, n).min()
    smallest = min(1.0, 2 * n_betas * min(wide, narrow))
    means = p_value_of_z(z.mean(axis=(0, 1)) * np.sqrt(n) / spread[1])
    return min(1.0, 2 * min(smallest, means))


def score_table(case, seed, at):
    """Return the scores of one of a case's tables."""
    return scores(case, case.make_table(np.random.SeedSequence([seed, at])))


@functools.cache
def keep_scores(seed, at, *case):
    """Score a table once for all tests that want it."""
    return score_table(make_case(*case), seed, at)


def judge(score, select=slice(None), shrink=1.0):
    """Return a function that gives the p-value of some tables, for ``tests.statistical``."""

    def p_value(n_tables, seed):
        z = np.array([score(seed, at)[select] for at in range(n_tables)])
        return p_value_of_scores(z / shrink)

    return p_value
