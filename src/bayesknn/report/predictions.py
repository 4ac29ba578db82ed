"""What is said about each row of a table: its class, how probable each class is, and how sure.

The numbers are those of :class:`bayesknn.evaluation.Predicted`. Here they get the rows of a table,
sentences, and the form of a CSV file.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from bayesknn._utils.checks import category_codes, category_name
from bayesknn.evaluation.predicted import NO_CLASS, Predicted
from bayesknn.evaluation.scores import weigh_rows
from bayesknn.report.reading import as_text, read_table
from bayesknn.report.words import count, free_name, join, percent, shorten

if TYPE_CHECKING:
    from bayesknn.report.model import Model

LEAVE_ONE_OUT = "leave-one-out"


@dataclass
class Predictions(Predicted):
    """Predictions for rows of a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        The rows; its index counts those of their file from 1.
    basis : str
        ``"leave-one-out"`` where a row was predicted from all others of its table, ``"new row"``
        where it was not in training.
    actual_names : ndarray of shape (m,) or None
        The classes of the rows as text, empty where there is none.
    identifiers : sequence of str
        Columns of the table that tell its rows apart.
    loss : ndarray of shape (n_classes, n_classes) or None
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    typicality : ndarray of shape (m,) or None
        Proportion of training rows that lie at least as far from their neighbours.
    is_training : bool
        Whether these are the rows that the classifier was fitted to, not left out.
    weighting : str
        A sentence on the weights of the rows, empty if all are 1.
    """

    _: KW_ONLY
    frame: pandas.DataFrame
    basis: str = "new row"
    actual_names: Any = None
    identifiers: Sequence[str] = ()
    loss: Any = None
    typicality: Any = None
    is_training: bool = False
    weighting: str = ""

    @property
    def rows(self) -> np.ndarray:
        """Numbers of the rows in their file."""
        return self.frame.index.to_numpy()

    @property
    def words(self) -> str:
        """What the rows are."""
        if self.basis == LEAVE_ONE_OUT:
            return "training rows, each left out in turn"
        return "test rows"

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

    def count(self, numbers: np.ndarray) -> dict[str, int]:
        """Return by name how often class numbers occur, those that do."""
        sizes = np.bincount(numbers, minlength=len(self.names)).tolist()
        return {name: n for name, n in zip(self.names, sizes, strict=True) if n}

    def decide(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the class of least expected ``loss`` in each row, and that loss."""
        from bayesknn.predictive import decide

        return decide(self.probabilities, self.loss)

    def describe_decided(self, level: float) -> str:
        """Say how many rows are decided, and what that is."""
        share = percent(self.share_decided).replace("\xa0", " ")
        rows = "training rows" if self.basis == LEAVE_ONE_OUT else "new rows"
        rows += " (weighted)" * bool(np.ptp(self.weights) > 0)
        return (
            f"{share} of the {len(self.rows):,} {rows} are decided: the {100 * level:g} % interval "
            "of one class lies above all others"
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
        >>> predictions = Predictions(classes, p, intervals, frame=frame)
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
        model.classifier.classes_,
        probabilities,
        summary.intervals,
        frame=frame,
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
        classifier.classes_,
        classifier.loo_proba_,
        classifier.loo_interval(level),
        labels,
        weigh_rows(labels, model.adapter.class_prior, model.adapter.score_weights),
        frame=frame,
        basis=LEAVE_ONE_OUT,
        actual_names=names[labels],
        identifiers=model.identifiers,
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
