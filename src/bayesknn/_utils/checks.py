"""Checks on what users pass in: tables of points, labels, counts and choices.

Each check returns what the caller needs or raises a one-line ``ValueError`` that names the column,
row or value. Rows and unnamed columns are counted from 0. pandas and polars are never imported:
their frames are recognised by what they can do.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np

# The name of the category of missing values, which no text is.
MISSING = ("missing",)


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    label : str or int
        Its name, or its position in an unnamed table.
    values : ndarray of shape (n,)
        float64 for numbers, bool for truth values, object for anything else.
    is_category : bool
        Whether the table itself says that this column holds categories: a category dtype,
        strings or truth values.
    declared : tuple
        Categories that the dtype lists, whether or not a row has them.
    is_ordered : bool
        Whether the dtype says that they are listed from low to high.
    """

    label: str | int
    values: np.ndarray
    is_category: bool
    declared: tuple[Any, ...] = ()
    is_ordered: bool = False

    def take(self, rows: np.ndarray | slice) -> Column:
        """Return some of the rows."""
        return self._replace(values=self.values[rows])


# Largest sparse table that is converted, in numbers: 400 MB. A larger limit fills the memory of
# small machines, a smaller one rejects the encoded categories of common tables.
MOST_NUMBERS = 50_000_000
# Sums of squares of larger numbers overflow, and those of smaller ones than its inverse vanish.
LARGEST = 1e150


def check_count(value: Any, name: str, low: int = 1, high: int | None = None) -> int:
    """Return ``value`` as an int in ``low..high``.

    NumPy's integers are integers; truth values and floats are not, even whole ones.
    """
    expected = f">= {low}" if high is None else f"in {low}..{high}"
    if not isinstance(value, bool | np.bool_):
        with contextlib.suppress(TypeError):
            count = operator.index(value)
            if low <= count and (high is None or count <= high):
                return count
    raise ValueError(f"{name} must be an integer {expected}, got {show(value)}")


def check_positive(value: Any, name: str) -> float:
    """Return ``value`` as a finite float above 0."""
    with contextlib.suppress(TypeError, ValueError):
        if not isinstance(value, str) and 0 < float(value) < float("inf"):
            return float(value)
    raise ValueError(f"{name} must be a positive number, got {show(value)}")


def as_floats(values: Any, name: str) -> np.ndarray:
    """Return numbers as a float64 array of the shape that they came in.

    Examples
    --------
    >>> from bayesknn._utils.checks import as_floats
    >>> as_floats(["a"], "beta")
    Traceback (most recent call last):
    ...
    ValueError: beta must be numeric, got ['a']
    """
    try:
        if np.asarray(values).dtype.kind not in "SUMm":
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be numeric, got {show(values)}")


def check_k(k: Any, k_max: int, source: str) -> int:
    """Return k as an int in 1..k_max, the range of ``source``; 3.0 is accepted as 3."""
    whole = isinstance(k, float | np.floating) and float(k).is_integer()
    try:
        return check_count(int(k) if whole else k, "k", 1, k_max)
    except ValueError:
        message = f"k must be an integer in 1..{k_max} (k_max of {source}), got {show(k)}"
        raise ValueError(message) from None


def check_indices(values: Any, name: str, high: int, low: int = 0) -> np.ndarray:
    """Return whole numbers by which arrays are read, all in ``low..high``.

    Compiled code does not look where it reads: a file that was changed would end the process, or
    give some answer or other.

    Examples
    --------
    >>> from bayesknn._utils.checks import check_indices
    >>> check_indices([0, -1], "labels", 1)
    Traceback (most recent call last):
    ...
    ValueError: labels must hold integers in 0..1, got -1
    """
    array = np.asarray(values)
    is_whole = array.dtype.kind in "iu"
    bad = array[(array < low) | (array > high)].tolist() if is_whole else [array.dtype]
    if bad:
        raise ValueError(f"{name} must hold integers in {low}..{high}, got {bad[0]}")
    return array


def check_part(value: Any, name: str) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    if isinstance(value, float | np.floating) and 0.0 < value < 1.0:
        return float(value)
    raise ValueError(f"{name} must lie between 0 and 1, got {show(value)}")


