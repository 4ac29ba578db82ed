"""Checks for what makes results look too good: leaks, trends, duplicates, classes spelt twice.

Each check takes the measured columns (``TablePreparer.measure``) and class indices and returns
remarks. A check that cannot be made on a table returns one of severity ``"skipped"``.
"""

from __future__ import annotations

import math
import shlex
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.words import MAX_LISTED
from bayesknn.sureness.groups import find_scored
from bayesknn.tables.encoder import ColumnEncoder
from bayesknn.tables.kinds import Date
from bayesknn.tables.preparer import MIN_ROWS, TablePreparer, drop_options
from bayesknn.tables.remarks import SKIPPED, WARNING, Remark, leave_out, on_column, on_table
from bayesknn.tables.table import find_similar_names, list_names

if TYPE_CHECKING:
    import pandas

# Rows that a change of the class frequencies along a column needs.
_MIN_TREND = 50
# Of groups of rows: fewest groups, rows compared, columns looked at, and the share of rows whose
# nearest neighbour is of their group and class, beyond that by chance.
_MIN_GROUPS = 10
_MAX_SAMPLE = 1000
_MAX_CANDIDATES = 20
_MIN_EXCESS = 0.2
# Rows and largest k of the nearest neighbours whose left-out errors a remark on groups states. More
# rows cost time by their square, which is .1 s here; fewer give the errors by less than 1 %.
_MAX_COMPARED = 2000
_MAX_K = 30


def check_table(
    preparer: TablePreparer,
    measured: pandas.DataFrame,
    classes: np.ndarray,
    target: str,
    *,
    is_ordered: bool = False,
    is_grouped: bool = False,
    others: dict[str, Any] | None = None,
) -> list[Remark]:
    """Return the remarks of all checks of a training table.

    Parameters
    ----------
    preparer : TablePreparer
        What was learned of the columns, and which remarks to ignore.
    measured : pandas.DataFrame
        The rows with a class.
    classes : ndarray of shape (n,)
    target : str
        What the column of the classes is called.
    is_ordered : bool
        Whether the last rows are predicted from those before, which shows a change along time.
    is_grouped : bool
        Whether rows that belong together are left out together.
    others : dict of str to pandas.Series, optional
        Columns that are left out.

    Returns
    -------
    list of Remark
    """
    kinds = {name: preparer.columns_[name].kind for name in measured}
    names, labels = np.unique(classes, return_inverse=True)
    leaks = find_leaks(measured, labels, target)
    leaking = {each.column for each in leaks if each.severity == WARNING}
    remarks = _find_alike(classes.astype(str), list(map(str, names.tolist())), target)
    remarks += leaks
    if is_ordered:
        remarks.append(on_table("trend", "the last rows are predicted from those before", SKIPPED))
    else:
        trends = find_trends(measured, kinds, labels, target)
        remarks += [each for each in trends if each.column not in leaking]
    if is_grouped:
        remarks.append(on_table("groups", "rows are left out by whole groups", SKIPPED))
    elif "groups" not in preparer.ignore:  # which would take long, for nothing
        remarks += find_groups(measured, kinds, labels, others or {})
    return leave_out([*remarks, *find_duplicates(measured, labels)], preparer.ignore)


def _find_alike(classes: np.ndarray, names: list[str], target: str) -> list[Remark]:
    """Return remarks on classes that differ only in case or spaces."""
    remarks = []
    for alike in find_similar_names(names):
        n = np.isin(classes, alike).sum()
        text = (
            f"the classes {list_names(alike)} of {target!r} differ only in case or spaces: they "
            f"are taken as {len(alike)} classes; as one it would have {n:,} rows"
        )
        remarks.append(on_table("classes-alike", text, WARNING))
    return remarks


def find_leaks(measured: pandas.DataFrame, labels: np.ndarray, target: str) -> list[Remark]:
    """Return remarks on the columns each of which alone predicts the class all but perfectly.

    A row is given the most common class among the other rows of the same value or, where there are
    none, of the nearest number or of all rows that have a category. Having no value is a value,
    too.

    Parameters
    ----------
    measured : pandas.DataFrame
    labels : ndarray of shape (n,)
        Class indices.
    target : str
    """
    n, sizes = len(labels), np.bincount(labels)
    if n < MIN_ROWS:
        return [on_table("leak", f"columns that give the class away need {MIN_ROWS} rows", SKIPPED)]
    # Errors of one row in a hundred, or where a class ends and the next begins, if always
    # predicting the most common class errs ten times as often.
    allowed = min(max(0.01 * n, len(sizes) - 1), 0.1 * (n - sizes.max()))
    leaking = [
        name
        for name, column in measured.items()
        if n - np.sum(_guess_by(column, labels, sizes) == labels) <= allowed
    ]
    then = ": make sure that it is known before the class is, or pass "
    then += drop_options(leaking[:MAX_LISTED])
    what = f"alone predicts {target!r} all but perfectly"
    return [on_column("leak", name, what, "", then, WARNING) for name in leaking]


