"""What is said about each row: its class, how probable each class is, and whether that is sure.

And how good that was, by error, log-loss and Brier score: leave-one-out probabilities of the
training rows, or the probabilities of test rows whose class is known, are compared with what
happened. The pseudo-likelihood is the leave-one-out log score, so these numbers are the ones that
the model itself is judged by.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas
from scipy.special import ndtri

from bayesknn._utils.checks import category_codes, category_name
from bayesknn.report.reading import as_text, read_table
from bayesknn.report.words import count, free_name, join, percent, shorten

if TYPE_CHECKING:
    from bayesknn.report.model import Model

LEAVE_ONE_OUT = "leave-one-out"
# Stands in ``Predictions.actual`` where a table does not say the class of a row.
NO_CLASS = -2
# Rows that a rare class keeps when rows are drawn. Fewer make its part of a score a matter of
# chance; more take the place of rows of the other classes.
_FEWEST_DRAWN = 50


class Scores(NamedTuple):
    """Scores of class probabilities against the classes that came true.

    Attributes
    ----------
    n : int
        Rows scored.
    error : float
        Share of rows whose most probable class is not theirs.
    log_loss : float
        Mean of minus the log probability of the row's class.
    brier : float
        Mean squared distance between the probabilities and the class's indicator.
    """

    n: int
    error: float
    log_loss: float
    brier: float

    def __str__(self) -> str:
        return (
            f"{self.n:,} rows, error {100 * self.error:.1f} %, log-loss {self.log_loss:.3f}, "
            f"Brier score {self.brier:.3f}"
        )

    def to_json(self) -> dict[str, float | None]:
        """Return the scores by name as JSON has them, None for what is not finite."""
        return {name: each if np.isfinite(each) else None for name, each in self._asdict().items()}


def score(probabilities: np.ndarray, labels: np.ndarray, weights: Any = None) -> Scores:
    """Return the mean scores of class probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    labels : ndarray of shape (n,)
        Class indices; rows with -1, a class that training did not see, count as errors and are
        left out of the other two scores.
    weights : ndarray of shape (n,), optional
        Positive weights of the rows, all 1 by default.

    Returns
    -------
    Scores
    """
    weights = np.ones(len(labels)) if weights is None else weights
    each = score_rows(probabilities, labels)
    known = labels >= 0
    log_loss, brier = np.nan, np.nan
    if known.any():
        log_loss, brier = np.average(each[known, 1:], axis=0, weights=weights[known])
    error = np.average(each[:, 0], weights=weights)
    return Scores(len(labels), float(error), float(log_loss), float(brier))


def score_rows(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Score each row: whether it is wrong, its log-loss and its Brier score.

    Returns
    -------
    ndarray of shape (n, 3)
        The last two are NaN for rows with -1, a class that training did not see.
    """
    scores = np.full((len(labels), 3), np.nan)
    scores[:, 0] = probabilities.argmax(axis=1) != labels
    rows = np.flatnonzero(labels >= 0)
    with np.errstate(divide="ignore"):
        scores[rows, 1] = -np.log(probabilities[rows, labels[rows]])
    indicator = np.eye(probabilities.shape[1])[labels[rows]]
    scores[rows, 2] = ((probabilities[rows] - indicator) ** 2).sum(axis=1)
    return scores


