"""Figures of the choice of k by leave-one-out error and of the selection of columns.

The figure of the leave-one-out error is Figure 2 of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import params_of_fit
from bayesknn.plots.style import COLOURS, GREY, INK, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLES = {
    "evidence": "log evidence",
    "pseudo-evidence": "log pseudo-evidence",
    "loo": "sum of leave-one-out log scores",
}


class LeaveOneOutDisplay:
    """Leave-one-out error rate against k, with a marker at every k that minimises it.

    Parameters
    ----------
    errors : array-like of shape (k_max,)
        Leave-one-out error rates; entry k - 1 is the rate at k.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> from bayesknn import ClassicalKNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.plots import LeaveOneOutDisplay
    >>> ripley = load_ripley()
    >>> clf = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    >>> LeaveOneOutDisplay(clf.loo_errors_).best_k
    array([17, 18, 35, 36, 45, 46, 51, 52, 53, 54])
    """

    figure_: Figure
    ax_: Axes

    def __init__(self, errors: Any) -> None:
        self.errors: np.ndarray = np.asarray(errors, dtype=float)

    @property
    def best_k(self) -> np.ndarray:
        """All values of k that minimise the error rate, in increasing order."""
        return np.flatnonzero(self.errors == self.errors.min()) + 1

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LeaveOneOutDisplay:
        """Draw the leave-one-out error curve of a fitted classifier.

        Parameters
        ----------
        estimator : ClassicalKNeighborsClassifier
            Fitted classifier.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        LeaveOneOutDisplay
        """
        check_is_fitted(estimator, "loo_errors_")
        return cls(estimator.loo_errors_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> LeaveOneOutDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        LeaveOneOutDisplay
            The display itself.
        """
        self.figure_, self.ax_ = new_axes(ax)
        k = np.arange(1, len(self.errors) + 1)
        best, lowest = self.best_k, self.errors.min()
        self.ax_.plot(k, self.errors, color=INK, linewidth=1.2, drawstyle="steps-mid")
        name = f"minimum {lowest:.3f}, at {len(best)} value{'s' * (len(best) > 1)} of k"
        self.ax_.plot(best, self.errors[best - 1], "o", color=COLOURS[5], markersize=5, label=name)
        self.ax_.set(xlabel="number of neighbours k", ylabel="leave-one-out error rate")
        self.ax_.margins(x=0.02)
        tidy(self.ax_)
        self.ax_.legend(frameon=False, loc="upper center")
        return self


