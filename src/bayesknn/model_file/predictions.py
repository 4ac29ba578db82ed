"""What is said about each row of a table: its class, how probable each class is, and how sure.

Class probabilities and intervals, set against the classes that the rows have, with the rows of
their table, sentences, and the form of a CSV file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from bayesknn._utils.checks import check_part
from bayesknn._utils.words import count, free_name, join, percent, shorten
from bayesknn.evaluation.folds import draw_rows
from bayesknn.evaluation.scores import Scores, score, weigh_rows
from bayesknn.predictive import decide, find_zones
from bayesknn.tables.files import read_table
from bayesknn.tables.kinds import Number, as_text, learn_kinds
from bayesknn.tables.remarks import WARNING, Remark, leave_out, on_table
from bayesknn.tables.table import (
    Table,
    as_table,
    find_column,
    match_classes,
    naming_file,
    split_names,
)

if TYPE_CHECKING:
    from bayesknn.model_file.table_model import TableModel

LEAVE_ONE_OUT = "leave-one-out"
# Value of ``Predictions.actual`` where the class of a row is not given.
NO_CLASS = -2


@dataclass
class Predictions:
    """Predictions for rows of a table.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns below.
    probabilities : ndarray of shape (m, n_classes)
    intervals : ndarray of shape (m, n_classes, 2) or None
        An interval of each true probability.
    actual : ndarray of shape (m,)
        Index of the row's class, -1 for a class that training did not see, ``NO_CLASS`` (the
        default) where the class is not given.
    weights : ndarray of shape (m,)
        Weight of each row in every score, 1 by default. A row of weight 0 is in no score.
    groups : ndarray of shape (m,) or None
        Numbers of the groups that the rows belong to.
    frame : pandas.DataFrame
        The rows as they were read. Its index counts the rows below the header from 1, blank lines
        not counted.
    measured : pandas.DataFrame
        Their columns in use (:meth:`TablePreparer.measure`).
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
    group : str
        What groups are called: the column that names them.
    """

    classes: np.ndarray
    probabilities: np.ndarray
    intervals: Any = None
    actual: Any = None
    weights: Any = None
    groups: Any = None
    _: KW_ONLY
    frame: pandas.DataFrame
    measured: Any = None
    basis: str = "new row"
    actual_names: Any = None
    identifiers: Sequence[str] = ()
    loss: Any = None
    typicality: Any = None
    is_training: bool = False
    weighting: str = ""
    group: str = "groups"

    def __post_init__(self) -> None:
        if self.actual is None:
            self.actual = np.full(len(self.probabilities), NO_CLASS)
        if self.weights is None:
            self.weights = np.ones(len(self.probabilities))

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(name) for name in self.classes.tolist()]

    @cached_property
    def zones(self) -> np.ndarray:
        """Index of the class whose interval lies above all others, -1 where none does."""
        return find_zones(self.intervals)

    @property
    def winners(self) -> np.ndarray:
        """Index of the most probable class of each row."""
        return self.probabilities.argmax(axis=1)

    @property
    def expected_loss(self) -> np.ndarray:
        """Probability that the most probable class is wrong: the expected 0-1 loss."""
        return 1.0 - self.probabilities.max(axis=1)

    @property
    def judged(self) -> np.ndarray:
        """Positions of the rows that are scored: their class is given, their weight is not 0."""
        return np.flatnonzero((self.actual != NO_CLASS) & (self.weights > 0))

    @property
    def known(self) -> np.ndarray:
        """Positions of the scored rows whose class training has seen."""
        return np.flatnonzero((self.actual >= 0) & (self.weights > 0))

    @property
    def scores(self) -> Scores | None:
        """Scores of the rows whose class is given, None if there are none."""
        rows = self.judged
        if not len(rows):
            return None
        return score(self.probabilities[rows], self.actual[rows], self.weights[rows])

    def groups_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the groups of some rows, None where rows belong to none."""
        return None if self.groups is None else self.groups[rows]

    def draw(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about ``n_rows`` of the ``known`` rows, drawn by class, and weights for them.

        The weights give the classes the proportions that they have among all known rows.
        """
        known = self.known
        frequencies = np.bincount(self.actual[known], self.weights[known], len(self.classes))
        rows = known[draw_rows(self.actual[known], n_rows)]
        return rows, weigh_rows(self.actual[rows], frequencies, self.weights[rows])

    @property
    def share_decided(self) -> float:
        """Weighted proportion of the rows that are decided: one interval lies above all others."""
        return float(np.average(self.zones >= 0, weights=self.weights))

    @property
    def decided(self) -> dict[str, Any] | None:
        """Number of scored rows that are decided, their expected and observed error, or None."""
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

    def find_misclassified(self) -> np.ndarray:
        """Return the scored rows of another class than predicted, the surest first."""
        rows = self.judged
        wrong = rows[self.winners[rows] != self.actual[rows]]
        return wrong[np.argsort(self.expected_loss[wrong], kind="stable")]

    def find_undecided(self) -> np.ndarray:
        """Return the positions of the undecided rows, the likeliest to be wrong first."""
        rows = np.flatnonzero(self.zones < 0)
        return rows[np.argsort(-self.expected_loss[rows], kind="stable")]

    @property
    def rows(self) -> np.ndarray:
        """Numbers of the rows in their file."""
        return self.frame.index.to_numpy()

    @property
    def words(self) -> str:
        """What the rows are."""
        if self.basis == LEAVE_ONE_OUT:
            how = "with its group" if self.of_groups else "in turn"
            return f"training rows{self.of_groups}, each left out {how}"
        return f"test rows{self.of_groups}"

    @property
    def of_groups(self) -> str:
        """Of how many groups the rows are, as in ``" of 218 id"``; empty without groups."""
        return "" if self.groups is None else f" of {self.n_groups:,} {self.group}"

    @property
    def n_groups(self) -> int:
        """Number of groups that the rows belong to."""
        return len(np.unique(self.groups))

    @property
    def n_unlike(self) -> int:
        """How many rows are farther from their neighbours than any training row from its own."""
        if self.typicality is None or self.is_training:
            return 0
        return int(np.sum(self.typicality == 0))

    def examine(
        self, model: TableModel, table: Table, which: str = "", row: str = "row"
    ) -> list[Remark]:
        """Return all remarks on new rows: their columns, how like training they are, classes.

        ``which`` and ``row`` are what the table and a row are called, the former as in ``"of the
        test table "``.
        """
        doubts, n = model.preparer_.examine(table, self.measured, which), len(self.rows)
        if self.is_training:
            text = (
                "these are the rows that the model was fitted to, which their own labels help to "
                "predict: results on them say nothing about new rows; leave-one-out results do"
            )
            doubts.append(on_table("rows-unlike", text, WARNING))
        if unlike := self.n_unlike:
            text = (
                f"{unlike:,} of {count(n, row)} {'is' if unlike == 1 else 'are'} unlike any in "
                "training, farther from the nearest ones than those are from each other"
            )
            text += ": check units and columns" * (unlike > 0.05 * n)
            doubts.append(on_table("rows-unlike", text, WARNING))
        if (strange := self.actual == -1).any():
            names = join([repr(shorten(n)) for n in dict.fromkeys(self.actual_names[strange])])
            rows = count(int(strange.sum()), row)
            text = (
                f"{rows} of a class that training did not see ({names} in {model.target_!r}) "
                "cannot be predicted right"
            )
            doubts.append(on_table("unseen", text, WARNING))
        return leave_out(doubts, model.preparer_.ignore)

    def count(self, numbers: np.ndarray) -> dict[str, int]:
        """Return by name how often class numbers occur, those that do."""
        sizes = np.bincount(numbers, minlength=len(self.names)).tolist()
        return {name: n for name, n in zip(self.names, sizes, strict=True) if n}

    def decide(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the class of least expected ``loss`` in each row, and that loss."""
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
        >>> from bayesknn.model_file.predictions import Predictions
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
    model: TableModel,
    table: Table,
    level: float,
    loss: np.ndarray | None = None,
    identifiers: Sequence[str] = (),
    measured: Any = None,
) -> Predictions:
    """Predict the rows of a table that were not in training.

    Parameters
    ----------
    model : TableModel
    table : Table
        Where it has the model's target, the classes are kept beside the predictions.
    level : float
        Of the intervals.
    loss : ndarray of shape (n_classes, n_classes), optional
        ``loss[a, g]`` is the loss of deciding for class a where the truth is g.
    identifiers : sequence of str
        Columns to keep beside the predictions, as well as those that the model knows.
    measured : pandas.DataFrame, optional
        The rows as the model's preparer measures them, if they were measured already.

    Returns
    -------
    Predictions
    """
    preparer = model.preparer_
    table = as_table(table, preparer.missing_)
    frame = table.frame
    with naming_file(table.file):
        named = split_names(identifiers, frame.columns)
        for name in named:
            find_column(frame, name)
    measured = model.measure(table) if measured is None else measured
    points = model.arrange(measured)
    summary = model.classifier_.predict_summary(points, level)
    probabilities = summary.probabilities
    if not np.allclose(probabilities.sum(axis=1), 1.0) or not np.all(probabilities >= 0):
        raise ValueError("the model is damaged: its probabilities do not sum to 1; fit it again")
    group_numbers = None
    if preparer.group and preparer.group in frame:
        group_numbers, names = pandas.factorize(as_text(frame[preparer.group]))
        unnamed = np.flatnonzero(group_numbers < 0)
        group_numbers[unnamed] = len(names) + np.arange(len(unnamed))
    beside = dict.fromkeys([*named, *preparer.identifiers_])
    predictions = Predictions(
        model.classes_,
        probabilities,
        summary.intervals,
        frame=frame,
        measured=measured,
        loss=loss,
        identifiers=[name for name in beside if name in frame],
        typicality=summary.typicality,
        is_training=model.is_fitted_to(points),
        groups=group_numbers,
        group=preparer.group or "groups",
    )
    if model.target_ in frame.columns:
        column = frame[model.target_]
        kind, merged = preparer.target_kind_, preparer.merged_
        actual, texts = match_classes(column, kind, predictions.classes, merged)
        predictions.actual = np.where(column.notna(), actual, NO_CLASS)
        predictions.actual_names = texts
        predictions.weights = weigh_rows(
            predictions.actual, model.adapter.class_prior, predictions.weights
        )
        predictions.weighting = model.adapter.describe_weights(of_training=False)
    return predictions


