"""What is said about each row: its class, how probable each class is, and whether that is sure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas

NEW_ROW = "new row"
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
    intervals : ndarray of shape (m, n_classes, 2) or None
        An interval of each probability, where the classifier has one.
    zones : ndarray of shape (m,) or None
        Number of the class that is sure, -1 where none is.
    basis : str
        ``"leave-one-out"`` where a row was predicted from all others of its table, ``"new row"``
        where it was not in training.
    actual : ndarray of shape (m,) or None
        Number of the class that the row has in its table, -1 for one that training did not see,
        ``NO_CLASS`` where the table has none.
    actual_names : ndarray of shape (m,) or None
        The same as text, empty where there is none.
    loss : ndarray of shape (n_classes, n_classes) or None
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    """

    rows: np.ndarray
    classes: np.ndarray
    probabilities: np.ndarray
    intervals: np.ndarray | None
    zones: np.ndarray | None
    basis: str
    actual: Any = None
    actual_names: Any = None
    loss: Any = None

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
    def expected_loss(self) -> np.ndarray:
        """Probability that the most probable class is wrong: the expected 0-1 loss."""
        return 1.0 - self.probabilities.max(axis=1)

    def find_uncertain(self, n: int) -> np.ndarray:
        """Return the positions of the n rows whose likeliest class is most likely to be wrong."""
        return np.argsort(-self.expected_loss, kind="stable")[:n]

    def decide(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the class of least expected ``loss`` in each row, and that loss."""
        from bayesknn.predictive import decide

        return decide(self.probabilities, self.loss)

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(name) for name in self.classes.tolist()]

    @property
    def share_sure(self) -> float | None:
        """Share of the rows whose class is sure."""
        return None if self.zones is None else float(np.mean(self.zones >= 0))

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
        columns: dict[str, Any] = {"row": self.rows, "basis": self.basis}
        if self.actual_names is not None:
            columns["actual"] = self.actual_names
        columns["class"] = names[self.winners]
        for g, name in enumerate(names):
            columns[f"probability {name}"] = self.probabilities[:, g]
            if self.intervals is not None:
                columns[f"low {name}"] = self.intervals[:, g, 0]
                columns[f"high {name}"] = self.intervals[:, g, 1]
        if self.zones is not None:
            # Entry -1 is what a zone without a sure class says.
            zones = np.array([*names, uncertain_name(self.names)], dtype=object)
            columns["zone"] = zones[self.zones]
        columns["expected loss"] = self.expected_loss
        if self.loss is not None:
            decisions, expected = self.decide()
            columns["decision"] = names[decisions]
            columns["decision loss"] = expected
        return pandas.DataFrame(columns)


def uncertain_name(names: list[str]) -> str:
    """Return what a zone is called where no class is sure, a name that no class has."""
    name = "uncertain"
    while name in names:
        name = f"({name})"
    return name


def write_csv(predictions: Predictions) -> str:
    """Return predictions as the text of a CSV file."""
    return predictions.to_frame().to_csv(index=False, float_format="%.6g", lineterminator="\n")


def predict_new(
    model: Any, frame: pandas.DataFrame, level: float, loss: np.ndarray | None = None
) -> Predictions:
    """Predict the rows of a table that were not in training.

    Parameters
    ----------
    model : Model
    frame : pandas.DataFrame
        Its index counts the rows from 1.
    level : float
        Of the credible intervals.
    loss : ndarray of shape (n_classes, n_classes), optional
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.

    Returns
    -------
    Predictions
    """
    from bayesknn.predictive import find_zones

    points = model.prepare(frame)
    classifier = model.classifier
    if hasattr(classifier, "pool_weights_"):
        probabilities = classifier.predict_proba(points)
        intervals = classifier.predict_interval(points, level)
    else:
        found = classifier.predict_summary(points, level, of="probability")
        probabilities, intervals = found.probabilities, found.intervals
    if not np.allclose(probabilities.sum(axis=1), 1.0) or not np.all(probabilities >= 0):
        raise ValueError("the model is damaged: its probabilities do not sum to 1; fit it again")
    return Predictions(
        frame.index.to_numpy(),
        classifier.classes_,
        probabilities,
        intervals,
        find_zones(intervals),
        NEW_ROW,
        loss=loss,
    )


def predict_left_out(
    classifier: Any, rows: np.ndarray, labels: np.ndarray, level: float
) -> Predictions:
    """Predict each training row from the labels of all others.

    Parameters
    ----------
    classifier : BayesianKNeighborsClassifier or PooledNeighborsClassifier
        Fitted on these rows.
    rows : ndarray of shape (n,)
        Their numbers.
    labels : ndarray of shape (n,)
        Their class numbers.
    level : float
        Of the credible intervals.

    Returns
    -------
    Predictions
    """
    from bayesknn.predictive import find_zones

    intervals = None
    if hasattr(classifier, "loo_interval"):
        intervals = classifier.loo_interval(level, of="probability")
    names = np.array([str(name) for name in classifier.classes_.tolist()], dtype=object)
    return Predictions(
        rows,
        classifier.classes_,
        classifier.loo_proba_,
        intervals,
        None if intervals is None else find_zones(intervals),
        LEAVE_ONE_OUT,
        labels,
        names[labels],
    )
