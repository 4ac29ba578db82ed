"""Saved models: their version, our own objects as plain dictionaries, a fingerprint of the rows.

skops refuses types it does not know. What a fitted classifier holds beside arrays and numbers is
therefore written as dictionaries, and read back into classes of a few parts of bayesknn and no
others.

A newer version may have written what this one reads otherwise or not at all: what can be read is
read with a warning, and where it cannot the error says why.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib import import_module
from typing import Any

import numpy as np

from bayesknn._utils.checks import category_name, is_sparse, read_columns
from bayesknn._version import __version__

_CLASS = "bayesknn class"
_KEY = "_bayesknn_version"
# What a file holds and how; it changes where an older file can no longer be read as it is.
_FORMAT_KEY, _FORMAT = "_bayesknn_format", 3

# Attributes that may hold NaN or infinity: reports, priors that exclude a k, residual correlations
# without pairs, ranges of constant columns, and scores of columns that were not tried.
_MAY_BE_INFINITE = (
    "diagnostics_", "_draws", "prior", "prior_", "correlation", "ranges_",
    "k_probabilities_error_", "candidate_scores_", "candidate_errors_",
)  # fmt: skip


def _is_kept(home: str) -> bool:
    """Whether the classes of a module may be written and restored: an estimator holds them."""
    package, _, path = home.partition(".")
    parts = ("classifier", "graph", "model", "pooled", "predictive", "sureness", "tables")
    return package == "bayesknn" and path.partition(".")[0] in parts


def pack(value: Any) -> Any:
    """Return a value with every object of ours, at any depth, as a dictionary."""
    cls = type(value)
    if _is_kept(cls.__module__):
        if hasattr(value, "state_for_file"):
            state = value.state_for_file()
        elif hasattr(value, "_asdict"):
            state = value._asdict()
        else:
            state = value.__getstate__() or {}
        name = f"{cls.__module__}.{cls.__qualname__}"
        return {_CLASS: name, **{field: pack(part) for field, part in state.items()}}
    if cls is dict:
        return {key: pack(part) for key, part in value.items()}
    if cls in (list, tuple):
        return cls(pack(part) for part in value)
    return value


def unpack(value: Any, name: str | None = "") -> Any:
    """Return what :func:`pack` was given; ``name`` is None where NaN and infinity are allowed."""
    if type(value) in (list, tuple):
        return type(value)(unpack(part, name) for part in value)
    if type(value) is not dict:
        if name is not None and isinstance(value, float | np.ndarray):
            if np.asarray(value).dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(f"the saved model was changed: {name!r} is not finite")
        return value
    state = {
        key: unpack(part, None if name is None or key in _MAY_BE_INFINITE else str(key))
        for key, part in value.items()
        if key != _CLASS
    }
    if _CLASS not in value:
        return state
    home, _, name = str(value[_CLASS]).rpartition(".")
    cls: Any = None
    if _is_kept(home):
        with suppress(ImportError):
            cls = getattr(import_module(home), name, None)
    if not isinstance(cls, type) or cls.__module__ != home:
        raise ValueError(
            f"the saved model holds {value[_CLASS]!r}, which is not a class of bayesknn as it is "
            "now; fit the model again"
        )
    try:
        if hasattr(cls, "_fields"):
            return cls(**state)
        restored: Any = object.__new__(cls)
        if hasattr(cls, "__setstate__"):
            restored.__setstate__(state)
        else:
            # Not by setattr, which frozen dataclasses refuse.
            restored.__dict__.update(state)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"the saved model's {name} cannot be read: {error!r}") from error
    return restored


@contextmanager
def reading(what: str, version: Any) -> Iterator[None]:
    """Warn if a newer version wrote what is read in the block, and name it if that fails.

    Parameters
    ----------
    what : str
        Subject of the sentence: "the model".
    version : str or None
        That wrote it; None of files from before versions were kept.

    Examples
    --------
    >>> from bayesknn._utils.saving import reading
    >>> with reading("the model", "999.1"):
    ...     raise KeyError("beta")
    Traceback (most recent call last):
    ...
    ValueError: the model was written by bayesknn 999.1, which is newer than this one (...), and ...
    """
    if version is None or _order(str(version)) <= _order(__version__):
        yield
        return
    told = f"{what} was written by bayesknn {version}, which is newer than this one ({__version__})"
    try:
        yield
    except Exception as error:
        raise ValueError(f"{told}, and cannot be read: update bayesknn") from error
    warnings.warn(f"{told}: update bayesknn, or trust no result blindly", stacklevel=4)


def _order(version: str) -> tuple[list[int], bool]:
    """Return what versions are sorted by: the numbers, and whether it is a release."""
    numbers, rest = re.fullmatch(r"([\d.]*)(.*)", version, re.DOTALL).groups()  # type: ignore[union-attr]
    return [int(number) for number in numbers.split(".") if number], not rest


class VersionMixin:
    """An estimator whose saved state, by pickle or skops, says which version wrote it.

    Files, by skops, hold what ``__getstate__`` returns: plain dictionaries, from which long lists
    of neighbours are left out. Pickle, copies and the workers of joblib and Dask take everything.
    """

    def __getstate__(self) -> dict[str, Any]:
        state = self._state()
        # The parameters of the fit: a file holds them once, as they are set.
        state.pop("_params_of_fit", None)
        return pack(state) | _stamp()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _make_empty, (type(self),), self._state() | _stamp()

    def __setstate__(self, state: dict[str, Any]) -> None:
        state, what = dict(state), f"the {type(self).__name__}"
        with reading(what, state.pop(_KEY, None)):
            saved_format = state.pop(_FORMAT_KEY, 0)
            if saved_format != _FORMAT:
                raise ValueError(
                    f"{what} was saved in format {saved_format}, and this bayesknn reads format "
                    f"{_FORMAT}; fit it again"
                )
            self._restore(unpack(state))

    def _state(self) -> dict[str, Any]:
        """Return what is kept."""
        return {**super().__getstate__()}  # type: ignore[dict-item]

    def _restore(self, state: dict[str, Any]) -> None:
        """Take a state of this version over."""
        super().__setstate__(state)  # type: ignore[misc]


def _stamp() -> dict[str, Any]:
    return {_KEY: __version__, _FORMAT_KEY: _FORMAT}


def _make_empty(cls: Any) -> Any:
    return cls.__new__(cls)


def fingerprint(X: Any, labels: np.ndarray) -> dict[str, str]:
    """Return digests of the labels and of every value of X, row by row in their order.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, p)
    labels : ndarray of shape (n,)
        Class numbers.

    Returns
    -------
    dict of str
        ``labels`` and ``rows``. Equal values have equal digests whatever the type of the table and
        of its numbers, since numbers are compared as float64 and categories by name.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesknn._utils.saving import fingerprint
    >>> X, labels = np.array([[1, 2], [3, 4]]), np.array([0, 1])
    >>> fingerprint(X, labels) == fingerprint(pd.DataFrame(X.astype(np.float32)), labels)
    True
    >>> fingerprint(X, labels) == fingerprint(X[::-1], labels)
    False
    """
    rows = blake2b(digest_size=8)
    for values in _split_values(X):
        if values.dtype == object:
            # Text repeats: the name of each is looked up once, which takes a tenth of the time.
            cells = values.tolist()
            names = {cell: category_name(cell) for cell in set(filter(_is_text, cells))}
            known = [names[cell] if _is_text(cell) else category_name(cell) for cell in cells]
            rows.update("\0".join(map(str, known)).encode())
        else:
            numbers = values.astype(np.float64) + 0.0  # -0 is 0
            numbers[np.isnan(numbers)] = np.nan
            rows.update(numbers)
        rows.update(b"\0\0")
    return {
        "labels": blake2b(labels.astype(np.int64).tobytes(), digest_size=8).hexdigest(),
        "rows": rows.hexdigest(),
    }


def _is_text(cell: Any) -> bool:
    return type(cell) is str


def _split_values(X: Any) -> Iterator[np.ndarray]:
    """Yield the columns of a table, categories as objects, or the parts of a sparse matrix."""
    if is_sparse(X):
        matrix = X.tocsr(copy=True)
        matrix.sort_indices()
        yield from (matrix.indptr, matrix.indices, matrix.data)
        return
    for column in read_columns(X):
        yield column.values.astype(object) if column.is_category else column.values
