"""Class probabilities of some rows, set against the classes that the rows have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesknn.evaluation.folds import draw_rows
from bayesknn.evaluation.scores import Scores, score, weigh_rows
from bayesknn.predictive import find_zones

# Value of ``Predicted.actual`` where the class of a row is not given.
NO_CLASS = -2


@dataclass
class Predicted:
    """Predictions of some rows.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns below.
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2) or None
        An interval of each true probability.
    actual : ndarray of shape (m,)
        Index of the row's class, -1 for a class that training did not see, ``NO_CLASS`` (the
        default) where the class is not given.
    weights : ndarray of shape (m,)
        Weight of each row in every score, 1 by default. A row of weight 0 is in no score.
    groups : ndarray of shape (m,) or None
        Numbers of the groups that the rows belong to.
    """

    classes: np.ndarray
    probabilities: np.ndarray
    intervals: Any = None
    actual: Any = None
    weights: Any = None
    groups: Any = None

    def __post_init__(self) -> None:
        if self.actual is None:
            self.actual = np.full(len(self.probabilities), NO_CLASS)
        if self.weights is None:
            self.weights = np.ones(len(self.probabilities))

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(name) for name in self.classes.tolist()]

    @cached_property
    def zones(self) -> np.ndarray:
        """Index of the class whose interval lies above all others, -1 where none does."""
        return find_zones(self.intervals)

    @property
    def winners(self) -> np.ndarray:
        """Index of the most probable class of each row."""
        return self.probabilities.argmax(axis=1)

    @property
    def expected_loss(self) -> np.ndarray:
        """Probability that the most probable class is wrong: the expected 0-1 loss."""
        return 1.0 - self.probabilities.max(axis=1)

    @property
    def judged(self) -> np.ndarray:
        """Positions of the rows that are scored: their class is given, their weight is not 0."""
        return np.flatnonzero((self.actual != NO_CLASS) & (self.weights > 0))

    @property
    def known(self) -> np.ndarray:
        """Positions of the scored rows whose class training has seen."""
        return np.flatnonzero((self.actual >= 0) & (self.weights > 0))

    @property
    def scores(self) -> Scores | None:
        """Scores of the rows whose class is given, None if there are none."""
        rows = self.judged
        if not len(rows):
            return None
        return score(self.probabilities[rows], self.actual[rows], self.weights[rows])

    def groups_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the groups of some rows, None where rows belong to none."""
        return None if self.groups is None else self.groups[rows]

    def draw(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about ``n_rows`` of the ``known`` rows, drawn by class, and weights for them.

        The weights give the classes the proportions that they have among all known rows.
        """
        known = self.known
        frequencies = np.bincount(self.actual[known], self.weights[known], len(self.classes))
        rows = known[draw_rows(self.actual[known], n_rows)]
        return rows, weigh_rows(self.actual[rows], frequencies, self.weights[rows])

    @property
    def share_decided(self) -> float:
        """Weighted proportion of the rows that are decided: one interval lies above all others."""
        return float(np.average(self.zones >= 0, weights=self.weights))

    @property
    def decided(self) -> dict[str, Any] | None:
        """Number of scored rows that are decided, their expected and observed error, or None."""
        rows = self.judged[self.zones[self.judged] >= 0]
        if not len(rows):
            return None
        weights = self.weights[rows]
        wrong = self.winners[rows] != self.actual[rows]
        return {
            "n": len(rows),
            "expected": float(np.average(self.expected_loss[rows], weights=weights)),
            "error": float(np.average(wrong, weights=weights)),
        }

    def find_misclassified(self) -> np.ndarray:
        """Return the positions of the rows of another class than predicted, the surest first."""
        wrong = np.flatnonzero((self.winners != self.actual) & (self.actual != NO_CLASS))
        return wrong[np.argsort(self.expected_loss[wrong], kind="stable")]

    def find_undecided(self) -> np.ndarray:
        """Return the positions of the undecided rows, the likeliest to be wrong first."""
        rows = np.flatnonzero(self.zones < 0)
        return rows[np.argsort(-self.expected_loss[rows], kind="stable")]
