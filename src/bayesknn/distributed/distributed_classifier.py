"""The classifier on Dask collections: sums over blocks, the posterior on the client (Section 3.2).

The pseudo-likelihood and that of Holmes and Adams are products over points, so that blocks add up:
what a block knows of its points' neighbours becomes a small table for each k, and the tables of all
blocks together are those of the in-memory classifier.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesknn._estimator import DOCUMENTATION, DocumentedMixin, choose_k_max, choose_prior
from bayesknn._utils.blocks import as_blocks, block_sizes, import_dask, is_dask, stack_blocks
from bayesknn._utils.checks import (
    check_choice,
    check_labels,
    check_level,
    check_n_features,
    check_points,
    check_units,
    check_verbose,
    label_dtype,
)
from bayesknn._utils.progress import progress
from bayesknn._utils.random import as_seed_sequence
from bayesknn.distributed.blocks import (
    Block,
    BlockLists,
    NewPointLists,
    add_radii,
    add_tables,
    count_around,
    make_block,
    search_block,
    search_new_points,
    search_other,
    send_edges,
    tabulate_block,
    walk_counts,
)
from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.labels.beta_max import ENOUGH_NEIGHBORS, PhaseTransition, choose_rows
from bayesknn.likelihood.conditionals import SummedProduct
from bayesknn.posterior import grid_posterior
from bayesknn.predictive.averages import RawPrediction, include, join_predictions
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.predictive import PredictiveRule
from bayesknn.sureness.calibration import Calibrator
from bayesknn.sureness.groups import find_scored, name_unscored
from bayesknn.sureness.intervals import KINDS_OF_INTERVAL, IntervalModel, fit_interval_model

if TYPE_CHECKING:
    import xarray


class DistributedNeighborsClassifier(DocumentedMixin, ClassifierMixin, BaseEstimator):
    """The Bayesian k-nearest-neighbour classifier on Dask arrays and frames.

    Its posterior and probabilities are those of :class:`bayesknn.BayesianKNeighborsClassifier` on
    the same rows in the same order, to rounding. Distances are Euclidean: bring the columns to one
    scale beforehand.

    Parameters
    ----------
    likelihood : {"pseudo", "holmes-adams"}, default="pseudo"
        The two that are products over points. The coherent model needs sweeps over the whole
        graph, hence one machine.
    max_neighbors : int, optional
        Largest k, K; by default that of the in-memory classifier.
    beta_max : float or "auto", default="auto"
        Largest beta. ``"auto"`` simulates on the client, on a graph of all points or, of more than
        2,000, of 1,000 drawn at random.
    prior : None, array-like, callable or Prior, default=None
        On (beta, k), as in the in-memory classifier.
    random_state : None, int, SeedSequence, Generator or RandomState
        For ``beta_max="auto"`` and for the draws of ``posterior_``.
    verbose : int, default=0
        Above 0, work that takes more than two seconds shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    k_values_, k_probabilities_ : ndarray of shape (K,)
    beta_mean_, beta_sd_ : float
    log_evidence_ : float
        Log of the product's integral under the prior: no log probability of the labels.
    beta_max_ : float
    posterior_ : xarray.DataTree
        Draws of beta and k.
    loo_proba_ : dask.array.Array of shape (n, n_classes)
        Class probabilities of each training point given the labels of all others.
    n_features_in_ : int

    Notes
    -----
    All blocks are searched by all, so that many small blocks cost more than few large ones: blocks
    of 1e5 rows or more, a few for each worker, are a good size. What is fitted stays on the
    workers, and goes when the client closes.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.distributed import DistributedNeighborsClassifier
    >>> ripley = load_ripley()
    >>> order = (7 * np.arange(250)) % 250  # the file is sorted by class
    >>> X = da.from_array(ripley.X_train[order], chunks=(125, 2))
    >>> y = da.from_array(ripley.y_train[order], chunks=125)
    >>> with dask.config.set(scheduler="synchronous"):
    ...     clf = DistributedNeighborsClassifier(max_neighbors=60, beta_max=4.0).fit(X, y)
    ...     probabilities = clf.predict_proba(X[:2]).compute()
    >>> probabilities.shape, clf.predict_proba(X[:2])
    ((2, 2), dask.array<...>)
    """

    classes_: np.ndarray
    n_features_in_: int
    beta_max_: float
    k_values_: np.ndarray
    k_probabilities_: np.ndarray
    beta_mean_: float
    beta_sd_: float
    log_evidence_: float

    def __init__(
        self,
        likelihood: str = "pseudo",
        *,
        max_neighbors: int | None = None,
        beta_max: float | str = "auto",
        prior: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.max_neighbors = max_neighbors
        self.beta_max = beta_max
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    _doc_link_template = f"{DOCUMENTATION}/api/bayesknn.distributed.{{estimator_name}}.html"
    _interval_model: IntervalModel | None

    def fit(self, X: Any, y: Any, *, groups: None = None) -> DistributedNeighborsClassifier:
        """Compute the posterior of (beta, k) given the labels of the training points.

        Parameters
        ----------
        X : dask array or frame of shape (n, p)
            Training points.
        y : dask array or series of shape (n,)
            Their labels, in blocks of the same sizes; in every block at least two classes.
        groups : None
            Rows that belong together are for the other classifiers: anything else is an error.

        Returns
        -------
        DistributedNeighborsClassifier
            Itself.
        """
        dask = import_dask("DistributedNeighborsClassifier")
        if groups is not None:
            raise ValueError(
                "DistributedNeighborsClassifier takes no groups: it would count rows of the same "
                'group as neighbours; fit BayesianKNeighborsClassifier("pseudo") with groups, on '
                "one machine"
            )
        check_choice(self.likelihood, "likelihood", ("pseudo", "holmes-adams"))
        check_verbose(self.verbose)
        both = self.likelihood == "pseudo"
        points, labels, checked = self._check_blocks(dask, X, y)
        classes, sizes = _find_classes(checked)
        n_classes, n = len(classes), int(sizes.sum())
        # Two rows of a class say as much as all of them about which classes can be scored.
        some = np.repeat(np.arange(n_classes), np.minimum(sizes, 2))
        for warning in name_unscored(classes, some, None):
            warnings.warn(warning, UserWarning, stacklevel=2)
        k_max = choose_k_max(self.max_neighbors, self.prior, sizes)
        firsts = np.append(0, np.cumsum([each.n_points for each in checked]))[:-1]
        blocks = [
            _later(_prepare, x, y_of, classes, int(first))
            for x, y_of, first in zip(points, labels, firsts, strict=True)
        ]
        blocks = self._run(blocks, "Building trees")
        lists = self._find_lists(blocks, k_max)
        received: list[list[Any]] = [[] for _ in blocks]
        if both:
            sent = [_later(send_edges, *each, firsts) for each in zip(blocks, lists, strict=True)]
            sent = self._run(sent, "Sending edges")
            received = [[each[b] for each in sent] for b in range(len(blocks))]
        known = list(zip(blocks, lists, received, strict=True))
        tables = [_later(tabulate_block, *each, n_classes) for each in known]
        while len(tables) > 1:
            # Those of eight blocks in one task.
            parts = [tables[i : i + 8] for i in range(0, len(tables), 8)]
            tables = [_later(add_tables, part) for part in parts]
        seeds = as_seed_sequence(self.random_state).spawn(2)
        prior = choose_prior(
            self.prior, self.beta_max, k_max, self.likelihood,
            lambda: _find_beta_max(blocks, firsts, n, n_classes, k_max, seeds[0]),
        )  # fmt: skip
        (table,) = dask.compute(*self._run(tables, "Counting classes"))
        grid = grid_posterior(SummedProduct(table, n, n_classes), prior)
        rule = PredictiveRule(PosteriorNodes.from_grid(grid), np.ones(n_classes))
        about = _hold(rule)
        searched = [_later(add_radii, block, near, rule.k_values) for block, near, _ in known]
        left_out = [_later(_leave_out, *each, n_classes, about) for each in known]
        done = self._run([*searched, *left_out], "Leaving one out")
        # Last, so that a fitted classifier is still whole when its next fit is refused.
        self.classes_, self.n_features_in_ = classes, checked[0].n_features
        self._both, self._rule, self._grid = both, rule, grid
        self._blocks, self._left_out = done[: len(blocks)], done[len(blocks) :]
        self._sizes = [each.n_points for each in checked]
        self._seed, self._interval_model = seeds[1], None
        self.beta_max_ = float(prior.beta_max)
        self.k_values_ = np.arange(1, prior.k_max + 1)
        self.k_probabilities_ = grid.k_probabilities
        self.beta_mean_, self.beta_sd_ = grid.beta_mean, grid.beta_sd
        self.log_evidence_ = grid.log_evidence
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities averaged over the posterior.

        Parameters
        ----------
        X : dask array or frame of shape (m, p)

        Returns
        -------
        dask.array.Array of shape (m, n_classes)
            Not computed yet; a block for each of X.
        """
        check_is_fitted(self)
        like = np.empty((0, len(self.classes_)))
        return self._predict_new(X, like, attrgetter("probabilities"))

    def predict(self, X: Any) -> Any:
        """Return the most probable class, the first in ``classes_`` where several are.

        Parameters
        ----------
        X : dask array or frame of shape (m, p)

        Returns
        -------
        dask.array.Array of shape (m,)
        """
        check_is_fitted(self)
        return self._predict_new(X, self.classes_, _take_winners, self.classes_)

    def predict_interval(self, X: Any, level: float = 0.95, of: str = "probability") -> Any:
        """Return an interval of each class probability.

        Parameters
        ----------
        X : dask array or frame of shape (m, p)
        level : float, default=0.95
        of : {"probability", "parameters"}, default="probability"
            As in :meth:`bayesknn.BayesianKNeighborsClassifier.predict_interval`. The first time
            that intervals of probabilities are asked for, the leave-one-out predictions of all
            training points are brought to the client: about 30 numbers a point with three classes.
            The feature values are not. So, unlike in memory, no column is examined on which the
            residuals still depend, and intervals may be too narrow where many columns do not
            matter; and duplicate rows do not make intervals narrower.

        Returns
        -------
        dask.array.Array of shape (m, n_classes, 2)
        """
        check_is_fitted(self)
        check_choice(of, "of", KINDS_OF_INTERVAL)
        level = check_level(level)
        like = np.empty((0, len(self.classes_), 2))
        if of == "parameters":
            return self._predict_new(X, like, attrgetter("intervals"), level=level)
        return self._predict_new(X, like, _take_intervals, self._fit_intervals(), level)

    @property
    def loo_proba_(self) -> Any:
        """Class probabilities of the training points, each left out, as a Dask array."""
        check_is_fitted(self)
        parts = [_later(attrgetter("probabilities"), part[0]) for part in self._left_out]
        return stack_blocks(parts, self._sizes, np.empty((0, len(self.classes_))))

    @property
    def posterior_(self) -> xarray.DataTree:
        """Draws of beta and k in ArviZ's layout."""
        check_is_fitted(self)
        return self._grid.to_tree(random_state=self._seed)

    def _check_blocks(
        self, dask: Any, X: Any, y: Any
    ) -> tuple[list[Any], list[Any], list[_BlockSummary]]:
        """Return the blocks of points and labels, and a summary of each."""
        for name, given in (("X", X), ("y", y)):
            if not is_dask(given):
                raise ValueError(
                    f"{name} is a {type(given).__name__}; pass a Dask array or frame, or fit "
                    "BayesianKNeighborsClassifier on what is in memory"
                )
            if hasattr(given, "chunks") and np.isnan(block_sizes(given)).any():
                b = int(np.argmax(np.isnan(block_sizes(given))))
                raise ValueError(
                    f"block {b} of {name} is of unknown size; call {name}.compute_chunk_sizes() "
                    "first"
                )
        points, labels = as_blocks(X), as_blocks(y, "y")
        if len(points) != len(labels):
            raise ValueError(
                f"X has {len(points)} blocks and y has {len(labels)}: block "
                f"{min(len(points), len(labels))} has nothing beside it; labels must come in the "
                "blocks of their points"
            )
        # What needs no computation comes first.
        for b, (n, n_labels) in enumerate(zip(block_sizes(X), block_sizes(y), strict=True)):
            _check_sizes(b, n, n_labels)
        pairs = enumerate(zip(points, labels, strict=True))
        parts = [_later(_check_block, b, *pair) for b, pair in pairs]
        checked = dask.compute(*self._run(parts, "Checking the blocks"))
        for b, each in enumerate(checked):
            if each.error:
                raise ValueError(each.error)
            if each.n_features != checked[0].n_features:
                raise ValueError(
                    f"block {b} of X has {each.n_features} columns, block 0 has "
                    f"{checked[0].n_features}"
                )
        return points, labels, list(checked)

    def _find_lists(self, blocks: list[Any], k: int) -> list[Any]:
        lists = []
        for own in blocks:
            # Its own points first, which sets a limit to how far the others are searched.
            near = _later(search_block, None, own, k)
            for other in blocks:
                if other is not own:
                    near = _later(search_other, own, other, k, near)
            lists.append(near)
        return self._run(lists, "Finding neighbours")

    def _predict_new(
        self, X: Any, like: np.ndarray, take: Any, *arguments: Any, level: float | None = None
    ) -> Any:
        """Predict new points block by block, and take what is wanted of the predictions.

        ``like`` has the dtype and all but the first axis of it.
        """
        import_dask("DistributedNeighborsClassifier")
        if not is_dask(X):
            import dask.array as da

            X = da.from_array(check_points(X))
        check_n_features(X.shape[1], self.n_features_in_, type(self).__name__)
        n_classes, ks = len(self.classes_), self._rule.k_values
        rule, held = _hold(self._rule), [_hold(each) for each in arguments]
        parts = []
        for b, block in enumerate(as_blocks(X)):
            rows = _later(_check_new, b, block, self.n_features_in_)
            near: Any = None
            for known in self._blocks:
                near = _later(search_new_points, rows, known, ks, n_classes, self._both, near)
            predicted = _later(_predict_block, near, rule, n_classes, level)
            parts.append(_later(take, predicted, *held))
        return stack_blocks(parts, block_sizes(X), like)

    def _fit_intervals(self) -> IntervalModel:
        """Learn from leave-one-out, on the client; on first use."""
        if self._interval_model is None:
            dask = import_dask("predict_interval")
            parts, labels, neighbors = zip(*dask.compute(*self._left_out), strict=True)
            left_out, y = join_predictions(parts), np.concatenate(labels)
            near, nodes = np.concatenate(neighbors, axis=1), self._rule.nodes
            calibrator = Calibrator.fit(left_out, y, nodes.votes_by_rank, find_scored(y, None))
            weights = self._rule.class_weight
            self._interval_model = fit_interval_model(
                left_out,
                y,
                pairs=calibrator.find_pairs(left_out, y, near, nodes.k_mean, weights, self._both),
                n_votes=nodes.k_mean,
                # The rows stay with the workers.
                columns=None,
                copies=None,
                weights=np.ones(len(y)),
                groups=None,
                calibrator=calibrator,
            )
        return self._interval_model

    def _run(self, parts: list[Any], words: str) -> list[Any]:
        """Start the work on what is to stay with the workers, and wait for it."""
        from dask import persist

        started = persist(*parts)
        with progress(words, len(parts), verbose=self.verbose) as advance:
            for _ in _wait_for_each(started):
                advance(1)
        return list(started)


