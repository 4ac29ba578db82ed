"""Leave-one-out error against k (the paper's Figure 2), over the posterior of k if there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn.plots.style import COLOURS, INK, new_axes, tidy


class LeaveOneOutDisplay:
    """The leave-one-out error curve, every k that attains its minimum marked.

    Parameters
    ----------
    errors : array-like of shape (k_max,)
        Entry k - 1 is the error rate at k.
    k_values, k_probabilities : array-like of shape (n_k,), optional
        A posterior of k, drawn beneath the curve on a scale of its own.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.
    probability_ax_ : matplotlib Axes or None
        That of the posterior of k.

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

    def __init__(self, errors: Any, k_values: Any = None, k_probabilities: Any = None) -> None:
        self.errors = np.asarray(errors, dtype=float)
        if self.errors.ndim != 1 or len(self.errors) == 0:
            raise ValueError(f"errors must hold one rate for each k, got shape {self.errors.shape}")
        if np.shape(k_values) != np.shape(k_probabilities):
            raise ValueError("k_values and k_probabilities must be equally long")
        self.k_values = None if k_values is None else np.asarray(k_values)
        self.k_probabilities = None if k_probabilities is None else np.asarray(k_probabilities)

    @property
    def best_k(self) -> np.ndarray:
        """Every k with the least error, in increasing order."""
        return np.flatnonzero(self.errors == self.errors.min()) + 1

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LeaveOneOutDisplay:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : ClassicalKNeighborsClassifier or BayesianKNeighborsClassifier
            Fitted. Of the Bayesian one the curve is that of the classical vote on its graph, and
            its posterior of k is drawn beneath.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        LeaveOneOutDisplay
        """
        check_is_fitted(estimator)
        if hasattr(estimator, "loo_errors_"):
            return cls(estimator.loo_errors_).plot(ax=ax)
        from bayesknn.classical import find_loo_errors

        labels = estimator.posterior_["observed_data"]["labels"].to_numpy()
        errors = find_loo_errors(estimator.graph_, labels, len(estimator.classes_))
        return cls(errors, estimator.k_values_, estimator.k_probabilities_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> LeaveOneOutDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        LeaveOneOutDisplay
            Itself.
        """
        self.figure_, self.ax_ = new_axes(ax)
        k = np.arange(1, len(self.errors) + 1)
        best, lowest = self.best_k, self.errors.min()
        self.ax_.plot(k, self.errors, color=INK, linewidth=1.2, drawstyle="steps-mid")
        self.ax_.plot(
            best,
            np.full(len(best), lowest),
            "o",
            color=COLOURS[5],
            markersize=5,
            label=f"minimum {lowest:.3f}, at {len(best)} value{'s' * (len(best) > 1)} of k",
        )
        self.ax_.set(xlabel="number of neighbours k", ylabel="leave-one-out error rate")
        self.ax_.margins(x=0.02)
        tidy(self.ax_)
        self.probability_ax_ = None
        if self.k_probabilities is not None:
            self._draw_posterior(self.k_probabilities)
        self.ax_.legend(frameon=False, loc="upper center")
        return self

    def _draw_posterior(self, probabilities: np.ndarray) -> None:
        self.probability_ax_ = ax = self.ax_.twinx()
        bars = ax.bar(self.k_values, probabilities, 0.8, color="#C8C8C8")
        # The bars keep to the lower third and the curve to the rest, each with its own ticks.
        highest = probabilities.max()
        low, high = self.ax_.get_ylim()
        ax.set_ylim(0.0, 3.2 * highest)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.1 * highest])
        ax.set_ylabel("P(k | y)", loc="bottom")
        ticks = [tick for tick in self.ax_.get_yticks() if max(low, 0) <= tick <= high]
        self.ax_.set(ylim=(low - 0.5 * (high - low), high), yticks=ticks)
        # An empty artist of the main axes, so that there is one legend.
        self.ax_.bar([np.nan], [np.nan], color=bars[0].get_facecolor(), label="P(k | y)")
        self.ax_.set_zorder(ax.get_zorder() + 1)
        self.ax_.patch.set_visible(False)
        ax.spines["top"].set_visible(False)
