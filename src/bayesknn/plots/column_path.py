"""The path of a forward choice of columns: the score with each column that joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.style import COLOURS, GREY, INK, new_axes, tidy

_TITLES = {
    "evidence": "log evidence",
    "pseudo-evidence": "log pseudo-evidence",
    "loo": "sum of leave-one-out log scores",
}


class ColumnPathDisplay:
    """Scores along the path, and those of the columns that were refused at its end.

    Parameters
    ----------
    names : sequence of str
        The chosen columns, in the order in which they came.
    scores, errors : array-like of shape (n_chosen,)
    null_score : float
        The score without any column: that of the class frequencies.
    refused : dict of str to (float, float)
        Score and error of the columns that were tried last and not taken.
    label : str
        What the score is.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.
    """

    def __init__(
        self,
        names: Sequence[str],
        scores: Any,
        errors: Any,
        null_score: float,
        refused: Mapping[str, tuple[float, float]],
        label: str = "score",
    ) -> None:
        self.names = list(names)
        self.scores = np.asarray(scores, dtype=float)
        self.errors = np.asarray(errors, dtype=float)
        self.null_score = null_score
        self.refused = refused
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ColumnPathDisplay:
        """Draw the path of a fitted selector.

        Parameters
        ----------
        estimator : ColumnSelector
            Fitted.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ColumnPathDisplay
        """
        check_is_fitted(estimator)
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"column {j}" for j in range(estimator.n_features_in_)]
        scores, errors = estimator.candidate_scores_, estimator.candidate_errors_
        refused = {names[j]: (scores[j], errors[j]) for j in np.flatnonzero(np.isfinite(scores))}
        return cls(
            [names[j] for j in estimator.order_],
            estimator.scores_,
            estimator.score_errors_,
            estimator.null_score_,
            refused,
            _TITLES[estimator.by],
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ColumnPathDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ColumnPathDisplay
            Itself.
        """
        self.figure_, ax = new_axes(ax)
        self.ax_, at = ax, np.arange(len(self.names) + 2)
        ax.plot(at[:-1], np.r_[self.null_score, self.scores], color=INK, linewidth=1.2)
        style = {"fmt": "o", "color": COLOURS[0], "label": "chosen", "capsize": 3}
        ax.errorbar(at[1:-1], self.scores, _bars(self.errors), **style)
        labels = ["none", *(f"+ {name}" for name in self.names)]
        if self.refused:
            values, errors = np.array(list(self.refused.values())).T
            style |= {"fmt": "x", "color": GREY, "label": "refused"}
            ax.errorbar(np.full(len(values), at[-1]), values, _bars(errors), **style)
            best = list(self.refused)[values.argmax()]
            place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(best, (at[-1], values.max()), **place)
            labels.append("+ any other")
        ax.set_xticks(at[: len(labels)], labels)
        ax.set_ylabel(self.label)
        ax.margins(x=0.1)
        ax.legend(frameon=False, loc="lower right")
        tidy(ax)
        return self


def _bars(errors: np.ndarray) -> np.ndarray | None:
    """Return errors if there are any: bars without length would show in the legend."""
    return errors if np.any(errors) else None