def check_level(level: Any) -> float:
    """Return the level of an interval, strictly between 0 and 1."""
    return check_part(level, "level")


def check_fraction(value: Any, name: str) -> float:
    """Return ``value`` as a float, or raise ValueError unless it lies in [0, 1]."""
    if isinstance(value, int | float | np.number) and 0.0 <= value <= 1.0:
        return float(value)
    raise ValueError(f"{name} must lie between 0 and 1, got {show(value)}")


def check_choice(value: Any, name: str, choices: Iterable[str]) -> str:
    """Return ``value``, which must be one of the words in ``choices``.

    Examples
    --------
    >>> from bayesknn._utils.checks import check_choice
    >>> check_choice(["grid"], "inference", ("auto", "grid"))
    Traceback (most recent call last):
    ...
    ValueError: inference must be one of auto, grid, got ['grid']
    """
    choices = tuple(choices)
    # A word first: what is compared with a list or an array is no truth value, or has no hash.
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(choices)}, got {show(value)}")


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return ``n_jobs`` as joblib takes it: None, or an integer that is not 0.

    Examples
    --------
    >>> from bayesknn._utils.checks import check_n_jobs
    >>> check_n_jobs(0)
    Traceback (most recent call last):
    ...
    ValueError: n_jobs must be None, a positive integer or a negative one (-1: all cores), got 0
    """
    is_count = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is None or (is_count and n_jobs != 0):
        return n_jobs
    raise ValueError(
        "n_jobs must be None, a positive integer or a negative one (-1: all cores), "
        f"got {show(n_jobs)}"
    )


def check_verbose(verbose: Any) -> int:
    """Return ``verbose`` as a number: truth values are 0 and 1.

    Examples
    --------
    >>> from bayesknn._utils.checks import check_verbose
    >>> check_verbose(True)
    1
    """
    return check_count(int(verbose) if isinstance(verbose, bool) else verbose, "verbose", 0)


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    from scipy.sparse import issparse

    return issparse(X)


def fill_in(X: Any) -> np.ndarray:
    """Return sparse feature values as an array, or raise ValueError if that would be too large."""
    n, p = X.shape
    if n * p > MOST_NUMBERS:
        raise ValueError(
            f"X is sparse, and its {n:,} x {p:,} numbers take {8e-9 * n * p:.1f} GB as an array: "
            "make fewer columns (OneHotEncoder(max_categories=..., sparse_output=False)), or pass "
            "a sparse graph of distances with metric='precomputed'"
        )
    return np.asarray(X.toarray())


def is_arrow(X: Any) -> bool:
    """Whether X is a table or a record batch of pyarrow."""
    return isinstance(getattr(getattr(X, "schema", None), "names", None), list)


def count_rows(X: Any) -> int:
    """Return the number of rows of a table, matrix or list of rows.

    Examples
    --------
    >>> from bayesknn._utils.checks import count_rows
    >>> count_rows([[1, 2], [3, 4], [5, 6]])
    3
    """
    if hasattr(X, "__len__") and not hasattr(X, "shape"):
        return len(X)
    if not (shape := getattr(X, "shape", None) or np.asarray(X).shape):
        raise TypeError(f"expected a table with rows, got {show(X)}")
    return int(shape[0])


def column_names(X: Any) -> list[str] | None:
    """Names of a frame's columns, or None where there are none or not all are strings.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesknn._utils.checks import column_names
    >>> column_names(pd.DataFrame({"age": [1.0], "sex": ["f"]}))
    ['age', 'sex']
    >>> column_names(np.zeros((2, 2))) is None
    True
    """
    refuse_lazy(X)
    names = X.schema.names if is_arrow(X) else list(getattr(X, "columns", ()))
    has_names = names and all(isinstance(name, str) for name in names)
    return [str(name) for name in names] if has_names else None


def check_names(X: Any, names: list[str] | None, caller: str) -> None:
    """Refuse a frame whose columns are not named as those that ``caller`` was built on.

    Parameters
    ----------
    X : array or frame
        An unnamed table passes: its columns are taken in order.
    names : list of str or None
        What the columns were called; None accepts any names.
    caller : str
        Class name for the message.
    """
    given = column_names(X)
    if names is None or given is None or given == names:
        return
    lacking = [name for name in names if name not in given]
    what = f"lacks the column {lacking[0]!r}" if lacking else f"has the columns {given}"
    raise ValueError(f"X {what}; {caller} was built on {names}")


def check_n_features(n_given: int, n_expected: int, caller: str) -> None:
    """Refuse a table that has not as many columns as the one ``caller`` was built on."""
    if n_given != n_expected:
        raise ValueError(
            f"X has {n_given} features, but {caller} is expecting {n_expected} features as input"
        )


def check_points(X: Any, may_miss: bool = False) -> np.ndarray:
    """Return a table of numbers as a C-ordered float64 array of shape (n, p).

    Parameters
    ----------
    X : array-like or frame of shape (n, p)
        Finite numbers; truth values count as 0 and 1.
    may_miss : bool
        Whether values may be missing, which are NaN in the result.

    Returns
    -------
    ndarray of shape (n, p), dtype float64
        The caller's own array where nothing had to be changed.
    """
    X = fill_in(X) if is_sparse(X) else _unmask(X)
    if isinstance(X, list | tuple):
        with contextlib.suppress(ValueError, TypeError):
            X = table if (table := np.asarray(X)).dtype.kind in "biuf" else X
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        _check_shape(X.shape)
        # Writeable and of the base class, or the kernels would be compiled a second time for it.
        points = np.require(X, np.float64, ["C", "W", "E"])
        check_finite(points, range(points.shape[1]), may_miss)
        return points
    columns = read_columns(X)
    points = np.empty((len(columns[0].values), len(columns)))
    for j, column in enumerate(columns):
        advice = "encode it, or use metric='gower' for categories"
        points[:, j] = as_numbers(column, advice, may_miss)
    check_finite(points, [column.label for column in columns], may_miss)
    return points


def check_search_params(params: Any) -> None:
    """Raise ValueError unless there are no parameters of the search, which it has none of."""
    if params is not None and not (isinstance(params, dict) and not params):
        raise ValueError(
            f"search_params must be None: no search has parameters, got {show(params)}"
        )


def check_units(points: np.ndarray, labels: Any, is_new: bool = False) -> np.ndarray:
    """Return points whose distances are neither infinite nor all 0; refuse others.

    Parameters
    ----------
    points : ndarray of shape (n, p)
        Finite.
    labels : sequence of length p
        What the columns are called.
    is_new : bool
        New points may be as near each other as they like.
    """
    largest = max(points.max(), -points.min())
    if largest > LARGEST:
        row, j = (int(index) for index in np.argwhere(np.abs(points) > LARGEST)[0])
        raise ValueError(
            f"X has {points[row, j]} in row {row}, column {labels[j]!r}, whose square overflows; "
            "rescale it"
        )
    spread = float((points.max(axis=0) - points.min(axis=0)).max())
    if not is_new and 0 < spread < 1 / LARGEST:
        raise ValueError(
            f"the numbers of a column differ by {spread:.2g} at most, whose square vanishes; "
            "rescale them"
        )
    return points


def read_columns(X: Any) -> list[Column]:
    """Split a frame, array or list of rows into columns, numbers apart from categories.

    Examples
    --------
    >>> from bayesknn._utils.checks import read_columns
    >>> [column.is_category for column in read_columns([[1.5, "red"], [2.5, "blue"]])]
    [False, True]
    """
    refuse_lazy(X)
    X = _unmask(X)
    if is_sparse(X):
        X = fill_in(X)
    if is_arrow(X):
        return [
            _read_column(name, np.asarray(column), str(column.type).startswith("dictionary"))
            for name, column in zip(X.schema.names, X.columns, strict=True)
        ]
    if hasattr(X, "columns") and hasattr(X, "dtypes") and not isinstance(X, np.ndarray):
        _check_shape(X.shape)
        values = X.iloc if hasattr(X, "iloc") else X
        names: list[Any] = column_names(X) or list(range(X.shape[1]))
        return [_read_series(name, values[:, j]) for j, name in enumerate(names)]
    # As objects, because numpy would turn [[1, "a"]] into strings only.
    table = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if table.ndim == 1 and any(isinstance(row, list | tuple) for row in table):
        raise ValueError("X must be a table: its rows have different lengths")
    _check_shape(table.shape)
    return [_read_column(j, table[:, j], False) for j in range(table.shape[1])]


def as_numbers(column: Column, advice: str = "correct it", may_miss: bool = False) -> np.ndarray:
    """Return the float64 values of a column, or name the first value that is not a number."""
    values = column.values
    if values.dtype != object:
        return values.astype(np.float64)
    if may_miss:
        values = np.array([np.nan if is_missing(value) else value for value in values], object)
    for row, value in enumerate(values):
        if is_missing(value) and not may_miss:
            refuse_missing("NaN", row, column.label)
        if isinstance(value, str | bytes):
            raise ValueError(
                f"column {column.label!r} holds {value!r} in row {row}, which is not a number; "
                f"{advice}"
            )
        if isinstance(value, complex | np.complexfloating):
            raise ValueError(f"Complex data not supported: row {row}, column {column.label!r}")
    try:
        return values.astype(np.float64)
    except TypeError as error:
        # scikit-learn's estimator checks ask for a TypeError here and for float()'s own words.
        raise TypeError(f"column {column.label!r}: {error}") from None
    except OverflowError:
        raise ValueError(f"column {column.label!r} holds a value too large for float64") from None


def as_codes(columns: list[Column]) -> np.ndarray | None:
    """Return columns as numbers (n, p), a category by its number; None if there are no columns.

    A missing number is the mean of its column.

    Examples
    --------
    >>> from bayesknn._utils.checks import as_codes, read_columns
    >>> as_codes(read_columns([[1.5, "red"], [2.5, "blue"]])).tolist()
    [[1.5, 1.0], [2.5, 0.0]]
    """
    if not columns:
        return None
    codes = np.column_stack([
        np.unique(column.values.astype(str), return_inverse=True)[1]
        if column.is_category
        else as_numbers(column, may_miss=True)
        for column in columns
    ])  # fmt: skip
    missing = np.isnan(codes)
    totals = np.where(missing, 0.0, codes).sum(axis=0)
    return np.where(missing, totals / np.maximum((~missing).sum(axis=0), 1), codes)


def check_labels(
    y: Any, n_points: int | None = None, least: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes and each point's class number.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: strings, integers, truth values, or floats that are whole numbers.
    n_points : int, optional
        How many labels there must be.
    least : int
        How many classes there must be.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n,), dtype intp
        ``classes[labels]`` equals ``y``.
    """
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    refuse_lazy(y, "y")
    if np.ma.is_masked(y):
        raise ValueError(
            f"y is masked in row {int(np.argwhere(np.ma.getmaskarray(y))[0][0])}; every point "
            "needs a label"
        )
    if isinstance(y, str | bytes) or is_sparse(y):
        raise ValueError(f"y is {show(y)}; it must hold one label for each row of X")
    try:
        # pyarrow's own conversion rejects text and booleans.
        is_own = hasattr(y, "to_numpy") and not type(y).__module__.startswith("pyarrow")
        values = np.asarray(y.to_numpy() if is_own else y)
    except ValueError:
        row = next((i for i, label in enumerate(y) if np.ndim(label)), 0)
        raise ValueError(
            f"y has {show(y[row])} in row {row}; it must hold one label for each row of X"
        ) from None
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        # numpy turns [1, "a"] into strings without a word.
        values = np.array([*np.asarray(y, dtype=object)], dtype=object)
    _check_label_values(values)
    values = column_or_1d(values, warn=True)
    if n_points is not None and len(values) != n_points:
        raise ValueError(f"X has {n_points} rows but y has {len(values)} labels")
    if len(values) == 0:
        raise ValueError("y is empty")
    try:
        classes, labels = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(
            f"y mixes labels of types {', '.join(kinds)}; use one type, for instance strings"
        ) from None
    if len(classes) < least:
        raise ValueError(
            f"y holds only one class, {classes.tolist()[0]!r}; classification needs at least two"
        )
    return classes, labels


