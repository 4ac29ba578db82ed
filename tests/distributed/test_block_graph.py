"""A graph over blocks is the graph in memory; cells that are far apart are not searched."""

import pickle
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from dask import delayed

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.distributed import DistributedNeighborsClassifier
from bayesknn.distributed.block_graph import BlockGraph, take_queries
from bayesknn.distributed.cells import bound_cell, divide, make_cell, plan_cells
from bayesknn.graph import NeighborGraph
from bayesknn.graph.ties import key_of_rows
from bayesknn.model import UniformPrior
from tests.distributed.test_distributed import NEW, X, Y, as_dask


@pytest.fixture(autouse=True)
def _in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def graph_of(points, n_blocks, k_max):
    blocks = np.array_split(points, n_blocks)
    sizes = [len(block) for block in blocks]
    return BlockGraph.from_blocks([delayed(each) for each in blocks], sizes, blocks, k_max)


def slow_lists(points, k_max):
    """Sort all pairs by (distance, key of the row)."""
    squares = np.zeros((len(points), len(points)))
    for column in points.T:
        squares += (column[:, None] - column) ** 2
    np.fill_diagonal(squares, np.inf)
    keys = np.broadcast_to(key_of_rows(np.arange(len(points))), squares.shape)
    order = np.lexsort((keys, np.sqrt(squares)))[:, :k_max]
    return order.T, np.sqrt(np.take_along_axis(squares, order, axis=1)).T


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 20])
@pytest.mark.parametrize("k_max", [1, 30, 399])
@pytest.mark.parametrize("kind", ["lattice", "line", "one place", "outliers"])
def test_lists_are_those_of_all_pairs(n_blocks, k_max, kind):
    rng = np.random.default_rng(3)
    points = {
        "lattice": rng.integers(0, 6, size=(400, 3)).astype(float),
        "line": np.arange(400.0)[:, None],
        "one place": np.zeros((400, 2)),
        "outliers": rng.standard_cauchy(size=(400, 2)),
    }[kind]
    graph = graph_of(points, n_blocks, k_max).gather()
    neighbors, distances = slow_lists(points, k_max)
    np.testing.assert_array_equal(graph.neighbors, neighbors)
    np.testing.assert_array_equal(graph.distances, distances)
    whole = NeighborGraph.from_points(points, k_max)
    np.testing.assert_array_equal(graph.tied_beyond, whole.tied_beyond)


@pytest.mark.parametrize("direction", ["both", "forward"])
def test_queries_and_counts_are_those_of_the_graph_in_memory(direction):
    labels = (np.arange(2000) % 3).astype(np.uint8)
    points, new = X[:2000], NEW[:150]
    graph, whole = graph_of(points, 6, 25), NeighborGraph.from_points(points, 25)
    (answer,) = dask.compute(*graph.query_blocks([delayed(new)], direction))
    expected = whole.query(new, direction=direction)
    np.testing.assert_array_equal(answer.neighbors, expected.neighbors)
    np.testing.assert_array_equal(answer.distances, expected.distances)
    some = take_queries(answer, slice(40, 90), direction).counts(labels, 3, direction=direction)
    np.testing.assert_array_equal(some, expected.counts(labels, 3, direction=direction)[:, 40:90])
    if direction == "both":
        for name in ("reverse_starts", "reverse_points", "reverse_ranks"):
            np.testing.assert_array_equal(getattr(answer, name), getattr(expected, name))
    parts = graph.map_counts(last_counts, labels, 3, [3, 20], direction, max_rows=100)
    rows = np.concatenate([each for each, _ in parts])
    assert sorted(rows) == [*range(2000)] and max(len(each) for each, _ in parts) == 100
    counts = np.concatenate([value for _, value in parts])
    np.testing.assert_array_equal(counts, whole.counts(labels, 3, 20, direction)[rows])


def last_counts(walk, labels, starts):
    return [each.copy() for each in walk][-1]


