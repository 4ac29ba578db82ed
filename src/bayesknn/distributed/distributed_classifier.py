"""The classifier on Dask collections: the one in memory, on a graph over blocks (Section 3.2).

The pseudo-likelihood and that of Holmes and Adams are products over points, so that cells of
points add up: the cells' tables of class counts together are those of the classifier in memory.
What follows from them, leave-one-out and intervals included, is its code.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import DOCUMENTATION, check_new_points, choose_k_max
from bayesknn._utils.blocks import Answered, as_blocks, block_sizes, import_dask, is_dask
from bayesknn._utils.checks import (
    check_choice,
    check_labels,
    check_n_features,
    check_points,
    check_units,
    label_dtype,
)
from bayesknn._utils.saving import fingerprint
from bayesknn.classifier import BayesianKNeighborsClassifier, Learned, Rows
from bayesknn.distributed.block_graph import (
    SAMPLE_ROWS,
    AnsweredGraph,
    BlockGraph,
    compute,
    hold,
    later,
    run_tasks,
    take_evenly,
)
from bayesknn.graph import NeighborQuery
from bayesknn.model import BoltzmannModel, Prior
from bayesknn.posterior.routes import FittedPosterior
from bayesknn.predictive import Predictive
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.groups import find_scored
from bayesknn.sureness.residuals import MAX_ROWS, examined_rows

# Rows among which rows of equal values are looked for, on the client. More cost its memory, 8 p
# bytes a row; fewer leave intervals wider than need be at values that many rows have.
MAX_COMPARED = 100_000

# Methods that need all training points in one place. There is no other list but what fit rejects.
NOT_POSSIBLE = (
    "predict_influence, predict_summary, sample_labels and predict_counts with prevalence='free' "
    "need all training points in one place, and these lie with the workers; "
    "pickle.loads(pickle.dumps(clf)) brings them to this machine, if its memory holds them"
)


class DistributedNeighborsClassifier(BayesianKNeighborsClassifier):
    """The Bayesian k-nearest-neighbour classifier on Dask arrays and frames.

    It is :class:`bayesknn.BayesianKNeighborsClassifier` on the same rows in the same order, to
    rounding, with points and their neighbours on the workers of a cluster. Predictions are Dask
    arrays in the blocks of X, not computed yet.

    It has no coherent likelihood and no chains, takes no ``groups``, and its distances are
    Euclidean: bring the columns to one scale beforehand. ``predict_influence``,
    ``predict_summary``, ``sample_labels`` and ``predict_counts`` with ``prevalence="free"`` raise
    ValueError, since they need all training points in one place; pickled and loaded again, or
    saved, the classifier has them there.

    Parameters
    ----------
    likelihood : {"pseudo", "holmes-adams"}, default="pseudo"
        The two that are products over points. The coherent model needs sweeps over the whole
        graph, hence one machine.
    max_neighbors, beta_max, prior, class_prior, class_prior_as, calibrate
        As in the classifier in memory. ``beta_max="auto"`` simulates on the client, on a graph of
        all points or, of more than 2,000, of 1,000 drawn at random.
    n_chains, n_draws : int, default=4, 5000
        Shape of the draws in ``posterior_``.
    random_state : None, int, SeedSequence, Generator or RandomState
        For ``beta_max="auto"`` and for the draws of ``posterior_``.
    verbose : int, default=0
        Above 0, work that takes more than two seconds shows its progress.

    Attributes
    ----------
    loo_proba_ : dask.array.Array of shape (n, n_classes)
        Class probabilities of each training point given the labels of all others, in the blocks of
        the training points.
    diagnostics_ : dict
        As in memory, and ``compared_rows``: the number of training rows among which rows of equal
        values were looked for, at most 100,000; ``cells``: the number of cells that the points were
        brought into, and of the pairs of cells that were searched.

    Notes
    -----
    Other attributes and methods are those of the classifier in memory.

    Points are brought into cells that are close in space, as many as there are blocks up to 8 and
    of about 25,000 rows beyond; pairs of cells farther apart than the neighbours of their points
    are not searched. With K neighbours, p columns and G classes a worker holds about 35 K + 16 p
    bytes for each row of its cells, and 10 bytes for each training row while it predicts. The
    client holds about 80 + 40 G bytes for each training row. What is fitted stays on the workers,
    and goes when the client closes.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.distributed import DistributedNeighborsClassifier
    >>> ripley = load_ripley()
    >>> X = da.from_array(ripley.X_train, chunks=(125, 2))
    >>> y = da.from_array(ripley.y_train, chunks=125)
    >>> with dask.config.set(scheduler="synchronous"):
    ...     clf = DistributedNeighborsClassifier(max_neighbors=60, beta_max=4.0).fit(X, y)
    ...     probabilities = clf.predict_proba(X[:2]).compute()
    >>> probabilities.shape, clf.predict_proba(X[:2])
    ((2, 2), dask.array<...>)
    """

    # Parameters of the classifier in memory that have one value here.
    inference = "auto"
    label_sampler = "swendsen-wang"
    metric = "euclidean"
    metric_params = None
    search = "auto"
    search_params = None
    n_warmup = 0
    n_jobs = 1
    _doc_link_template = f"{DOCUMENTATION}/api/bayesknn.distributed.{{estimator_name}}.html"

    def __init__(
        self,
        likelihood: str = "pseudo",
        *,
        max_neighbors: int | None = None,
        beta_max: float | str = "auto",
        prior: Any = None,
        class_prior: Any = None,
        class_prior_as: str = "offset",
        calibrate: bool = False,
        n_chains: int = 4,
        n_draws: int = 5000,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.max_neighbors = max_neighbors
        self.beta_max = beta_max
        self.prior = prior
        self.class_prior = class_prior
        self.class_prior_as = class_prior_as
        self.calibrate = calibrate
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, groups: None = None) -> DistributedNeighborsClassifier:
        """Compute the posterior of (beta, k) given the labels of the training points.

        Parameters
        ----------
        X : dask array or frame of shape (n, p)
            Training points.
        y : dask array or series of shape (n,)
            Their labels, in blocks of the same sizes.
        groups : None
            Rows that belong together are for the other classifiers: anything else is an error.

        Returns
        -------
        DistributedNeighborsClassifier
            Itself.
        """
        import_dask("DistributedNeighborsClassifier")
        if groups is not None:
            raise ValueError(
                "DistributedNeighborsClassifier takes no groups: it would count rows of the same "
                'group as neighbours; fit BayesianKNeighborsClassifier("pseudo") with groups, on '
                "one machine"
            )
        check_choice(self.likelihood, "likelihood", ("pseudo", "holmes-adams"))
        self._check_settings()
        rows = read_blocks(X, y, self.verbose)
        super().fit(rows, None)
        self._sizes = rows.sizes
        return self

    @property
    def loo_proba_(self) -> Any:
        """Class probabilities of the training points, each left out, as a Dask array."""
        import dask.array as da

        check_is_fitted(self)
        return da.from_array(self._loo_proba, chunks=(tuple(self._sizes), -1))

    @loo_proba_.setter
    def loo_proba_(self, value: np.ndarray) -> None:
        self._loo_proba = value
        # Until the fit knows the blocks of its points.
        if sum(getattr(self, "_sizes", ())) != len(value):
            self._sizes = [len(value)]

    def _check_training(  # type: ignore[override]
        self, X: Any, y: Any, groups: None
    ) -> tuple[np.ndarray, np.ndarray, None]:
        find_scored(X.labels, None)  # raises ValueError before any work if no row can be scored
        return X.classes, X.labels, None

    def _find_graph(self, X: Any, labels: np.ndarray, groups: Any) -> Any:
        k_max = choose_k_max(self.max_neighbors, self.prior, np.bincount(labels))
        return BlockGraph.from_blocks(
            X.points, X.sizes, X.samples, k_max, names=list(getattr(X.meta, "columns", [])) or None,
            both=self.likelihood == "pseudo", verbose=self.verbose,
        )  # fmt: skip

    def _describe_rows(self, X: Any, model: BoltzmannModel, labels: np.ndarray) -> Rows:
        n, graph = len(labels), cast("Any", model.graph)
        examined = examined_rows(n) if n > MAX_ROWS else np.arange(n)
        names = list(getattr(X.meta, "columns", range(X.meta.shape[1])))
        columns = graph.get_points(examined)
        return Rows(columns, names, self._find_copies(model, labels), examined)

    def _find_copies(self, model: BoltzmannModel, labels: np.ndarray) -> Copies | None:
        n = len(labels)
        rows = np.arange(n)
        if n > MAX_COMPARED:
            rows = np.sort(np.random.default_rng(0).choice(n, MAX_COMPARED, replace=False))
        graph: Any = model.graph
        is_here = not isinstance(graph, BlockGraph)
        values = graph.index.points[rows] if is_here else graph.get_points(rows)
        some = labels[rows]
        copies = Copies.from_rows(values, some, model.weights[some], model.n_classes)
        return copies if copies is None or n == len(rows) else copies._replace(rows=rows)

    def _keep(self, route: FittedPosterior, prior: Prior, learned: Learned, **about: Any) -> None:
        super()._keep(route, prior, learned, **about)
        graph: Any = self.graph_
        cells = {"number": len(graph.boxes), "pairs searched": graph.n_searched}
        self.diagnostics_ |= {"compared_rows": min(graph.n_points, MAX_COMPARED), "cells": cells}

    def _keep_names(self, X: Any, reset: bool = True) -> None:
        super()._keep_names(X.meta)

    def _take_fingerprint(self, X: Any, labels: np.ndarray) -> dict[str, str]:
        of_labels = fingerprint(np.zeros((1, 1)), labels)["labels"]
        rows = X.digests[0]
        if len(X.digests) > 1:
            rows = blake2b("".join(X.digests).encode(), digest_size=8).hexdigest()
        return {"labels": of_labels, "rows": rows}

    def _search_blocks(self, X: Any) -> Any:
        """Return X as a Dask collection, and what workers need to predict its blocks."""
        graph = getattr(self, "graph_", None)
        if not isinstance(graph, BlockGraph):
            return None
        import_dask("DistributedNeighborsClassifier")
        if is_dask(X):
            check_new_points(self, _get_meta(X))
        else:
            import dask.array as da

            check_new_points(self, X)
            X = da.from_array(check_points(X))
        searched = self._predictive.graph
        p, direction = self.n_features_in_, self._predictive.direction
        points = [later(_check_new, b, block, p) for b, block in enumerate(as_blocks(X))]
        answers = searched.query_blocks(points, direction)
        blocks = [later(Answered, *pair) for pair in zip(points, answers, strict=True)]
        model = Sent.from_classifier(self)
        example = model.open(searched.example_query())
        return X, hold(model), blocks, example, np.zeros((1, p))

    def _get_predictive(self, X: Any) -> Predictive:
        # Predictions of blocks do not come here.
        check_is_fitted(self)
        graph: Any = self.graph_
        if isinstance(graph, BlockGraph):
            raise ValueError(NOT_POSSIBLE)
        return super()._get_predictive(X)


class Sent(NamedTuple):
    """Attributes of a fitted classifier that workers need to predict a block, and its metric."""

    state: dict[str, Any]
    metric: Any

    @classmethod
    def from_classifier(cls, clf: DistributedNeighborsClassifier) -> Sent:
        """Leave out what is large: the training points are predicted already."""
        names = "classes_", "n_features_in_", "class_weight_", "_labels", "_is_offset"
        state = {name: getattr(clf, name) for name in (*names, "_is_calibrated")}
        predictive: Any = clf._predictive.using(1, 0)
        predictive.model = predictive.graph = None
        model, copies = clf._interval_model, clf._interval_model.copies
        if copies is not None:
            copies = copies._replace(place=copies.place[:0], rows=None)
        state |= {"_predictive": predictive, "_interval_model": replace(model, copies=copies)}
        return cls(state, clf.graph_.metric)

    def open(self, answer: NeighborQuery) -> BayesianKNeighborsClassifier:
        """Return a classifier that predicts the points of one answer."""
        clf = BayesianKNeighborsClassifier(n_jobs=1)
        clf.__dict__.update(self.state, graph_=AnsweredGraph(self.metric, answer))
        clf._predictive = clf._predictive.using(1, 0)
        clf._predictive.graph = clf.graph_
        return clf


class Blocks(NamedTuple):
    """Training rows in blocks, checked.

    Attributes
    ----------
    points : list of delayed values
        Arrays of shape (n_b, p), dtype float64.
    sizes : list of int
        Number of rows in each block.
    samples : list of ndarray
        Some rows of each block.
    digests : list of str
        Fingerprints of the blocks.
    meta : ndarray or frame of shape (0, p)
        What the blocks look like.
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n,), unsigned
        Class indices of all rows.
    """

    points: list[Any]
    sizes: list[int]
    samples: list[np.ndarray]
    digests: list[str]
    meta: Any
    classes: np.ndarray
    labels: np.ndarray


def read_blocks(X: Any, y: Any, verbose: int) -> Blocks:
    """Check points and labels block by block; raise ValueError that names the block."""
    for name, given in (("X", X), ("y", y)):
        if not is_dask(given):
            raise ValueError(
                f"{name} is a {type(given).__name__}; pass a Dask array or frame, or fit "
                "BayesianKNeighborsClassifier on what is in memory"
            )
        if hasattr(given, "chunks") and np.isnan(block_sizes(given)).any():
            b = int(np.argmax(np.isnan(block_sizes(given))))
            raise ValueError(
                f"block {b} of {name} is of unknown size; call {name}.compute_chunk_sizes() first"
            )
    points, labels = as_blocks(X), as_blocks(y, "y")
    if len(points) != len(labels):
        raise ValueError(
            f"X has {len(points)} blocks and y has {len(labels)}: block "
            f"{min(len(points), len(labels))} has nothing beside it; labels must come in the "
            "blocks of their points"
        )
    # Checks without a computation come first.
    for b, (n, n_labels) in enumerate(zip(block_sizes(X), block_sizes(y), strict=True)):
        _check_sizes(b, n, n_labels)
    tasks = [later(_check_block, *each) for each in zip(count(), points, labels)]
    read = compute(run_tasks(tasks, "Checking the blocks", verbose))
    for b, each in enumerate(read):
        if isinstance(each, str):
            raise ValueError(each)
        if each.sample.shape[1] != read[0].sample.shape[1]:
            raise ValueError(
                f"block {b} of X has {each.sample.shape[1]} columns, block 0 has "
                f"{read[0].sample.shape[1]}"
            )
    classes, at = np.unique(np.concatenate([each.classes for each in read]), return_inverse=True)
    if len(classes) == 1:
        check_labels(classes)  # says that there is one class
    starts = np.cumsum([0, *(len(each.classes) for each in read)])
    kind = label_dtype(len(classes))
    codes = [
        at[start : start + len(each.classes)].astype(kind)[each.labels]
        for start, each in zip(starts, read)  # noqa: B905
    ]
    return Blocks(
        [later(check_points, block) for block in points],
        [len(each.labels) for each in read],
        [each.sample for each in read],
        [each.digest for each in read],
        _get_meta(X),
        classes,
        np.concatenate(codes),
    )


class _BlockSummary(NamedTuple):
    """Classes of a block, their indices for its rows, some of its points and a fingerprint."""

    classes: np.ndarray
    labels: np.ndarray
    sample: np.ndarray
    digest: str


def _check_sizes(b: int, n: float, n_labels: float) -> None:
    if n == 0:
        raise ValueError(f"block {b} of X is empty; rechunk, or drop it")
    if n != n_labels and not np.isnan(n + n_labels):
        raise ValueError(
            f"block {b} has {n:.0f} points but {n_labels:.0f} labels; labels must come in the "
            "blocks of their points: y.rechunk(X.chunks[0])"
        )


def _check_block(b: int, x: Any, y: Any) -> _BlockSummary | str:
    """Return a summary of a block, or what is wrong with it."""
    try:
        _check_sizes(b, len(x), len(y))
    except ValueError as error:
        return str(error)
    try:
        points = check_points(x)
        check_units(points, range(points.shape[1]), is_new=True)
        classes, labels = check_labels(y, len(points), least=1)
    except ValueError as error:
        return f"in block {b}: {error}"
    sample = take_evenly(points, SAMPLE_ROWS)
    codes = labels.astype(label_dtype(len(classes)))
    return _BlockSummary(classes, codes, sample, fingerprint(x, labels)["rows"])


def _check_new(b: int, x: Any, n_features: int) -> np.ndarray:
    try:
        points = check_points(x)
        check_n_features(points.shape[1], n_features, "DistributedNeighborsClassifier")
        check_units(points, range(n_features), is_new=True)
    except ValueError as error:
        raise ValueError(f"in block {b}: {error}") from None
    return points


def _get_meta(X: Any) -> Any:
    """Return an array or frame without rows that looks like a Dask collection."""
    if hasattr(X, "chunks"):
        return np.empty((0, X.shape[1]))
    import pandas as pd

    return pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in X.dtypes.items()})