def measure_area(truth: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the weighted area under the ROC curve and its standard error (DeLong).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.predictions import measure_area
    >>> truth, scores = np.array([0, 0, 1, 1]) == 1, np.array([0.1, 0.4, 0.35, 0.8])
    >>> area, error = measure_area(truth, scores, np.ones(4))
    >>> area, round(error, 3)
    (0.75, 0.354)
    """
    values, at = np.unique(scores, return_inverse=True)

    def find_below(mine: np.ndarray) -> np.ndarray:
        """Return the proportion of the rows of the other class with a lower score, ties half."""
        others = np.bincount(at[~mine], weights[~mine], len(values))
        return ((np.cumsum(others) - others / 2) / others.sum())[at[mine]]

    areas = [average(find_below(mine), weights[mine]) for mine in (truth, ~truth)]
    return float(areas[0][0]), float(np.hypot(areas[0][1], areas[1][1]))


def average(values: np.ndarray, weights: np.ndarray) -> tuple[Any, Any]:
    """Return the weighted mean over rows and its standard error.

    Equal weights give the mean and the standard deviation over the square root of n. A single row,
    or an infinite value, has an error of NaN.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, n_columns)
    weights : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.predictions import average
    >>> mean, error = average(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 0.0]))
    >>> float(mean), float(error)
    (0.5, 0.5)
    """
    mean, shares = np.average(values, axis=0, weights=weights), weights / weights.sum()
    n_equal = count_equal(weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = shares**2 @ (values - mean) ** 2 * n_equal / (n_equal - 1)
        return mean, np.sqrt(variance)


def count_equal(weights: np.ndarray) -> float:
    """Return the number of equally weighted rows whose mean is as variable (Kish)."""
    return float(weights.sum() ** 2 / (weights @ weights))


def bound_proportion(hits: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """Return the weighted proportion of hits and the ends of its 95 % interval (Wilson).

    The interval is that of as many equally weighted rows as have the variance of the weighted
    proportion, or as :func:`count_equal` returns if that is fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.predictions import bound_proportion
    >>> [round(each, 4) for each in bound_proportion(np.arange(10) < 2, np.ones(10))]
    [0.2, 0.0567, 0.5098]
    """
    p, shares = float(np.average(hits, weights=weights)), weights / weights.sum()
    variance, n = float(shares**2 @ (hits - p) ** 2), count_equal(weights)
    if variance > 0:
        n = min(n, p * (1 - p) / variance)
    z = float(ndtri(0.975))
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return p, max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def weigh_rows(labels: np.ndarray, proportions: Any, weights: np.ndarray) -> np.ndarray:
    """Return weights of mean 1 that give the classes their proportions.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class indices; negative ones, where the class is not known, have weight 1.
    proportions : ndarray of shape (n_classes,) or None
        Proportions to have; None keeps those of ``weights``.
    weights : ndarray of shape (n,)
        Weights within the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.predictions import weigh_rows
    >>> weigh_rows(np.array([0, 0, 0, 1]), np.array([0.5, 0.5]), np.ones(4)).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    found, known = np.ones(len(labels)), labels >= 0
    if known.any():
        mine, given = labels[known], weights[known]
        if proportions is not None:
            sums = np.bincount(mine, given, len(proportions))
            given = given * (proportions / np.where(sums > 0, sums, 1.0))[mine]
        found[known] = given / given.mean()
    return found


