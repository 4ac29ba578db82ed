"""Leave-one-out error against k (the paper's Figure 2)."""

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

    def __init__(self, errors: Any) -> None:
        self.errors = np.asarray(errors, dtype=float)

    @property
    def best_k(self) -> np.ndarray:
        """Every k with the least error, in increasing order."""
        return np.flatnonzero(self.errors == self.errors.min()) + 1

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LeaveOneOutDisplay:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : ClassicalKNeighborsClassifier
            Fitted.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

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
        name = f"minimum {lowest:.3f}, at {len(best)} value{'s' * (len(best) > 1)} of k"
        self.ax_.plot(best, self.errors[best - 1], "o", color=COLOURS[5], markersize=5, label=name)
        self.ax_.set(xlabel="number of neighbours k", ylabel="leave-one-out error rate")
        self.ax_.margins(x=0.02)
        tidy(self.ax_)
        self.ax_.legend(frameon=False, loc="upper center")
        return self
