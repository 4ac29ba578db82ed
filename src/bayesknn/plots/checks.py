"""Whether a model is borne out: its probabilities by what came true, its draws by the labels.

The reliability diagram has binomial intervals; the predictive check compares the labels with labels
that the fitted model draws.
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
    """Observed frequency over mean stated probability, bin by bin, with the number of points.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
        Of the bins of stated probability.
    predicted, observed : array-like of shape (n_bins,)
        Mean probability stated in each bin and frequency of what it was stated of; NaN for an
        empty bin.
    counts : array-like of shape (n_bins,)
        Points in each bin.
    name : str
        Of what the probabilities were stated.
    level : float, default=0.95
        Of the binomial (Clopper-Pearson) intervals of the frequencies.
    effective_counts : array-like of shape (n_bins,), optional
        Equally weighted points that give intervals of the same width; ``counts`` by default.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_bins,)
        Ends of the intervals.
    figure_, axes_ : matplotlib objects
        Set by :meth:`plot`: the diagram, and the counts below it.

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
        n_equal = self.counts if effective_counts is None else np.asarray(effective_counts)
        self.lower, self.upper = _binomial_intervals(self.observed, n_equal, level)

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
        """Bin stated probabilities, and draw.

        Parameters
        ----------
        y : array-like of shape (m,)
            The labels that came true.
        probabilities : array-like of shape (m, n_classes)
            Class probabilities stated beforehand.
        classes : array-like of shape (n_classes,), optional
            Labels of the columns; the sorted labels of ``y`` by default.
        kind : {"auto", "top"}, default="auto"
            ``"top"``: of the class with the highest probability, whatever it is; ``"auto"``: of
            the second class where there are two, else ``"top"``.
        edges : int or array-like, default=10
            How many bins of equal width, or the edges of the bins.
        level : float, default=0.95
            Of the binomial intervals.
        sample_weight : array-like of shape (m,), optional
            Weights of the points in both means, all 1 by default. Intervals are those of
            ``(sum w)^2 / sum w^2`` points.
        axes : sequence of two matplotlib Axes, optional
            For the diagram and the counts; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
        """
        classes = np.unique(y) if classes is None else np.asarray(classes)
        probabilities = np.asarray(probabilities, dtype=float)
        if np.ndim(edges) == 0:
            edges = np.linspace(0.0, 1.0, check_count(edges, "edges") + 1)
        stated, came_true, name = _events(np.asarray(y), probabilities, classes, kind)
        if stated.min() < edges[0] or stated.max() > edges[-1]:
            raise ValueError(
                f"probabilities from {stated.min():g} to {stated.max():g} do not lie in bins from "
                f"{edges[0]:g} to {edges[-1]:g}"
            )
        counts, _ = np.histogram(stated, edges)
        n_bins = len(counts)
        at = np.minimum(np.searchsorted(edges, stated, "right") - 1, n_bins - 1)
        w = np.ones(len(stated)) if sample_weight is None else np.asarray(sample_weight, float)
        sizes, squares = np.bincount(at, w, n_bins), np.bincount(at, w**2, n_bins)
        with np.errstate(invalid="ignore"):
            predicted = np.bincount(at, w * stated, n_bins) / sizes
            observed = np.bincount(at, w * came_true, n_bins) / sizes
            n_equal = sizes**2 / squares
        return cls(
            edges, predicted, observed, counts, name, level=level, effective_counts=n_equal
        ).plot(axes=axes)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """Predict at points whose labels are known, bin the probabilities, and draw.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array-like or frame of shape (m, p)
            Points that the classifier has not seen.
        y : array-like of shape (m,)
            Their labels.
        **options
            As for :meth:`from_predictions`.

        Returns
        -------
        ReliabilityDisplay
        """
        check_is_fitted(estimator)
        return cls.from_predictions(y, estimator.predict_proba(X), estimator.classes_, **options)

    @classmethod
    def from_leave_one_out(cls, estimator: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """Bin the leave-one-out probabilities of the training points, and draw.

        Parameters
        ----------
        estimator : BayesianKNeighborsClassifier
            Fitted.
        y : array-like of shape (n,)
            The labels of the training points.
        **options
            As for :meth:`from_predictions`.

        Returns
        -------
        ReliabilityDisplay
        """
        check_is_fitted(estimator, "loo_proba_")
        return cls.from_predictions(y, estimator.loo_proba_, estimator.classes_, **options)

    def plot(self, *, axes: Any = None) -> ReliabilityDisplay:
        """Draw the diagram and the counts.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, optional
            For the diagram and the counts; a new figure by default.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        self.figure_, grid = new_grid(
            axes, 2, 1, sharex=True, height_ratios=(3, 1), figsize=(4.8, 5.2)
        )
        diagram, below = self.axes_ = grid[:, 0]
        ends = [self.edges[0], self.edges[-1]]
        diagram.plot(ends, ends, color=INK, linewidth=0.8, zorder=1)
        there = self.counts > 0
        x, y = self.predicted[there], self.observed[there]
        # Rounding may put the frequency a hair outside its interval.
        bar_lengths = np.maximum([y - self.lower[there], self.upper[there] - y], 0)
        diagram.errorbar(
            x, y, bar_lengths, fmt="o-", color=COLOURS[0], linewidth=1.2, markersize=4.5,
            markeredgecolor=INK, markeredgewidth=0.5, elinewidth=0.9, label=self.name,
        )  # fmt: skip
        below.stairs(self.counts, self.edges, fill=True, color=tint(0.3)[0])
        below.stairs(self.counts, self.edges, color=COLOURS[0], linewidth=1.2)
        diagram.set(ylabel="observed frequency", ylim=(-0.03, 1.03))
        diagram.legend(frameon=False, loc="upper left", fontsize="small")
        below.set(xlabel="stated probability", ylabel="points", xlim=ends)
        for ax in self.axes_:
            tidy(ax)
        return self


def _events(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, kind: str) -> Any:
    """Return stated probabilities, whether each came true, and what they were stated of."""
    check_choice(kind, "kind", ("auto", "top"))
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"{len(y)} labels and {len(classes)} classes do not fit probabilities of shape "
            f"{probabilities.shape}"
        )
    if not len(y):
        raise ValueError("there are no points")
    check_known(y, classes)
    if kind == "top" or len(classes) > 2:
        top = probabilities.argmax(axis=1)
        return probabilities.max(axis=1), classes[top] == y, "likeliest class"
    return probabilities[:, 1], y == classes[1], f"class {classes[1]}"


def _binomial_intervals(observed: np.ndarray, counts: np.ndarray, level: float) -> Any:
    """Return the Clopper-Pearson intervals of frequencies."""
    hits, tail = observed * counts, (1 - level) / 2
    with np.errstate(invalid="ignore"):
        lower = np.where(hits > 0, betaincinv(hits, counts - hits + 1, tail), 0.0)
        upper = np.where(hits < counts, betaincinv(hits + 1, counts - hits, 1 - tail), 1.0)
    return lower, upper


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

    figure_: Figure
    axes_: np.ndarray

    def __init__(self, statistics: Mapping[str, Statistic]) -> None:
        self.statistics: dict[str, Statistic] = dict(statistics)

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