def predict_left_out(
    model: TableModel, frame: Any, measured: Any, labels: np.ndarray, level: float
) -> Predictions:
    """Predict each training row from the labels of all others.

    Parameters
    ----------
    model : TableModel
    frame : pandas.DataFrame
        The training rows as they were read; its index counts them from 1.
    measured : pandas.DataFrame
        Their columns in use.
    labels : ndarray of shape (n,)
        Their class indices.
    level : float
        Of the intervals.

    Returns
    -------
    Predictions
    """
    classifier = model.classifier_
    names = np.array([str(name) for name in classifier.classes_.tolist()], dtype=object)
    return Predictions(
        classifier.classes_,
        classifier.loo_proba_,
        classifier.loo_interval(level),
        labels,
        weigh_rows(labels, model.adapter.class_prior, model.adapter.score_weights),
        frame=frame,
        measured=measured,
        basis=LEAVE_ONE_OUT,
        actual_names=names[labels],
        identifiers=model.preparer_.identifiers_,
        weighting=model.adapter.describe_weights(),
        groups=classifier.groups_,
        group=model.preparer_.group or "groups",
    )


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
    table = read_table(path, encoding)
    frame, semicolons = table.frame, table.has_semicolons
    kinds, _ = learn_kinds(frame.iloc[:, 1:], has_semicolons=semicolons)
    numbers = {n: kind.read(frame[n]) for n, kind in kinds.items() if isinstance(kind, Number)}
    frame = frame.assign(**numbers)
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


