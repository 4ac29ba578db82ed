"""What the two classifiers share: checks at fit and predict, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from bayesknn._validation import check_labels, check_n_features, check_points, column_names
from bayesknn._values import refuse_lazy

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method as it is."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "affordable_neighbors",
    "check_new_points",
    "check_training",
    "follow_stages",
    "with_callbacks",
]

# Neighbour lists longer than this in total (n * k) are not built unless they are asked for.
_MAX_ENTRIES = 20_000_000
# Nor are longer lists: the share of a class among so many is known to two per cent or better.
_MAX_NEIGHBORS = 500


def check_training(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes and each row's class number."""
    refuse_lazy(X)
    return check_labels(y, _num_samples(X))


def check_new_points(estimator: Any, X: Any) -> None:
    """Refuse an unfitted estimator, and points that have not its columns."""
    check_is_fitted(estimator)
    refuse_lazy(X)
    shape = X.shape if hasattr(X, "shape") else np.asarray(X, dtype=object).shape
    if len(shape) < 2:
        check_points(X)  # says how to reshape
    if column_names(X) is None:
        # Before scikit-learn warns that the columns, too few or too many, have no names.
        check_n_features(shape[1], estimator.n_features_in_, type(estimator).__name__)
    validate_data(estimator, X, skip_check_array=True, reset=False)


def affordable_neighbors(class_sizes: np.ndarray) -> int:
    """Return the paper's K, the size of the smallest class, kept to n - 1, 500 and 2e7 / n."""
    n = int(class_sizes.sum())
    return min(int(class_sizes.min()), n - 1, _MAX_NEIGHBORS, max(1, _MAX_ENTRIES // n))


@contextmanager
def follow_stages(estimator: Any, X: Any, y: Any, n_stages: int) -> Iterator[Callable[[str], Any]]:
    """Tell scikit-learn's callbacks about the stages of a fit.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        Its ``fit`` is decorated with ``with_callbacks``.
    X, y
        The training data.
    n_stages : int
        How many stages there are at most.

    Yields
    ------
    stage : callable
        ``with stage("neighbours"):`` around each of them.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield _no_stage
        return
    context = estimator._init_callback_context(max_subtasks=n_stages)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        part = context.subcontext(task_name=name)
        part.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        yield
        part.call_on_fit_task_end(estimator=estimator, X=X, y=y)

    yield stage
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


@contextmanager
def _no_stage(name: str) -> Iterator[None]:
    yield