def draw_rows(labels: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the positions of about ``n_rows`` rows, drawn by class; all of them if they are fewer.

    A class has its proportion of the rows, and at least ``_FEWEST_DRAWN`` of its own where the
    classes are few.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.report.predictions import draw_rows
    >>> labels = np.repeat([0, 1], [29_955, 45])
    >>> np.bincount(labels[draw_rows(labels, 1000)])
    array([998,  45])
    """
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    sizes = np.bincount(labels)
    least = max(min(_FEWEST_DRAWN, n_rows // (2 * int(np.count_nonzero(sizes)))), 3)
    wanted = np.minimum(sizes, np.maximum(np.rint(sizes * (n_rows / len(labels))), least))
    order = np.random.default_rng(0).permutation(len(labels))
    parts = [order[labels[order] == g][: int(n)] for g, n in enumerate(wanted)]
    return np.sort(np.concatenate(parts))


@dataclass
class Predictions:
    """Predictions for rows of a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        The rows; its index counts those of their file from 1.
    classes : ndarray of shape (n_classes,)
        In the order of the columns below.
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2)
        An interval of each true probability.
    basis : str
        ``"leave-one-out"`` where a row was predicted from all others of its table, ``"new row"``
        where it was not in training.
    actual : ndarray of shape (m,)
        Number of the class that the row has in its table, -1 for one that training did not see,
        ``NO_CLASS`` where the table has none.
    actual_names : ndarray of shape (m,) or None
        The same as text, empty where there is none.
    identifiers : sequence of str
        Columns of the table that tell its rows apart.
    loss : ndarray of shape (n_classes, n_classes) or None
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    typicality : ndarray of shape (m,) or None
        Share of training rows that lie at least as far from their neighbours.
    is_training : bool
        Whether these are the rows that the classifier was fitted to, not left out.
    weights : ndarray of shape (m,)
        Weight of each row in every score, 1 by default. A row of weight 0 is in no score.
    weighting : str
        A sentence on these weights, empty if all are 1.
    """

    frame: pandas.DataFrame
    classes: np.ndarray
    probabilities: np.ndarray
    intervals: np.ndarray
    basis: str
    actual: Any = None
    actual_names: Any = None
    loss: Any = None
    identifiers: Sequence[str] = ()
    typicality: Any = None
    is_training: bool = False
    weights: Any = None
    weighting: str = ""

    def __post_init__(self) -> None:
        if self.actual is None:
            self.actual = np.full(len(self.rows), NO_CLASS)
        if self.weights is None:
            self.weights = np.ones(len(self.rows))

    @property
    def rows(self) -> np.ndarray:
        """Numbers of the rows in their file."""
        return self.frame.index.to_numpy()

    @cached_property
    def zones(self) -> np.ndarray:
        """Number of the class whose interval lies above all others, -1 where none does."""
        from bayesknn.predictive import find_zones

        return find_zones(self.intervals)

    @property
    def winners(self) -> np.ndarray:
        """Number of the most probable class of each row."""
        return self.probabilities.argmax(axis=1)

    @property
    def judged(self) -> np.ndarray:
        """Positions of the rows that are scored: their class is known, their weight is not 0."""
        return np.flatnonzero((self.actual != NO_CLASS) & (self.weights > 0))

    @property
    def known(self) -> np.ndarray:
        """Positions of the scored rows whose class training has seen."""
        return np.flatnonzero((self.actual >= 0) & (self.weights > 0))

    def draw(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about ``n_rows`` of the ``known`` rows, drawn by class, and weights for them.

        The weights give the classes the proportions that they have among all known rows.
        """
        known = self.known
        frequencies = np.bincount(self.actual[known], self.weights[known], len(self.classes))
        rows = known[draw_rows(self.actual[known], n_rows)]
        return rows, weigh_rows(self.actual[rows], frequencies, self.weights[rows])

    @property
    def words(self) -> str:
        """What the rows are."""
        if self.basis == LEAVE_ONE_OUT:
            return "training rows, each left out in turn"
        return "test rows"

    @property
    def scores(self) -> Scores | None:
        """Scores on the rows whose class is known, if there are any."""
        rows = self.judged
        if not len(rows):
            return None
        return score(self.probabilities[rows], self.actual[rows], self.weights[rows])

    @property
    def n_unlike(self) -> int:
        """How many rows are farther from their neighbours than any training row from its own."""
        if self.typicality is None or self.is_training:
            return 0
        return int(np.sum(self.typicality == 0))

    def describe_doubts(self, target: str, which: str = "row") -> list[str]:
        """Say how many rows are unlike any in training, and of a class that it did not have."""
        doubts, n = [], len(self.rows)
        if self.is_training:
            doubts.append(
                "these are the rows that the model was fitted to, which their own labels help to "
                "predict: results on them say nothing about new rows; leave-one-out results do"
            )
        if unlike := self.n_unlike:
            doubts.append(
                f"{unlike:,} of {count(n, which)} {'is' if unlike == 1 else 'are'} unlike any in "
                "training, farther from the nearest ones than those are from each other"
                + ": check units and columns"
                * (unlike > 0.05 * n)
            )
        if (strange := self.actual == -1).any():
            names = join([repr(shorten(n)) for n in dict.fromkeys(self.actual_names[strange])])
            rows = count(int(strange.sum()), which)
            doubts.append(
                f"{rows} of a class that training did not see ({names} in {target!r}) cannot be "
                "predicted right"
            )
        return doubts

    @property
    def expected_loss(self) -> np.ndarray:
        """Probability that the most probable class is wrong: the expected 0-1 loss."""
        return 1.0 - self.probabilities.max(axis=1)

    def count(self, numbers: np.ndarray) -> dict[str, int]:
        """Return by name how often class numbers occur, those that do."""
        sizes = np.bincount(numbers, minlength=len(self.names)).tolist()
        return {name: n for name, n in zip(self.names, sizes, strict=True) if n}

    def find_misclassified(self) -> np.ndarray:
        """Return the positions of the rows of another class than predicted, the surest first."""
        wrong = np.flatnonzero((self.winners != self.actual) & (self.actual != NO_CLASS))
        return wrong[np.argsort(self.expected_loss[wrong], kind="stable")]

    def find_undecided(self) -> np.ndarray:
        """Return the positions of the undecided rows, the likeliest to be wrong first."""
        rows = np.flatnonzero(self.zones < 0)
        return rows[np.argsort(-self.expected_loss[rows], kind="stable")]

    def decide(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the class of least expected ``loss`` in each row, and that loss."""
        from bayesknn.predictive import decide

        return decide(self.probabilities, self.loss)

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(name) for name in self.classes.tolist()]

    @property
    def share_decided(self) -> float:
        """Weighted proportion of the rows that are decided: one interval lies above all others."""
        return float(np.average(self.zones >= 0, weights=self.weights))

    @property
    def decided(self) -> dict[str, Any] | None:
        """Number of decided rows, their expected and observed error; None if there are none."""
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

    def describe_decided(self, level: float) -> str:
        """Say how many rows are decided, and what that is."""
        share = percent(self.share_decided).replace("\xa0", " ")
        which = "training" if self.basis == LEAVE_ONE_OUT else "new"
        return (
            f"{share} of the {len(self.rows):,} {which} rows are decided: the {100 * level:g} % "
            "interval of one class lies above all others"
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return the table that is written as ``predictions.csv``.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from bayesknn.report.predictions import Predictions
        >>> p = np.array([[0.75, 0.25]])
        >>> intervals = np.stack([p - 0.05, p + 0.05], axis=2)
        >>> frame, classes = pd.DataFrame(index=[1]), np.array(["a", "b"])
        >>> predictions = Predictions(frame, classes, p, intervals, "new row")
        >>> list(predictions.to_frame())[2:6]
        ['class', 'probability a', 'low a', 'high a']
        """
        names = np.array(self.names, dtype=object)
        columns: dict[str, Any] = {"basis": self.basis}
        if self.actual_names is not None:
            columns["actual"] = self.actual_names
        columns["class"] = names[self.winners]
        for g, name in enumerate(names):
            columns[f"probability {name}"] = self.probabilities[:, g]
            columns[f"low {name}"] = self.intervals[:, g, 0]
            columns[f"high {name}"] = self.intervals[:, g, 1]
        # Entry -1 is what stands for an undecided row.
        zones = np.array([*names, free_name("undecided", self.names)], dtype=object)
        columns["zone"] = zones[self.zones]
        columns["expected loss"] = self.expected_loss
        if self.loss is not None:
            decisions, expected = self.decide()
            columns["decision"] = names[decisions]
            columns["decision loss"] = expected
        beside: dict[str, Any] = {"row": self.rows}
        for name in self.identifiers:
            taken = [*columns, *beside]
            beside[free_name(name, taken, "id {}")] = self.frame[name].to_numpy()
        return pandas.DataFrame(beside | columns)


def write_csv(predictions: Predictions) -> str:
    """Return predictions as the text of a CSV file."""
    return predictions.to_frame().to_csv(index=False, float_format="%.6f", lineterminator="\n")


def predict_new(
    model: Model,
    frame: pandas.DataFrame,
    level: float,
    loss: np.ndarray | None = None,
    identifiers: Sequence[str] = (),
) -> Predictions:
    """Predict the rows of a table that were not in training.

    Parameters
    ----------
    model : Model
    frame : pandas.DataFrame
        Accepted (:func:`accept_rows`). Where it has the model's target, the classes are kept
        beside the predictions.
    level : float
        Of the intervals.
    loss : ndarray of shape (n_classes, n_classes), optional
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    identifiers : sequence of str
        Columns to keep beside the predictions, as well as those that the model knows.

    Returns
    -------
    Predictions
    """
    with warnings.catch_warnings():
        if model.categories:  # of which the table's notes tell
            warnings.filterwarnings("ignore", "column .* holds categories that", UserWarning)
        points = model.transform(frame)
        summary = model.classifier.predict_summary(points, level)
    probabilities = summary.probabilities
    if not np.allclose(probabilities.sum(axis=1), 1.0) or not np.all(probabilities >= 0):
        raise ValueError("the model is damaged: its probabilities do not sum to 1; fit it again")
    beside = dict.fromkeys([*identifiers, *model.identifiers])
    predictions = Predictions(
        frame,
        model.classifier.classes_,
        probabilities,
        summary.intervals,
        "new row",
        loss=loss,
        identifiers=[name for name in beside if name in frame],
        typicality=summary.typicality,
        is_training=model.is_fitted_to(points),
    )
    if model.target in frame.columns:
        column, classes = frame[model.target], predictions.classes
        predictions.actual, predictions.actual_names = _match(column, classes)
        predictions.weights = weigh_rows(
            predictions.actual, model.adapter.class_prior, predictions.weights
        )
        predictions.weighting = model.adapter.describe_weights(of_training=False)
    return predictions


def predict_left_out(
    model: Model, frame: pandas.DataFrame, labels: np.ndarray, level: float
) -> Predictions:
    """Predict each training row from the labels of all others.

    Parameters
    ----------
    model : Model
    frame : pandas.DataFrame
        The training rows; its index counts them from 1.
    labels : ndarray of shape (n,)
        Their class numbers.
    level : float
        Of the intervals.

    Returns
    -------
    Predictions
    """
    classifier = model.classifier
    names = np.array([str(name) for name in classifier.classes_.tolist()], dtype=object)
    return Predictions(
        frame,
        classifier.classes_,
        classifier.loo_proba_,
        classifier.loo_interval(level),
        LEAVE_ONE_OUT,
        labels,
        names[labels],
        identifiers=model.identifiers,
        weights=weigh_rows(labels, model.adapter.class_prior, model.adapter.score_weights),
        weighting=model.adapter.describe_weights(),
    )


def _match(column: pandas.Series, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class numbers and names of rows, as their table gives them."""
    there = column.notna().to_numpy()
    texts = as_text(column).fillna("").to_numpy(dtype=object)
    # Classes may be floats, which are whole.
    names = [f"{each:.0f}" if isinstance(each, float) else str(each) for each in classes.tolist()]
    # Those that are written alike, spaces aside, after those that are the same.
    numbers = category_codes(names) | {name: g for g, name in enumerate(names)}
    actual = np.array([numbers.get(text, numbers.get(category_name(text), -1)) for text in texts])
    return np.where(there, actual, NO_CLASS), texts


def read_losses(path: str | Path, names: list[str], encoding: str | None = None) -> np.ndarray:
    r"""Read what each wrong decision costs: a small table with a row for each truth.

    The header names the decisions, the first column the true classes, in any order::

        truth,no relapse,relapse
        no relapse,0,1
        relapse,10,0

    Here it costs 10 to decide "no relapse" where there is a relapse.

    Parameters
    ----------
    path : str or Path
        A CSV, Excel or Parquet file.
    names : list of str
        The classes.
    encoding : str, optional
        Of a CSV file; UTF-8 by default.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        ``loss[a, g]`` is the loss of decision a where the truth is g, in the order of ``names``:
        turned, since ``predictive.decide`` has the decisions as rows.
    """
    frame = read_table(path, encoding).frame
    first, *decisions = frame.columns
    truths = as_text(frame[first]).fillna("").tolist()
    for where, given in (("header", decisions), (f"column {first!r}", truths)):
        for name in [*given, *names]:
            if given.count(name) != 1 or name not in names:
                times = {0: "lacks", 1: "holds"}.get(given.count(name), "holds twice or more")
                raise ValueError(
                    f"{path}: its {where} {times} {name!r}, and has to name each class of the "
                    f"model once; the classes are {', '.join(names)}"
                )
    cells = frame.set_axis(truths).loc[names, names]
    losses = cells.apply(pandas.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    for g, a in np.argwhere(~np.isfinite(losses)):
        cell = cells[names[a]].tolist()[g]
        cell = "nothing" if pandas.isna(cell) else repr(cell)
        raise ValueError(
            f"{path}: column {names[a]!r} holds {cell} where the truth is {names[g]!r}; a loss is "
            "a finite number"
        )
    return losses.T