def _check_label_values(values: np.ndarray) -> None:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers")
    if values.dtype.kind not in "fOmM":
        return
    for row, value in enumerate(values.ravel().tolist()):
        if is_missing(value) or (isinstance(value, float) and np.isinf(value)):
            what = "NaN" if is_missing(value) else value
            raise ValueError(f"y has {what} in row {row}; every point needs a label")
        if isinstance(value, float | np.floating) and not float(value).is_integer():
            raise ValueError(
                f"Unknown label type: continuous; y has {float(value)!r} in row {row}, "
                "labels must be strings or whole numbers"
            )


def check_groups(groups: Any, n_points: int | None) -> np.ndarray | None:
    """Return the group number of each row, uint32, in the order in which groups come first.

    Parameters
    ----------
    groups : array-like of shape (n,) or None
        Any values: words, numbers, dates. None of them may be missing.
    n_points : int or None
        How many there must be.

    Returns
    -------
    ndarray of shape (n,) or None
        None where no two rows belong together.

    Examples
    --------
    >>> from bayesknn._utils.checks import check_groups
    >>> check_groups(["b", "a", "b"], 3).tolist(), check_groups([3, 1, 2], 3)
    ([0, 1, 0], None)
    """
    if groups is None:
        return None
    refuse_lazy(groups, "groups")
    values = np.asarray(groups.to_numpy() if hasattr(groups, "to_numpy") else groups)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1 or len(values) != n_points:
        raise ValueError(
            f"groups must name the group of each of the {n_points} rows, got shape {values.shape}"
        )
    seen: dict[Any, int] = {}
    codes = np.empty(len(values), np.uint32)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise ValueError(
                f"groups has {value} in row {row}; a row that belongs to no other needs a name of "
                "its own"
            )
        codes[row] = seen.setdefault(value, len(seen))
    if len(seen) == 1 < len(codes):
        raise ValueError(
            "all rows belong to one group: nothing is left to predict a new group from"
        )
    return None if len(seen) == len(codes) else codes


