"""Figures that check a fitted model against the observed labels.

The reliability diagram compares predicted probabilities with observed frequencies. The predictive
check compares statistics of the observed labels with those of labels drawn from the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv
from sklearn.utils.validation import check_is_fitted

from bayesknn._utils.checks import check_choice, check_count, check_level
from bayesknn.criticism import Statistic, predictive_statistics
from bayesknn.plots.style import COLOURS, INK, check_known, new_grid, tidy, tint

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ReliabilityDisplay:
    """Reliability diagram: observed frequency against mean predicted probability in bins.

    A histogram below the diagram shows the number of points in each bin.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
        Edges of the bins of predicted probability.
    predicted, observed : array-like of shape (n_bins,)
        Mean predicted probability of an event, and observed frequency of the event, in each bin;
        NaN for an empty bin.
    counts : array-like of shape (n_bins,)
        Number of points in each bin.
    name : str
        Name of the event, such as "class 2", for the legend.
    level : float, default=0.95
        Level of the binomial (Clopper-Pearson) intervals of the frequencies.
    effective_counts : array-like of shape (n_bins,), optional
        Effective number of points in each bin, from which the intervals are computed, if the points
        have unequal weights; ``counts`` by default.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_bins,)
        Bounds of the intervals of the frequencies.
    figure_, axes_ : matplotlib Figure, ndarray of two Axes
        Set by :meth:`plot`: the diagram and the histogram below it.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.plots import ReliabilityDisplay
    >>> second = np.array([0.1, 0.2, 0.9, 0.8])
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 1, 1, 1], np.column_stack([1 - second, second]), edges=2)
    >>> display.observed.tolist(), display.counts.tolist()
    ([0.5, 1.0], [2, 2])
    """

    lower: np.ndarray
    upper: np.ndarray
    figure_: Figure
    axes_: np.ndarray

    def __init__(
        self,
        edges: Any,
        predicted: Any,
        observed: Any,
        counts: Any,
        name: str,
        *,
        level: float = 0.95,
        effective_counts: Any = None,
    ) -> None:
        self.edges: np.ndarray = np.asarray(edges, dtype=float)
        self.predicted: np.ndarray = np.asarray(predicted, dtype=float)
        self.observed: np.ndarray = np.asarray(observed, dtype=float)
        self.counts: np.ndarray = np.asarray(counts)
        self.name = name
        self.level: float = check_level(level)
        n_effective = self.counts if effective_counts is None else np.asarray(effective_counts)
        self.lower, self.upper = _binomial_intervals(self.observed, n_effective, level)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        classes: Any = None,
        *,
        kind: str = "auto",
        edges: Any = 10,
        level: float = 0.95,
        sample_weight: Any = None,
        axes: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability diagram of predicted class probabilities.

        Parameters
        ----------
        y : array-like of shape (m,)
            Observed labels.
        probabilities : array-like of shape (m, n_classes)
            Predicted class probabilities of the same points.
        classes : array-like of shape (n_classes,), optional
            Class of each column; the distinct labels in ``y``, sorted, by default.
        kind : {"auto", "top"}, default="auto"
            Event whose probability is binned. ``"top"``: the class with the highest predicted
            probability is observed. ``"auto"``: the second class is observed, if there are two
            classes; otherwise as ``"top"``.
        edges : int or array-like, default=10
            Number of bins of equal width on [0, 1], or the edges of the bins.
        level : float, default=0.95
            Level of the binomial intervals of the frequencies.
        sample_weight : array-like of shape (m,), optional
            Weights w of the points in the mean probability and the frequency, all 1 by default.
            The intervals are computed for an effective number of ``(sum w)^2 / sum w^2`` points.
        axes : sequence of two matplotlib Axes, optional
            Axes for the diagram and the histogram; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
        """
        classes = np.unique(y) if classes is None else np.asarray(classes)
        probabilities = np.asarray(probabilities, dtype=float)
        if np.ndim(edges) == 0:
            edges = np.linspace(0.0, 1.0, check_count(edges, "edges") + 1)
        p, is_observed, name = _events(np.asarray(y), probabilities, classes, kind)
        if p.min() < edges[0] or p.max() > edges[-1]:
            raise ValueError(
                f"probabilities from {p.min():g} to {p.max():g} do not lie in the bins, which "
                f"range from {edges[0]:g} to {edges[-1]:g}"
            )
        counts, _ = np.histogram(p, edges)
        n_bins = len(counts)
        at = np.minimum(np.searchsorted(edges, p, "right") - 1, n_bins - 1)
        w = np.ones(len(p)) if sample_weight is None else np.asarray(sample_weight, float)
        sizes, squares = np.bincount(at, w, n_bins), np.bincount(at, w**2, n_bins)
        with np.errstate(invalid="ignore"):
            predicted = np.bincount(at, w * p, n_bins) / sizes
            observed = np.bincount(at, w * is_observed, n_bins) / sizes
            n_effective = sizes**2 / squares
        return cls(
            edges, predicted, observed, counts, name, level=level, effective_counts=n_effective
        ).plot(axes=axes)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """Draw the reliability diagram of a classifier at points whose labels are known.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with ``predict_proba``.
        X : array-like or frame of shape (m, p)
            Points that the classifier was not fitted to.
        y : array-like of shape (m,)
            Observed labels of these points.
        **options
            Further arguments of :meth:`from_predictions`.

        Returns
        -------
        ReliabilityDisplay
        """
        check_is_fitted(estimator)
        return cls.from_predictions(y, estimator.predict_proba(X), estimator.classes_, **options)

    @classmethod
    def from_leave_one_out(cls, estimator: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """Draw the reliability diagram of the leave-one-out probabilities of the training points.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted classifier.
        y : array-like of shape (n,)
            Labels of the training points, in the order of ``fit``.
        **options
            Further arguments of :meth:`from_predictions`.

        Returns
        -------
        ReliabilityDisplay
        """
        check_is_fitted(estimator, "loo_proba_")
        return cls.from_predictions(y, estimator.loo_proba_, estimator.classes_, **options)

    def plot(self, *, axes: Any = None) -> ReliabilityDisplay:
        """Draw the diagram and the histogram.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional
            Axes for the diagram and the histogram; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        self.figure_, grid = new_grid(
            axes, 2, 1, sharex=True, height_ratios=(3, 1), figsize=(4.8, 5.2)
        )
        diagram, below = self.axes_ = grid[:, 0]
        ends = [self.edges[0], self.edges[-1]]
        diagram.plot(ends, ends, color=INK, linewidth=0.8, zorder=1)
        is_filled = self.counts > 0
        x, y = self.predicted[is_filled], self.observed[is_filled]
        # errorbar rejects negative lengths, which rounding errors produce where a frequency equals
        # the bound of its interval.
        bar_lengths = np.maximum([y - self.lower[is_filled], self.upper[is_filled] - y], 0)
        diagram.errorbar(
            x, y, bar_lengths, fmt="o-", color=COLOURS[0], linewidth=1.2, markersize=4.5,
            markeredgecolor=INK, markeredgewidth=0.5, elinewidth=0.9, label=self.name,
        )  # fmt: skip
        below.stairs(self.counts, self.edges, fill=True, color=tint(0.3)[0])
        below.stairs(self.counts, self.edges, color=COLOURS[0], linewidth=1.2)
        diagram.set(ylabel="observed frequency", ylim=(-0.03, 1.03))
        diagram.legend(frameon=False, loc="upper left", fontsize="small")
        below.set(xlabel="predicted probability", ylabel="points", xlim=ends)
        for ax in self.axes_:
            tidy(ax)
        return self


def _events(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, kind: str) -> Any:
    """Return the predicted probability of the event of ``kind``, its indicator and its name.

    The first two have shape (m,); the indicator is whether the event was observed at each point.
    """
    check_choice(kind, "kind", ("auto", "top"))
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"probabilities must have shape ({len(y)}, {len(classes)}), a row for each label in y "
            f"and a column for each class, got {probabilities.shape}"
        )
    if not len(y):
        raise ValueError("a reliability diagram needs at least one point, y is empty")
    check_known(y, classes)
    if kind == "top" or len(classes) > 2:
        best = probabilities.argmax(axis=1)
        return probabilities.max(axis=1), classes[best] == y, "most probable class"
    return probabilities[:, 1], y == classes[1], f"class {classes[1]}"


def _binomial_intervals(observed: np.ndarray, counts: np.ndarray, level: float) -> Any:
    """Return lower and upper bounds of Clopper-Pearson intervals for observed frequencies."""
    hits, tail = observed * counts, (1 - level) / 2
    with np.errstate(invalid="ignore"):
        lower = np.where(hits > 0, betaincinv(hits, counts - hits + 1, tail), 0.0)
        upper = np.where(hits < counts, betaincinv(hits + 1, counts - hits, 1 - tail), 1.0)
    return lower, upper


class PredictiveCheckDisplay:
    """Posterior predictive check: statistics of the observed labels and of draws from the model.

    Each panel has the histogram of one statistic over label vectors drawn from the fitted model,
    and a vertical line at its value for the observed labels.

    Parameters
    ----------
    statistics : mapping of str to Statistic
        Result of :func:`bayesknn.criticism.predictive_statistics`; the first sixteen are drawn.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, ndarray of Axes
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

    figure_: Figure
    axes_: np.ndarray

    def __init__(self, statistics: Mapping[str, Statistic]) -> None:
        self.statistics: dict[str, Statistic] = dict(statistics)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_draws: int = 500, random_state: Any = None, axes: Any = None
    ) -> PredictiveCheckDisplay:
        """Draw label vectors from a fitted classifier and plot their statistics.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Classifier fitted with the coherent likelihood.
        n_draws : int, default=500
            Number of label vectors drawn from the model.
        random_state : None, int, SeedSequence, Generator or RandomState
        axes : sequence of matplotlib Axes, optional
            One axes for each statistic, at most sixteen; a new figure by default.

        Returns
        -------
        PredictiveCheckDisplay
        """
        return cls(predictive_statistics(estimator, n_draws, random_state)).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> PredictiveCheckDisplay:
        """Draw a histogram for each statistic, with the observed value as a vertical line.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One axes for each statistic, at most sixteen; a new figure by default.

        Returns
        -------
        PredictiveCheckDisplay
            The display itself.
        """
        # Sixteen panels fit on one figure. Statistics of single classes come last, so with many
        # classes it is the later classes that are omitted.
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
