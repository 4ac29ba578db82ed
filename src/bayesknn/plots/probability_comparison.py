"""Class probabilities of two methods against each other (the paper's Figure 'proba-compa')."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.plots.style import COLOURS, GREY, INK, MARKERS, check_classes, new_axes, tidy


class ProbabilityComparisonDisplay:
    """Class probabilities of one method over those of another, point by point.

    Parameters
    ----------
    first, second : array-like of shape (m, n_classes)
        Class probabilities of the two methods at the same points.
    classes : array-like of shape (n_classes,), optional
        Their labels, at most eight; 0, 1, ... by default.
    names : tuple of two str, default=("first", "second")
        Of the methods.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> from bayesknn.plots import ProbabilityComparisonDisplay
    >>> first, second = [[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.45, 0.55]]
    >>> ProbabilityComparisonDisplay(first, second).n_different
    1
    """

    def __init__(
        self, first: Any, second: Any, classes: Any = None, names: Any = ("first", "second")
    ) -> None:
        self.first = np.asarray(first, dtype=float)
        self.second = np.asarray(second, dtype=float)
        if self.first.ndim != 2 or self.first.shape != self.second.shape:
            raise ValueError(
                "the probabilities must be of the same points and classes, got shapes "
                f"{self.first.shape} and {self.second.shape}"
            )
        self.classes = check_classes(np.arange(self.first.shape[1]) if classes is None else classes)
        self.names = tuple(names)

    @property
    def n_different(self) -> int:
        """Points that the two methods give to different classes."""
        return int(np.count_nonzero(self.first.argmax(axis=1) != self.second.argmax(axis=1)))

    def plot(self, *, ax: Any = None) -> ProbabilityComparisonDisplay:
        """Draw the second method's probabilities over the first's.

        Of two classes the second is drawn, the other being its mirror image; of more, all are.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ProbabilityComparisonDisplay
            Itself.
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(4.8, 4.8))
        self.ax_.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
        two = len(self.classes) == 2
        if two:
            # Beyond these lines from each other, the methods disagree on the class.
            for line in (self.ax_.axhline, self.ax_.axvline):
                line(0.5, color=GREY, linewidth=0.6, linestyle=":", zorder=0)
        for g in range(1 if two else 0, len(self.classes)):
            self.ax_.plot(
                self.first[:, g],
                self.second[:, g],
                MARKERS[g],
                color=COLOURS[g],
                markersize=3.5,
                markeredgewidth=0.3,
                markeredgecolor="white",
                alpha=0.8,
                label=f"class {self.classes[g]}",
            )
        what = f"P(class {self.classes[1]})" if two else "class probability"
        self.ax_.set(
            xlabel=f"{what}, {self.names[0]}",
            ylabel=f"{what}, {self.names[1]}",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        self.ax_.set_title(
            f"{self.n_different} of {len(self.first)} points change class", fontsize="medium"
        )
        if not two:
            self.ax_.legend(frameon=False, loc="upper left", fontsize="small")
        tidy(self.ax_)
        return self
