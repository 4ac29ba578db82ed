"""What is said about each row: its class, how probable each class is, and whether that is sure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.checks import category_codes, category_name
from bayesknn.report.scores import Scores, score
from bayesknn.report.words import count, join, percent, shorten

if TYPE_CHECKING:
    import pandas

    from bayesknn.report.pipeline import Model

LEAVE_ONE_OUT = "leave-one-out"
# Stands in ``Predictions.actual`` where a table does not say the class of a row.
NO_CLASS = -2


@dataclass
class Predictions:
    """Predictions for rows of a table.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Numbers of the rows in their file, counted from 1.
    classes : ndarray of shape (n_classes,)
        In the order of the columns below.
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2)
        An interval of each true probability.
    zones : ndarray of shape (m,)
        Number of the class whose interval lies above all others, -1 where none does.
    basis : str
        ``"leave-one-out"`` where a row was predicted from all others of its table, ``"new row"``
        where it was not in training.
    actual : ndarray of shape (m,) or None
        Number of the class that the row has in its table, -1 for one that training did not see,
        ``NO_CLASS`` where the table has none.
    actual_names : ndarray of shape (m,) or None
        The same as text, empty where there is none.
    identifiers : pandas.DataFrame or None
        Columns of the table that tell its rows apart.
    loss : ndarray of shape (n_classes, n_classes) or None
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    typicality : ndarray of shape (m,) or None
        Share of training rows that lie at least as far from their neighbours.
    """

    rows: np.ndarray
    classes: np.ndarray
    probabilities: np.ndarray
    intervals: np.ndarray
    zones: np.ndarray
    basis: str
    actual: Any = None
    actual_names: Any = None
    loss: Any = None
    identifiers: Any = None
    typicality: Any = None

    @property
    def winners(self) -> np.ndarray:
        """Number of the most probable class of each row."""
        return self.probabilities.argmax(axis=1)

    @property
    def judged(self) -> np.ndarray:
        """Numbers of the rows whose class is known, by which the predictions can be judged."""
        if self.actual is None:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self.actual != NO_CLASS)

    @property
    def known(self) -> np.ndarray:
        """Those of them whose class training has seen."""
        rows = self.judged
        return rows[self.actual[rows] >= 0] if len(rows) else rows

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
        return score(self.probabilities[rows], self.actual[rows]) if len(rows) else None

    @property
    def n_unlike(self) -> int:
        """How many rows are farther from their neighbours than any training row from its own."""
        return 0 if self.typicality is None else int(np.sum(self.typicality == 0))

    def find_doubts(self, target: str, which: str = "row") -> list[str]:
        """Say how many rows are unlike any in training, and of a class that it did not have."""
        told, n = [], len(self.rows)
        if unlike := self.n_unlike:
            told.append(
                f"{unlike:,} of {count(n, which)} {'is' if unlike == 1 else 'are'} unlike any in "
                "training, farther from the nearest ones than those are from each other"
                + ": check units and columns"
                * (unlike > 0.05 * n)
            )
        if self.actual is not None and len(strange := self.actual_names[self.actual == -1]):
            names = join([repr(shorten(name)) for name in dict.fromkeys(strange)])
            told.append(
                f"{count(len(strange), which)} of a class that training did not see ({names} in "
                f"{target!r}) cannot be predicted right"
            )
        return told

    @property
    def expected_loss(self) -> np.ndarray:
        """Probability that the most probable class is wrong: the expected 0-1 loss."""
        return 1.0 - self.probabilities.max(axis=1)

    def find_misclassified(self) -> np.ndarray:
        """Return the positions of the rows of another class than predicted, the surest first."""
        winners = self.winners
        wrong = np.array([i for i in self.judged if winners[i] != self.actual[i]], dtype=np.intp)
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
        """Proportion of the rows that are decided: one class is known to be the likeliest."""
        return float(np.mean(self.zones >= 0))

    def tell_decided(self, level: float) -> str:
        """Say how many rows are decided, and what that is."""
        told = percent(self.share_decided).replace("\xa0", " ")
        which = "training" if self.basis == LEAVE_ONE_OUT else "new"
        return (
            f"{told} of the {len(self.rows):,} {which} rows are decided: the {100 * level:g} % "
            "interval of one class lies above all others"
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return the table that is written as ``predictions.csv``.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesknn.report.predictions import Predictions
        >>> p = np.array([[0.75, 0.25]])
        >>> intervals = np.stack([p - 0.05, p + 0.05], axis=2)
        >>> rows, classes, zones = np.array([1]), np.array(["a", "b"]), np.array([0])
        >>> found = Predictions(rows, classes, p, intervals, zones, "new row")
        >>> list(found.to_frame())[2:6]
        ['class', 'probability a', 'low a', 'high a']
        """
        import pandas

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
        zones = np.array([*names, name_undecided(self.names)], dtype=object)
        columns["zone"] = zones[self.zones]
        columns["expected loss"] = self.expected_loss
        if self.loss is not None:
            decisions, expected = self.decide()
            columns["decision"] = names[decisions]
            columns["decision loss"] = expected
        beside: dict[str, Any] = {"row": self.rows}
        if self.identifiers is not None:
            for name, values in self.identifiers.items():
                while name in columns or name in beside:
                    name = f"id {name}"
                beside[name] = values.to_numpy()
        return pandas.DataFrame(beside | columns)