def _guess_by(column: pandas.Series, labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the class of each row that a column predicts from the classes of other rows."""
    import pandas

    # What is missing is a value like others: the cause of death of those who live.
    at, values = pandas.factorize(column, sort=True, use_na_sentinel=False)
    counts = np.zeros((len(values), len(sizes)))
    np.add.at(counts, (at, labels), 1)
    others = counts[at]
    others[np.arange(len(labels)), labels] -= 1
    guess = others.argmax(axis=1)
    alone = ~others.any(axis=1)
    if column.dtype.kind in "iuf" and len(values) > 1:
        # Missing values stand last, and are near to none.
        below = np.diff(np.asarray(values, dtype=np.float64), prepend=-np.inf)
        below[np.isnan(below)] = np.inf
        step = np.where(below <= np.append(below[1:], np.inf), -1, 1)
        guess[alone] = counts[(np.arange(len(values)) + step)[at[alone]]].argmax(axis=1)
    else:  # as any row that has a value
        there = column.notna().to_numpy()
        guess[alone] = np.bincount(labels[there], minlength=1).argmax()
    return guess


def find_trends(
    measured: pandas.DataFrame, kinds: dict[str, Any], labels: np.ndarray, target: str
) -> list[Remark]:
    """Return remarks on columns along which class frequencies change: dates, and row counters.

    Between fifths of the rows, by more than chance and by more than next to nothing.

    Parameters
    ----------
    measured : pandas.DataFrame
    kinds : dict of str to Kind
    labels : ndarray of shape (n,)
        Class indices.
    target : str
    """
    import pandas
    from scipy.stats import chi2_contingency

    trends, n_checked = [], 0
    for name, kind in kinds.items():
        column = measured[name]
        grows = kind.name == "number" and column.is_monotonic_increasing and column.nunique() >= 5
        if not (isinstance(kind, Date) or grows) or column.count() < _MIN_TREND:
            continue
        n_checked += 1
        fifths = np.ceil(5 * column.rank(pct=True))
        counts = pandas.crosstab(fifths, labels).to_numpy()
        if min(counts.shape) > 1:
            test = chi2_contingency(counts)
            size = test.statistic / (counts.sum() * (min(counts.shape) - 1))
            if test.pvalue < 0.001 and size > 0.01:
                trends.append(name)
    if not n_checked:
        text = f"no column of dates or of growing numbers has {_MIN_TREND} values"
        return [on_table("trend", text, SKIPPED)]
    return [
        Remark(
            "trend",
            WARNING,
            name,
            f"the classes of {target!r} change along {name!r}, which gives the rows an order: "
            "leave-one-out results may be too good for later rows; pass "
            f"{shlex.join([f'--time={name}'])} (time=... in write_report) to be evaluated on the "
            "last ones",
        )
        for name in trends
    ]


def find_groups(
    measured: pandas.DataFrame, kinds: dict[str, Any], labels: np.ndarray, others: dict[str, Any]
) -> list[Remark]:
    """Return remarks on columns that name groups of rows that are alike.

    The nearest neighbour of a row, by the other measured columns, has the same value and class much
    more often than rows of the same class have. A column of numbers along which neighbours are
    near each other without being equal is a measurement, and names nothing.

    The details of a remark are the leave-one-out errors of the nearest neighbours by the same
    columns, k chosen for each, with and without rows of the same value among the neighbours, and
    the seconds that these took.

    Parameters
    ----------
    measured : pandas.DataFrame
    kinds : dict of str to Kind
        Of its columns.
    labels : ndarray of shape (n,)
        Class indices.
    others : dict of str to pandas.Series
        Columns that are left out.
    """
    candidates = others | {n: measured[n] for n, kind in kinds.items() if kind.name != "date"}
    numbers = [name for name, kind in kinds.items() if kind.is_measured]
    # Rows without a value may lie in the middle: a column without any is left as NaN.
    points = np.nan_to_num(ColumnEncoder().fit_transform(measured[numbers].astype(np.float64)))
    n_checked, remarks = 0, []
    for name, column in candidates.items():
        codes = _number_values(column)
        apart = [j for j, other in enumerate(numbers) if other != name]
        if codes is None or not apart or n_checked == _MAX_CANDIDATES:
            continue
        n_checked += 1
        rows = _draw_groups(codes, _MAX_SAMPLE)
        sample = points[np.ix_(rows, apart)], codes[rows], labels[rows]
        if _are_alike(*sample, is_ordered=column.dtype.kind in "iuf"):
            rows = _draw_groups(codes, _MAX_COMPARED)
            remarks.append(
                _describe_groups(name, points[np.ix_(rows, apart)], codes[rows], labels[rows])
            )
    if not n_checked:
        text = "no column has values that repeat as names of groups do, beside columns of numbers"
        return [on_table("groups", text, SKIPPED)]
    return remarks


def _draw_groups(codes: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the positions of at most ``n_rows`` rows that have a group, drawn by whole groups.

    Of rows that are drawn singly few would meet another one of their group.
    """
    place = np.random.default_rng(0).permutation(codes.max() + 1)[codes]
    rows = np.argsort(np.where(codes < 0, len(codes), place), kind="stable")
    return rows[: min(np.count_nonzero(codes >= 0), n_rows)]


def _describe_groups(
    name: str, points: np.ndarray, groups: np.ndarray, labels: np.ndarray
) -> Remark:
    """Return the remark on rows that are alike in groups, with left-out errors of neighbours."""
    from bayesknn.classical import ClassicalKNeighborsClassifier

    begin, details, told = perf_counter(), {}, ""
    with suppress(ValueError):  # no class is in two groups, or only one is
        scored = find_scored(labels, groups) > 0
        points, groups, labels = points[scored], groups[scored], labels[scored]
        neighbors = ClassicalKNeighborsClassifier(max_neighbors=min(_MAX_K, len(labels) - 1))
        together = float(neighbors.fit(points, labels).loo_errors_.min())
        apart = float(neighbors.fit(points, labels, groups=groups).loo_errors_.min())
        told = (
            f" (nearest neighbours: left-out error {100 * together:.1f} % with other rows of the "
            f"same {name!r} among the neighbours, {100 * apart:.1f} % without)"
        )
        details = {"error_with": together, "error_without": apart}
    return Remark(
        "groups",
        WARNING,
        name,
        f"rows of the same {name!r} are alike{told}: if new rows come from new ones, pass "
        f"{shlex.join(['--group', name])} (groups=... in fit)",
        details=details | {"seconds": round(perf_counter() - begin, 3)},
    )


def _number_values(column: pandas.Series) -> np.ndarray | None:
    """Return numbers of the values of a column that may name groups, -1 where it has none."""
    import pandas

    if column.dtype.kind == "f" and not (column.dropna() % 1 == 0).all():
        return None
    codes, values = pandas.factorize(column, sort=column.dtype.kind in "iuf")
    n_rows = np.count_nonzero(codes >= 0)
    return codes if _MIN_GROUPS <= len(values) <= n_rows / 2 else None


def _are_alike(
    points: np.ndarray, codes: np.ndarray, labels: np.ndarray, *, is_ordered: bool
) -> bool:
    """Return whether the nearest neighbours of rows have their value and class beyond chance."""
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * points @ points.T
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    same_class = labels == labels[nearest]
    is_same = codes == codes[nearest]
    pairs = codes * (labels.max() + 1) + labels
    of_pair, of_class = np.bincount(pairs)[pairs], np.bincount(labels)[labels]
    expected = same_class * (of_pair - 1) / np.maximum(of_class - 1, 1)
    excess, n = np.sum(is_same & same_class) - expected.sum(), len(labels)
    # Two rows may be each other's nearest: the variance is at most twice as large.
    spread = np.sqrt(2.0 * np.sum(expected * (1.0 - expected)) + 1.0)
    if excess < max(_MIN_EXCESS * n, 4.0 * spread):
        return False
    if not is_ordered or is_same.all():
        return True
    # Numbers that only name something are as far apart as those of any rows of the two classes.
    there = np.flatnonzero(~is_same)
    gaps = np.abs(codes[there] - codes[nearest[there]])
    shuffled = np.empty(n, np.intp)
    random = np.random.default_rng(0).random(n)
    shuffled[np.argsort(labels, kind="stable")] = np.lexsort((random, labels))
    far = np.abs(codes[there] - codes[shuffled[nearest[there]]])
    return len(there) < 0.05 * n or gaps.mean() > 0.75 * far.mean()


def find_duplicates(measured: pandas.DataFrame, labels: np.ndarray) -> list[Remark]:
    """Return a remark on duplicate rows of the same class, if there are more than by chance."""
    n = len(measured)
    # Of columns with few values rows are equal by chance.
    n_cells = math.prod(int(measured[name].nunique()) for name in measured)
    whole = measured.set_axis(range(measured.shape[1]), axis=1).assign(label=labels)
    n_copies = int(whole.duplicated().sum())
    if n_copies and n_cells >= (n - n_copies) ** 2:
        text = (
            f"{n_copies:,} of {n:,} rows {'is a copy' if n_copies == 1 else 'are copies'} of "
            "another row, class included: leave-one-out results are too good if a row was entered "
            "more than once"
        )
        return [on_table("duplicates", text, WARNING)]
    if n_copies:
        text = "the columns have so few values that rows are equal by chance"
        return [on_table("duplicates", text, SKIPPED)]
    return []
