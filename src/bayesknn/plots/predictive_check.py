"""Labels beside labels that the fitted model draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesknn.criticism import Statistic, predictive_statistics
from bayesknn.plots.style import COLOURS, new_grid, tidy, tint


class PredictiveCheckDisplay:
    """Statistics of the labels, each in the histogram of its values in draws of the model.

    Parameters
    ----------
    statistics : mapping of str to Statistic
        As :func:`bayesknn.criticism.predictive_statistics` returns them; sixteen are drawn.

    Attributes
    ----------
    figure_, axes_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.criticism import Statistic
    >>> from bayesknn.plots import PredictiveCheckDisplay
    >>> display = PredictiveCheckDisplay({"pieces": Statistic(4.0, np.arange(5.0, 25.0))})
    >>> display.plot().axes_.flat[0].get_title(loc="left")
    'smaller than each of the 20 draws'
    """

    def __init__(self, statistics: Mapping[str, Statistic]) -> None:
        self.statistics = dict(statistics)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_draws: int = 500, random_state: Any = None, axes: Any = None
    ) -> PredictiveCheckDisplay:
        """Draw labels from a fitted classifier and show how the observed ones compare.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted by the coherent likelihood.
        n_draws : int, default=500
        random_state : None, int, SeedSequence, Generator or RandomState
        axes : sequence of matplotlib Axes, optional
            One for each statistic, up to sixteen; a new figure by default.

        Returns
        -------
        PredictiveCheckDisplay
        """
        return cls(predictive_statistics(estimator, n_draws, random_state)).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> PredictiveCheckDisplay:
        """Draw a histogram for each statistic, with the observed value as a line.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One for each statistic, up to sixteen; a new figure by default.

        Returns
        -------
        PredictiveCheckDisplay
            Itself.
        """
        # As many panels as fit on one picture: those of the first classes.
        shown = list(self.statistics.items())[:16]
        n_columns = min(len(shown), 3) if axes is None else len(shown)
        n_rows = -(-len(shown) // n_columns)
        size = (3.2 * n_columns, 2.1 * n_rows)
        self.figure_, self.axes_ = new_grid(axes, n_rows, n_columns, figsize=size)
        for ax, (name, statistic) in zip(self.axes_.flat, shown, strict=False):
            ends = np.append(statistic.drawn, statistic.observed)
            bins = np.linspace(ends.min(), ends.max() + 1e-9, 30)
            ax.hist(statistic.drawn, bins, color=tuple(tint(0.45)[0]))
            ax.axvline(statistic.observed, color=COLOURS[5], linewidth=2)
            ax.set_title(str(statistic), loc="left", fontsize="small")
            ax.set(xlabel=name, yticks=[])
            tidy(ax)
            ax.spines["left"].set_visible(False)
        for ax in self.axes_.flat[len(shown) :]:
            ax.set_axis_off()
        return self