def name_undecided(names: list[str]) -> str:
    """Return what the zone of an undecided row is called, a name that no class has."""
    name = "undecided"
    while name in names:
        name = f"({name})"
    return name


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
        Its index counts the rows from 1. Where it has the model's target, the classes are kept
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
    from bayesknn.predictive import find_zones

    with warnings.catch_warnings():
        if model.categories:  # of which the table's notes tell
            warnings.filterwarnings("ignore", "column .* holds categories that", UserWarning)
        summary = model.classifier.predict_summary(model.prepare(frame), level)
    probabilities, intervals = summary.probabilities, summary.intervals
    if not np.allclose(probabilities.sum(axis=1), 1.0) or not np.all(probabilities >= 0):
        raise ValueError("the model is damaged: its probabilities do not sum to 1; fit it again")
    found = Predictions(
        frame.index.to_numpy(),
        model.classifier.classes_,
        probabilities,
        intervals,
        find_zones(intervals),
        "new row",
        loss=loss,
        identifiers=_take_identifiers(frame, [*identifiers, *model.identifiers]),
        typicality=summary.typicality,
    )
    if model.target in frame.columns:
        found.actual, found.actual_names = _match(frame[model.target], found.classes)
    return found


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
    from bayesknn.predictive import find_zones

    classifier = model.classifier
    intervals = classifier.loo_interval(level)
    names = np.array([str(name) for name in classifier.classes_.tolist()], dtype=object)
    return Predictions(
        frame.index.to_numpy(),
        classifier.classes_,
        classifier.loo_proba_,
        intervals,
        find_zones(intervals),
        LEAVE_ONE_OUT,
        labels,
        names[labels],
        identifiers=_take_identifiers(frame, model.identifiers),
    )


def _take_identifiers(frame: pandas.DataFrame, names: Iterable[str]) -> pandas.DataFrame | None:
    """Return the columns of a table that tell its rows apart, those that it has, each once."""
    there = [name for name in dict.fromkeys(names) if name in frame.columns]
    return frame[there] if there else None


def _match(column: pandas.Series, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class numbers and names of rows, as their table gives them."""
    there = column.notna().to_numpy()
    texts = np.full(len(column), "", dtype=object)
    given = column[there]
    if given.dtype.kind == "f" and np.all(given == np.floor(given)):
        given = given.astype(np.int64)
    texts[there] = given.astype(str).to_numpy(dtype=object)
    # Classes may be floats, which are whole.
    names = [f"{each:.0f}" if isinstance(each, float) else str(each) for each in classes.tolist()]
    # Those that are written alike, spaces aside, after those that are the same.
    numbers = category_codes(names) | {name: g for g, name in enumerate(names)}
    actual = np.array([numbers.get(text, numbers.get(category_name(text), -1)) for text in texts])
    return np.where(there, actual, NO_CLASS), texts