def doubt_losses(losses: np.ndarray, names: list[str]) -> list[Remark]:
    """Return a warning about losses below 0 of wrong decisions, which reward them."""
    return [
        on_table(
            "losses",
            f"deciding for {names[a]!r} where the truth is {names[g]!r} has the loss "
            f"{losses[a, g]:g}: a wrong decision with a loss below 0 is a gain",
            WARNING,
        )
        for a, g in np.argwhere(losses < 0)
        if a != g
    ]


def threshold_losses(names: list[str], name: str, threshold: float) -> np.ndarray:
    """Return the losses by which a class is decided for from a probability on.

    Parameters
    ----------
    names : list of str
        The two classes.
    name : str
        The class to decide for where its probability is at least ``threshold``.
    threshold : float

    Examples
    --------
    >>> from bayesknn.model_file.predictions import threshold_losses
    >>> threshold_losses(["ill", "well"], "ill", 0.25).tolist()
    [[0.0, 0.25], [0.75, 0.0]]
    """
    if len(names) != 2:
        raise ValueError(f"--threshold is for two classes; the model has {len(names)}")
    if name not in names:
        raise ValueError(f"--threshold: there is no class {name!r}; the classes are {names}")
    check_part(threshold, "the probability of --threshold")
    losses = np.zeros((2, 2))
    mine = names.index(name)
    losses[mine, 1 - mine], losses[1 - mine, mine] = threshold, 1 - threshold
    return losses