def label_dtype(n_classes: int) -> type[np.unsignedinteger]:
    """Return the unsigned type that the kernels use for labels of ``n_classes`` classes."""
    return np.uint8 if n_classes <= 256 else np.uint32


def check_label_vector(labels: Any, n_points: int, n_classes: int | None = None) -> np.ndarray:
    """Return one label per point as a contiguous unsigned array.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        Integers in ``0..n_classes - 1``.
    n_points : int
    n_classes : int, optional
        Without it any label from 0 up is accepted.

    Returns
    -------
    ndarray of shape (n_points,), uint8, or uint32 beyond 256 classes
    """
    if np.ndim(labels) != 1:
        raise ValueError(f"labels must be one-dimensional, got shape {np.shape(labels)}")
    return check_label_draws(labels, n_points, n_classes)


def check_label_draws(labels: Any, n_points: int, n_classes: int | None = None) -> np.ndarray:
    """Return one label vector, or a batch of shape (n_draws, n_points), as an unsigned array."""
    array = np.asarray(labels)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"labels must have shape ({n_points},) or (n_draws, {n_points}), got {array.shape}"
        )
    if array.shape[-1] != n_points:
        raise ValueError(
            f"labels must hold one label for each of the {n_points} points, got {array.shape[-1]}"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"labels must be integers 0, 1, 2, ..., got dtype {array.dtype}")
    top = 2**32 if n_classes is None else n_classes
    is_whole = array == np.floor(array) if array.dtype.kind == "f" else np.True_
    is_label = is_whole & (array >= 0) & (array < top)
    if not is_label.all():
        where = np.unravel_index(int(np.argmin(is_label)), array.shape)
        what = "be 0 or more" if n_classes is None else f"lie in 0..{top - 1} ({top} classes)"
        what = what if is_whole.all() else "be integers"
        place = f"position {where[-1]}" + (f" of draw {where[0]}" if array.ndim == 2 else "")
        raise ValueError(f"labels must {what}, got {array[where]} at {place}")
    if n_classes is None:
        n_classes = int(array.max(initial=0)) + 1
    return np.ascontiguousarray(array, dtype=label_dtype(n_classes))