@dataclass(eq=False, repr=False)
class ColumnPathDisplay:
    """Scores during a forward selection of columns.

    The horizontal axis lists the columns in the order in which they were added. At its right end
    are the scores with each column that was tried in the last step and not added.

    Parameters
    ----------
    names : sequence of str
        Names of the selected columns, in the order in which they were added.
    scores, errors : array-like of shape (n_chosen,)
        Score after each column was added, and its standard error.
    null_score : float
        Score of the class frequencies, which use no column.
    refused : dict of str to (float, float)
        Score and standard error with each column that was tried in the last step and not added.
    label : str
        Name of the score, for the vertical axis.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.
    """

    names: Sequence[str]
    scores: Any
    errors: Any
    null_score: float
    refused: Mapping[str, tuple[float, float]]
    label: str = "score"
    figure_: Figure = field(init=False, repr=False, compare=False)
    ax_: Axes = field(init=False, repr=False, compare=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ColumnPathDisplay:
        """Draw the scores of a fitted selector.

        Parameters
        ----------
        estimator : ColumnSelector
            Fitted selector.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ColumnPathDisplay
        """
        check_is_fitted(estimator)
        names = _name_columns(estimator)
        scores, errors = estimator.candidate_scores_, estimator.candidate_errors_
        refused = {names[j]: (scores[j], errors[j]) for j in np.flatnonzero(np.isfinite(scores))}
        return cls(
            [names[j] for j in estimator.order_],
            estimator.scores_,
            estimator.score_errors_,
            estimator.null_score_,
            refused,
            _TITLES[params_of_fit(estimator)["by"]],
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ColumnPathDisplay:
        """Draw the scores, with one standard error either way.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ColumnPathDisplay
            The display itself.
        """
        self.figure_, ax = new_axes(ax)
        self.ax_, at = ax, np.arange(len(self.names) + 2)
        ax.plot(at[:-1], np.r_[self.null_score, self.scores], color=INK, linewidth=1.2)
        style = {"fmt": "o", "color": COLOURS[0], "label": "chosen", "capsize": 3}
        ax.errorbar(at[1:-1], self.scores, _bars(self.errors), **style)
        labels = ["none", *(f"+ {name}" for name in self.names)]
        if self.refused:
            values, errors = np.array(list(self.refused.values())).T
            style |= {"fmt": "x", "color": GREY, "label": "not added"}
            ax.errorbar(np.full(len(values), at[-1]), values, _bars(errors), **style)
            best = list(self.refused)[values.argmax()]
            offset = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(best, (at[-1], values.max()), **offset)
            labels.append("+ any other")
        ax.set_xticks(at[: len(labels)], labels)
        ax.set_ylabel(self.label)
        ax.margins(x=0.1)
        ax.legend(frameon=False, loc="lower right")
        tidy(ax)
        return self


@dataclass(eq=False, repr=False)
class ColumnSetsDisplay:
    """Posterior distribution over sets of columns.

    The horizontal axis is divided into one interval for each set, the most probable set first, of
    a length equal to the posterior probability of the set. The row of a column is filled in the
    intervals of the sets that contain the column, so that its total filled length is the inclusion
    probability of the column. Sets after the first 99 % of the probability are not drawn.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    probabilities : dict of tuple of int to float
        P(set | y) of each set of column indices, the most probable set first.
    inclusion, inclusion_errors : array-like of shape (n_columns,)
        Posterior inclusion probability of each column and its Monte Carlo standard error.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> from bayesknn.plots import ColumnSetsDisplay
    >>> display = ColumnSetsDisplay(["a", "b"], {(0,): 0.75, (): 0.25}, [0.75, 0.0], [0.0, 0.0])
    >>> display.plot().ax_.get_xlabel()
    'posterior probability, summed over sets'
    """

    names: Sequence[str]
    probabilities: Mapping[tuple[int, ...], float]
    inclusion: Any
    inclusion_errors: Any
    figure_: Figure = field(init=False, repr=False, compare=False)
    ax_: Axes = field(init=False, repr=False, compare=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ColumnSetsDisplay:
        """Draw the posterior over sets of a fitted selector.

        Parameters
        ----------
        estimator : ColumnSelector
            Selector fitted with ``by="evidence"`` or ``by="pseudo-evidence"``.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ColumnSetsDisplay
        """
        check_is_fitted(estimator)
        return cls(
            _name_columns(estimator),
            estimator.set_probabilities_,
            estimator.inclusion_probabilities_,
            estimator.inclusion_errors_,
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ColumnSetsDisplay:
        """Draw the posterior over sets.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ColumnSetsDisplay
            The display itself.
        """
        self.figure_, self.ax_ = new_axes(ax)
        ends = np.cumsum(list(self.probabilities.values()))
        for columns, right, width in zip(
            self.probabilities, ends, self.probabilities.values(), strict=True
        ):
            if right - width > 0.99:
                break
            for column in columns:
                bar = [(right - width, width)]
                self.ax_.broken_barh(
                    bar, (column - 0.4, 0.8), color=COLOURS[0], edgecolor="white", linewidth=0.3
                )
        values = zip(self.names, self.inclusion, self.inclusion_errors, strict=True)
        labels = [f"{name}  {p:.2f}" + f" ± {error:.2f}" * bool(error) for name, p, error in values]
        self.ax_.set_yticks(np.arange(len(labels)), labels)
        self.ax_.set(
            xlim=(0, 1), ylim=(len(labels) - 0.5, -0.5),
            xlabel="posterior probability, summed over sets",
        )  # fmt: skip
        tidy(self.ax_)
        return self


def _name_columns(estimator: Any) -> list[str]:
    """Return the names of the columns that a selector was fitted to, or "column 0" and so on."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"column {j}" for j in range(estimator.n_features_in_)] if names is None else [*names]


def _bars(errors: Any) -> Any:
    """Return the errors, or None if all are 0, which keeps error bars out of the legend."""
    return errors if np.any(errors) else None