def _later(function: Any, *arguments: Any) -> Any:
    """Return a call that Dask makes later."""
    from dask import delayed

    return delayed(function, pure=False)(*arguments)


def _hold(value: Any) -> Any:
    """Return a value that many tasks share as a task of its own, not searched for further ones."""
    from dask import delayed

    return delayed(value, traverse=False, pure=False)


def _wait_for_each(started: Sequence[Any]) -> Any:
    """Yield once for each part that is done."""
    try:
        from distributed import as_completed, futures_of
    except ImportError:
        return started
    futures = futures_of(list(started))
    # Without a client the parts are there already.
    return as_completed(futures) if futures else started


class _BlockSummary(NamedTuple):
    """Sizes and classes of a block, or what is wrong with it."""

    n_points: int
    n_features: int
    classes: np.ndarray
    sizes: np.ndarray
    error: str


def _check_sizes(b: int, n: float, n_labels: float) -> None:
    if n == 0:
        raise ValueError(f"block {b} of X is empty; rechunk, or drop it")
    if n != n_labels and not np.isnan(n + n_labels):
        raise ValueError(
            f"block {b} has {n:.0f} points but {n_labels:.0f} labels; labels must come in the "
            "blocks of their points: y.rechunk(X.chunks[0])"
        )


def _check_block(b: int, x: Any, y: Any) -> _BlockSummary:
    """Check one block of points and labels."""
    try:
        _check_sizes(b, len(x), len(y))
    except ValueError as error:
        return _BlockSummary(0, 0, np.empty(0), np.empty(0), str(error))
    try:
        points = check_points(x)
        check_units(points, range(points.shape[1]))
        classes, labels = check_labels(y, len(points))
    except ValueError as error:
        return _BlockSummary(0, 0, np.empty(0), np.empty(0), f"in block {b}: {error}")
    n, p = points.shape
    return _BlockSummary(n, p, classes, np.bincount(labels), "")


