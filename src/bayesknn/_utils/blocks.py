"""Dask collections of points, block by block: what they are, and predictions of them.

A block is what one task holds: a chunk of a Dask array's rows, or a partition of a Dask frame.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from bayesknn._utils.extras import require


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask itself is not imported."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def import_dask(what: str) -> Any:
    """Return Dask, or say which extra brings it."""
    require("dask.array", f"{what} needs", "distributed", "Dask")
    return require("dask", f"{what} needs", "distributed", "Dask")


def as_blocks(X: Any, name: str = "X") -> list[Any]:
    """Return the blocks of a Dask array or frame, as Dask's delayed values."""
    if getattr(X, "ndim", 2) == 2 and hasattr(X, "rechunk") and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if not hasattr(X, "to_delayed"):
        raise ValueError(f"{name} is a {type(X).__name__}; pass a Dask array or frame")
    # An optimized graph reads several files of few columns as one partition, so that X and y of one
    # folder would have other blocks.
    parts = X.to_delayed(optimize_graph=False)
    return list(np.ravel(parts)) if isinstance(parts, np.ndarray) else list(parts)


def block_sizes(X: Any) -> list[float]:
    """Return the number of rows in each block; NaN where Dask does not know it."""
    if hasattr(X, "chunks"):
        return list(X.chunks[0])
    return [float("nan")] * X.npartitions


def stack_blocks(parts: Sequence[Any], sizes: Sequence[float], like: np.ndarray) -> Any:
    """Return delayed blocks as one Dask array; ``like`` has its dtype and its other axes."""
    import dask.array as da

    arrays = [
        da.from_delayed(part, (size, *like.shape[1:]), meta=like[:0])
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


class Answered(NamedTuple):
    """A block of new points, and what a graph over blocks answered about them.

    Attributes
    ----------
    points : ndarray of shape (m, p)
    answer : NeighborQuery
    """

    points: np.ndarray
    answer: Any


def by_blocks[**P, R](method: Callable[P, R]) -> Callable[P, R]:
    """Let a method that predicts take Dask collections: each block is predicted by itself.

    The result is then a Dask array, and nothing is computed yet. Type checkers see the method as it
    is written, for arrays in memory.
    """
    whole: Callable[..., Any] = method

    @functools.wraps(method)
    def predict(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        # A classifier whose training points lie in blocks searches them for each block of X.
        search = getattr(self, "_search_blocks", lambda X: None)(X)
        if search is None and not is_dask(X):
            return whole(self, X, *args, **kwargs)
        dask = import_dask("predicting a Dask collection")
        if search is None:
            model = dask.delayed(self, traverse=False)
            search = X, model, as_blocks(X), self, _make_row(self, X)
        X, model, parts, example, row = search
        # On a made-up row: shapes, and what is wrong with the arguments, are known at once.
        like = np.asarray(whole(example, row, *args, **kwargs))
        call = dask.delayed(_call, pure=False)
        parts = [
            call(model, predict.__name__, b, part, args, kwargs) for b, part in enumerate(parts)
        ]
        return stack_blocks(parts, block_sizes(X), like)

    return cast("Callable[P, R]", predict)


def _call(
    model: Any, name: str, b: int, block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> np.ndarray:
    try:
        if isinstance(block, Answered):
            model, block = model.open(block.answer), block.points
        return getattr(model, name)(block, *args, **kwargs)
    except ValueError as error:
        raise ValueError(f"in block {b}: {error}") from None


def _make_row(model: Any, X: Any) -> Any:
    """Return a row that looks like those of X, without computing any: one of training if known."""
    graph = getattr(model, "graph_", None)
    known = None if graph is None else graph.example_row()
    if hasattr(X, "chunks"):
        is_alike = known is not None and len(known) == X.shape[1]
        return np.array([known] if is_alike else np.zeros((1, X.shape[1])), X.dtype)
    import pandas as pd

    if known is not None and len(known) == len(X.columns):
        return pd.DataFrame([known], columns=X.columns)
    columns = {
        name: pd.Series([_example_of(dtype)], dtype=dtype) for name, dtype in X.dtypes.items()
    }
    return pd.DataFrame(columns)


def _example_of(dtype: Any) -> Any:
    categories = getattr(dtype, "categories", None)
    if categories is not None and len(categories) > 0:
        return categories[0]
    return 0 if getattr(dtype, "kind", "O") in "biufM" else "a"