def category_name(value: Any) -> Hashable:
    """Return what a category is called, whatever its type: the same as text is the same category.

    Examples
    --------
    >>> from bayesknn._utils.checks import category_name
    >>> [category_name(value) for value in (3, 3.0, "3", " 3", True, "True", 0.5)]
    ['3', '3', '3', '3', 'True', 'True', '0.5']
    """
    if isinstance(value, tuple):
        return value  # a name already, such as that of missing values
    if is_missing(value):
        return MISSING
    text = str(value).strip()
    # A whole number is written with and without a point.
    whole = text.rstrip("0").removesuffix(".") if "." in text else ""
    return whole if whole.removeprefix("-").isdecimal() else text


def category_codes(names: Iterable[Any]) -> dict[Hashable, int]:
    """Return the number of each category by its name; truth values have two names, as NumPy's."""
    codes = {category_name(name): number for number, name in enumerate(names)}
    for one, other in (("True", "1"), ("False", "0"), ("1", "True"), ("0", "False")):
        if one in codes:
            codes.setdefault(other, codes[one])
    return codes


def _read_series(label: str | int, series: Any) -> Column:
    # A category dtype says so in its name: 'category' in pandas, 'Categorical' or 'Enum(...)' in
    # polars; its values alone may look like numbers.
    is_category = str(series.dtype).lower().startswith(("categor", "enum"))
    declared = getattr(series.dtype, "categories", None) if is_category else None
    column = _read_column(label, series.to_numpy(), is_category)
    if declared is None or str(series.dtype).startswith("Categorical"):
        return column
    is_ordered = bool(getattr(series.dtype, "ordered", False))
    return column._replace(declared=tuple(declared.to_list()), is_ordered=is_ordered)


