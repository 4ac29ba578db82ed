"""The posterior over sets of columns (the paper's Section 5: 'not explored').

P(set | y) is proportional to the prior of a set times its evidence, the likelihood of the labels
averaged over the prior of (beta, k) on the neighbour graph of these columns. The empty set stands
for labels that do not depend on x.

Under the prior every number of columns is equally probable, and so are all sets of one number. The
odds of a set with one more column then fall with the number of columns to choose from: among many
columns of noise, one that fits by chance does not count (Scott and Berger 2010, Annals of
Statistics 38, 2587-2619).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import softmax

type ColumnSet = tuple[int, ...]

# Largest number of sets that are all scored: those of eight columns. More sets would take minutes
# by the coherent evidence, of which one takes about a second at 200 rows.
_ALL = 256
# Length of each of the three Metropolis chains, in proposals for each column. Shorter chains miss
# sets of small probability; each proposal costs at most one evidence.
_PROPOSALS = 40


@dataclass(frozen=True)
class SetPosterior:
    """The posterior over the sets whose evidence is known.

    Attributes
    ----------
    sets : list of tuple of int
        In decreasing order of probability.
    probabilities, errors : ndarray of shape (n_sets,)
        P(set | y) and its Monte Carlo error, which comes from that of the evidences.
    missed : float
        Estimated posterior probability of the sets that were not scored; 0 if all of them were.
    """

    sets: list[ColumnSet]
    probabilities: np.ndarray
    errors: np.ndarray
    inclusion: np.ndarray
    inclusion_errors: np.ndarray
    missed: float = 0.0

    def n_likeliest(self, mass: float) -> int:
        """Return how many sets, the likeliest first, hold this part of the probability."""
        return int(np.searchsorted(np.cumsum(self.probabilities), mass * (1 - 1e-12))) + 1


def log_prior(size: int, n_columns: int, most: int) -> float:
    """Return the log prior probability of one set of ``size`` among ``n_columns`` columns.

    Examples
    --------
    Of three columns: each of the four sizes has probability 1/4, each of three pairs a third of it.

    >>> from math import exp
    >>> from bayesknn.column_sets import log_prior
    >>> round(exp(log_prior(2, 3, 3)), 6)
    0.083333
    """
    return -math.log(most + 1) - math.log(math.comb(n_columns, size))


def weigh_sets(
    evidences: Mapping[ColumnSet, tuple[float, float]], n_columns: int, most: int, width: int
) -> SetPosterior:
    """Return the posterior over sets from the log evidence of each.

    Parameters
    ----------
    evidences : mapping of tuple of int to (float, float)
        Log evidence of each set, and its Monte Carlo error.
    n_columns : int
        Number of columns that a set may hold.
    most : int
        Largest number of columns in a set.
    width : int
        Number of columns of the table, among them those that no set holds.

    Examples
    --------
    >>> from bayesknn.column_sets import weigh_sets
    >>> posterior = weigh_sets({(): (-9.0, 0.0), (0,): (-8.0, 0.1)}, 1, 1, width=2)
    >>> posterior.sets, posterior.inclusion.round(3).tolist()
    ([(0,), ()], [0.731, 0.0])
    """
    sets = list(evidences)
    values, errors = np.array([evidences[columns] for columns in sets]).T
    p = softmax(values + [log_prior(len(columns), n_columns, most) for columns in sets])
    holds = np.zeros((len(sets), width))
    for row, columns in zip(holds, sets, strict=True):
        row[list(columns)] = 1.0
    inclusion = p @ holds
    # To first order, from independent errors of the log evidences.
    moved = (p * errors) ** 2
    inclusion_errors = np.sqrt(moved @ (holds - inclusion) ** 2)
    own = np.sqrt(p**2 * moved.sum() + moved * (1 - 2 * p))
    order = np.argsort(-p, kind="stable")
    return SetPosterior(
        [sets[at] for at in order], p[order], own[order], inclusion, inclusion_errors
    )


def list_sets(columns: Sequence[int], most: int) -> list[ColumnSet] | None:
    """Return all sets of at most ``most`` columns, or None if they are too many to score all."""
    if sum(math.comb(len(columns), size) for size in range(most + 1)) > _ALL:
        return None
    return [each for size in range(most + 1) for each in combinations(columns, size)]


def search_sets(
    log_evidence: Callable[[ColumnSet], float],
    scored: Mapping[ColumnSet, object],
    start: Iterable[int],
    columns: Sequence[int],
    most: int,
    rng: np.random.Generator,
) -> float:
    """Score sets along Metropolis chains, and estimate what they miss.

    Two chains start from ``start`` and from as many columns as a set may have, so that columns
    which say something together only are not overlooked. A third chain starts from the likeliest
    set that is known by then: its time at unknown sets estimates their probability.

    Parameters
    ----------
    log_evidence : callable
        Takes a set, returns its log evidence, and adds it to ``scored``.
    scored : mapping
        The sets whose evidence is known.
    start : iterable of int
    columns : sequence of int
    most : int
        Largest number of columns in a set.
    rng : numpy.random.Generator

    Returns
    -------
    float
        Proportion of the third chain that is spent at sets which the first two did not score. It is
        an estimate of their probability, if the chain mixes; fewer are missed in the end, since
        what the third chain scores is kept too.
    """

    def log_posterior(columns_of_set: ColumnSet) -> float:
        prior = log_prior(len(columns_of_set), len(columns), most)
        return log_evidence(columns_of_set) + prior

    n_steps = _PROPOSALS * len(columns)
    for end in (start, rng.permutation(columns)[:most].tolist()):
        _walk(log_posterior, end, columns, most, n_steps, rng)
    before = set(scored)
    likeliest = max(before, key=log_posterior)
    trail = _walk(log_posterior, likeliest, columns, most, n_steps, rng)
    return float(np.mean([each not in before for each in trail]))


def _walk(
    log_posterior: Callable[[ColumnSet], float],
    start: Iterable[int],
    columns: Sequence[int],
    most: int,
    n_steps: int,
    rng: np.random.Generator,
) -> list[ColumnSet]:
    """Run a Metropolis chain that adds or removes one column, or exchanges two."""
    at = tuple(sorted(start))
    value, trail = log_posterior(at), []
    for _ in range(n_steps):
        outside = [column for column in columns if column not in at]
        changed = {int(rng.choice(columns))}
        if rng.random() < 0.5 and at and outside:
            # As many exchanges lead back: the proposal is symmetric.
            changed = {int(rng.choice(at)), int(rng.choice(outside))}
        proposed = tuple(sorted(set(at) ^ changed))
        if len(proposed) <= most:
            other = log_posterior(proposed)
            if np.log(rng.random()) < other - value:
                at, value = proposed, other
        trail.append(at)
    return trail