def _find_classes(checked: list[_BlockSummary]) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of all blocks and their sizes."""
    classes, at = np.unique(np.concatenate([each.classes for each in checked]), return_inverse=True)
    sizes = np.bincount(at, np.concatenate([each.sizes for each in checked])).astype(np.int64)
    return classes, sizes


def _prepare(x: Any, y: Any, classes: np.ndarray, first: int) -> Block:
    own, labels = check_labels(y)
    numbers = np.searchsorted(classes, own)[labels]
    return make_block(check_points(x), numbers.astype(label_dtype(len(classes))), first)


def _leave_out(
    block: Block, lists: BlockLists, received: list[Any], n_classes: int, rule: PredictiveRule
) -> tuple[RawPrediction, np.ndarray, np.ndarray]:
    """Return predictions of a block, its labels and neighbours: what intervals are made of."""
    walk = walk_counts(lists, received, n_classes, rule.k_values.tolist())
    counts = np.stack([each.copy() for each in walk])
    distances = lists.distances[rule.rank - 1]
    description, _ = rule.predict(counts, distances, block.labels)
    # Intervals are made of the residuals of the first 15 neighbours, at most.
    return description, block.labels, lists.neighbors[:15].copy()


def _find_beta_max(
    blocks: list[Any], firsts: np.ndarray, n: int, n_classes: int, k_max: int, seed: Any
) -> PhaseTransition:
    from dask import compute

    # All of them where they are few, so that the answer is the one in memory.
    rows = choose_rows(n, seed)
    k_look = k_max if rows is None else min(k_max, ENOUGH_NEIGHBORS)
    rows = np.arange(n) if rows is None else rows
    parts = np.split(rows, np.searchsorted(rows, firsts[1:]))
    of_blocks = zip(blocks, parts, firsts, strict=True)
    taken = compute(*(_later(_take_points, block, part - at) for block, part, at in of_blocks))
    graph = NeighborGraph.from_points(np.concatenate(taken), k_look)
    return find_beta_max(graph, n_classes, random_state=seed)


def _take_points(block: Block, rows: np.ndarray) -> np.ndarray:
    return block.tree.points()[rows]


def _check_new(b: int, x: Any, n_features: int) -> np.ndarray:
    try:
        points = check_points(x)
        check_n_features(points.shape[1], n_features, "DistributedNeighborsClassifier")
        check_units(points, range(n_features), is_new=True)
    except ValueError as error:
        raise ValueError(f"in block {b}: {error}") from None
    return points


def _predict_block(
    near: NewPointLists, rule: PredictiveRule, n_classes: int, level: float | None
) -> RawPrediction:
    counts = count_around(near, rule.k_values, n_classes)
    return rule.predict(counts, near.lists.distances[rule.rank - 1], level=level)[0]


def _take_winners(predicted: RawPrediction, classes: np.ndarray) -> np.ndarray:
    return classes[np.argmax(predicted.probabilities, axis=1)]


def _take_intervals(raw: RawPrediction, model: IntervalModel, level: float) -> np.ndarray:
    return include(model.intervals(raw, level)[0], raw.probabilities)