def _read_column(label: str | int, values: np.ndarray, is_category: bool) -> Column:
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {label!r} holds complex numbers")
    if kind in "mMV":
        raise ValueError(
            f"column {label!r} has dtype {values.dtype}, which is neither a number nor a category"
        )
    if kind in "iuf":
        return Column(label, values.astype(np.float64), is_category)
    if kind == "b":
        return Column(label, values, True, (False, True))
    values = values.astype(object)
    types = {type(value) for value in values}
    is_text = any(issubclass(kind, str | bytes | bool | np.bool_) for kind in types)
    return Column(label, values, is_category or is_text)


def _unmask(X: Any) -> Any:
    """Return a masked array without its mask, which must hide nothing."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    hidden = np.argwhere(np.ma.getmaskarray(X))
    if len(hidden) and X.ndim == 2:
        refuse_missing("a masked value", int(hidden[0][0]), int(hidden[0][1]))
    return X.data


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data with "
            "reshape(-1, 1) if it has one feature or reshape(1, -1) if it is one point"
        )
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required."
            )


def check_finite(points: np.ndarray, labels: Any, may_miss: bool = False) -> None:
    """Raise ValueError if a number is infinite, or NaN unless values may be missing."""
    bad = np.argwhere(np.isinf(points) if may_miss else ~np.isfinite(points))
    if len(bad):
        row, j = bad[0].tolist()
        value = "NaN" if np.isnan(points[row, j]) else str(points[row, j])
        refuse_missing(value, row, labels[j])


def show(value: Any) -> str:
    """Return one line that tells a reader which value it was.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn._utils.checks import show
    >>> show(np.float64(2.5)), show(np.zeros((2, 2)))
    ('2.5', 'an array of shape (2, 2)')
    """
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def refuse_lazy(X: Any, name: str = "X") -> None:
    """Refuse a frame that has not been read yet: it has neither rows nor a shape."""
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError(f"{name} is a {type(X).__name__}; pass {name}.collect()")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or what NumPy and pandas call NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def refuse_missing(value: str, row: int, label: str | int) -> NoReturn:
    """Raise the error for a value that is not there, or not finite."""
    raise ValueError(
        f"X has {value} in row {row}, column {label!r}; remove the row or fill in the value"
    )