def test_far_cells_are_not_searched():
    """Clouds farther apart than all radii: each cell is searched for itself alone."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1600, 2)) + 1e3 * (np.arange(1600) % 8)[:, None]
    assert graph_of(points, 8, 10).n_searched == 8
    # A line of cells: each with the two beside it.
    line = rng.random((8000, 1))
    assert graph_of(line, 8, 10).n_searched <= 8 + 2 * 7


def test_cells_hold_every_point_once():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5000, 4))
    split, n_cells = plan_cells(points[::10], 7)
    members = divide(points, split)
    assert n_cells == 7
    assert sorted(np.concatenate([*members.values()])) == [*range(5000)]
    assert max(map(len, members.values())) < 2 * 5000 / 7
    rows = members[3]
    box = bound_cell(make_cell([(rows.astype(np.uint32), points[rows])]))
    assert box.n_points == len(rows)
    np.testing.assert_array_equal(box.low, points[rows].min(axis=0))


def test_a_file_sorted_by_class_and_blocks_of_one_class():
    order = np.argsort(Y, kind="stable")
    options = {"max_neighbors": 20, "beta_max": 4.0, "random_state": 0, "n_draws": 50}
    ref = BayesianKNeighborsClassifier("pseudo", **options).fit(X[order], Y[order])
    data = da.from_array(X[order], chunks=(500, -1)), da.from_array(Y[order], chunks=500)
    clf = DistributedNeighborsClassifier(**options).fit(*data)
    np.testing.assert_allclose(clf.predict_proba(NEW).compute(), ref.predict_proba(NEW), atol=1e-11)
    assert clf.loo_proba_.chunks[0] == data[0].chunks[0]


def test_reweight_and_saving_and_class_prior():
    options = {
        "max_neighbors": 20, "beta_max": 4.0, "random_state": 0, "n_draws": 50,
        "class_prior": [0.2, 0.3, 0.5], "calibrate": True,
    }  # fmt: skip
    ref = BayesianKNeighborsClassifier("pseudo", **options).fit(X, Y)
    clf = DistributedNeighborsClassifier(**options).fit(*as_dask())
    prior = UniformPrior(8, 4.0)
    loaded = pickle.loads(pickle.dumps(clf))
    assert isinstance(loaded.graph_, NeighborGraph)
    for one, other in ((clf, ref), (clf.reweight(prior), ref.reweight(prior)), (loaded, ref)):
        new = NEW if one is loaded else da.from_array(NEW, chunks=(300, -1))
        for name in ("predict_proba", "predict_interval"):
            found = np.asarray(getattr(one, name)(new))
            np.testing.assert_allclose(found, getattr(other, name)(NEW), atol=1e-9)
        assert [*np.asarray(one.predict_zone(new))] == [*other.predict_zone(NEW)]
    indices, influence = loaded.predict_influence(NEW[:3])
    np.testing.assert_array_equal(indices, ref.predict_influence(NEW[:3])[0])
    assert np.all(influence > 0)


def test_class_weights():
    options = {
        "max_neighbors": 20, "beta_max": 4.0, "random_state": 0, "n_draws": 50,
        "class_prior": [0.2, 0.3, 0.5], "class_prior_as": "weights",
    }  # fmt: skip
    ref = BayesianKNeighborsClassifier("holmes-adams", **options).fit(X, Y)
    clf = DistributedNeighborsClassifier("holmes-adams", **options).fit(*as_dask())
    np.testing.assert_allclose(clf.k_probabilities_, ref.k_probabilities_, atol=1e-10)
    np.testing.assert_allclose(
        clf.predict_interval(NEW).compute(), ref.predict_interval(NEW), atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("predict_influence", ()),
        ("predict_summary", ()),
        ("sample_labels", ()),
        ("predict_counts", (0.9, "free")),
    ],
)
def test_what_is_not_possible_says_so(name, arguments):
    clf = DistributedNeighborsClassifier(max_neighbors=5, beta_max=4.0, n_draws=10)
    clf.fit(*as_dask(2500))
    with pytest.raises(ValueError, match="need all training points in one place"):
        getattr(clf, name)(da.from_array(NEW, chunks=(200, -1)), *arguments)


def test_decisions_and_explanations():
    clf = DistributedNeighborsClassifier(max_neighbors=5, beta_max=4.0, n_draws=10)
    ref = BayesianKNeighborsClassifier("pseudo", max_neighbors=5, beta_max=4.0, n_draws=10)
    clf.fit(*as_dask(2500))
    ref.fit(X, Y)
    loss = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.3, 0.3, 0.3]]
    found = clf.predict_decision(NEW, loss, actions=["ask"])
    expected = ref.predict_decision(NEW, loss, actions=["ask"])
    assert [*np.asarray(found[0])] == [*expected[0]]
    np.testing.assert_allclose(found[1], expected[1], atol=1e-9)
    one = clf.predict_contributions(NEW[:2], X, n_background=3)
    np.testing.assert_allclose(one, ref.predict_contributions(NEW[:2], X, n_background=3))


def test_samples_of_rows_are_bounded():
    """Above the stated numbers of rows, columns and rows of equal values are a sample."""
    n = 100_500
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=n)
    points = np.round(rng.normal(size=(n, 2)) + y[:, None], 1)
    options = {"max_neighbors": 5, "beta_max": 8.0, "n_draws": 10}
    clf = DistributedNeighborsClassifier(**options)
    clf.fit(da.from_array(points, chunks=(25_200, 2)), da.from_array(y, chunks=25_200))
    assert clf.diagnostics_["compared_rows"] == 100_000 > clf.diagnostics_["misfit_rows"] == 20_000
    copies = clf._interval_model.copies
    assert len(copies.place) == len(copies.rows) == 100_000 and len(clf._known.columns) == 20_000
    ref = BayesianKNeighborsClassifier("pseudo", **options).fit(points, y)
    new = np.round(rng.normal(size=(300, 2)), 1)
    np.testing.assert_allclose(clf.predict_proba(new).compute(), ref.predict_proba(new), atol=1e-10)
    # The cases differ in the number of rows of equal values.
    ends, expected = clf.predict_interval(new).compute(), ref.predict_interval(new)
    counts = [each._interval_model.copies.count_new(new).sum(axis=1) for each in (clf, ref)]
    is_known = counts[0] == counts[1]
    assert is_known.any() and np.all(counts[0] <= counts[1])
    np.testing.assert_allclose(ends[is_known], expected[is_known], atol=1e-9)
    assert clf.residual_correlation_ == pytest.approx(ref.residual_correlation_)
    assert clf.diagnostics_["misfit_column"] == ref.diagnostics_["misfit_column"]
    assert clf.loo_interval().shape == (n, 2, 2)


def test_memory_of_workers_and_client_is_as_stated():
    """Per row of a cell 35 K + 16 p bytes; on the client 80 + 40 G per training row."""
    k_max, p = 30, X.shape[1]
    clf = DistributedNeighborsClassifier(max_neighbors=k_max, beta_max=4.0, n_draws=10)
    clf.fit(*as_dask(1000))
    clf.predict_proba(NEW).compute()
    graph = clf.graph_.up_to(k_max)
    n = graph.n_points
    held = dask.compute([part[:4] for part in graph._parts], graph._radii)
    assert count_bytes(held) / n < 35 * k_max + 16 * p
    kept = clf._left_out, clf._loo_proba, clf._labels, clf._interval_model.scale
    assert count_bytes(kept) / n < 80 + 40 * 3


def count_bytes(value):
    if isinstance(value, tuple | list):
        return sum(map(count_bytes, value))
    return getattr(value, "nbytes", 0)


def test_reweighting_keeps_blocks_and_diagnostics():
    clf = DistributedNeighborsClassifier(max_neighbors=5, beta_max=4.0, n_draws=10)
    clf.fit(*as_dask(1000))
    same = clf.reweight(clf.prior_)
    assert same.diagnostics_.keys() == clf.diagnostics_.keys()
    assert same.diagnostics_["cells"] == clf.diagnostics_["cells"]
    assert same.loo_proba_.chunks == clf.loo_proba_.chunks == ((1000,) * 5, (3,))
    np.testing.assert_allclose(same.loo_proba_, clf.loo_proba_, atol=1e-6)


def test_a_first_fit_leaves_the_settings_of_dask_as_they_are():
    """In a new process the fit is what imports distributed, whose defaults must outlive it."""
    code = (
        "import dask, dask.array as da, numpy as np\n"
        "from bayesknn.distributed import DistributedNeighborsClassifier\n"
        "X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2\n"
        "clf = DistributedNeighborsClassifier(max_neighbors=5, beta_max=2.0)\n"
        "with dask.config.set(scheduler='synchronous'):\n"
        "    clf.fit(da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=20))\n"
        "assert dask.config.get('distributed.comm.timeouts.connect')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
