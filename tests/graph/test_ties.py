"""Ties in distance: where a class stands in the file does not matter, and ties are counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import hypergeom

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.graph.ties import order_some_ties, order_ties
from tests.graph.titanic import expand_titanic
from tests.statistical import p_value_of_z

ALPHA = 1e-5


def test_keys_are_those_of_the_twin():
    for first in (0, 3, 2**31):
        rows = sorted(range(500), key=lambda row, first=first: reference.key(first + row))
        order = order_some_ties(first + np.arange(500))
        assert order.rows.tolist() == rows
        assert order.ranks[rows].tolist() == list(range(500))
        assert first or order_ties(500).rows.tolist() == rows


def count_survivors(X, y, k, n_before, find):
    """Survivors among the k nearest of one row of each of the 14 kinds, and what is expected.

    The k nearest of a row in a crowd of more than k equal ones are drawn from this crowd.
    """
    counts, means, variances = [], [], []
    kinds, first, sizes = np.unique(X, axis=0, return_index=True, return_counts=True)
    neighbors = find(X, k, n_before)
    for kind, i, size in zip(kinds, first, sizes, strict=True):
        if size <= k + 1:
            continue
        crowd = np.flatnonzero((X == kind).all(axis=1))
        others = hypergeom(size - 1, y[crowd].sum() - y[i], k)
        counts.append(y[neighbors[:, i]].sum())
        means.append(others.mean())
        variances.append(others.var())
    return np.array(counts), np.array(means), np.array(variances)


def by_key(X, k, n_before=0):
    """Find the lists of a table that stands behind far rows in a longer one: its keys differ."""
    before = n_before * len(X)
    far = 1e6 + np.repeat(np.arange(float(before))[:, None], X.shape[1], axis=1)
    graph = NeighborGraph.from_points(np.concatenate([far, X]), k)
    return graph.neighbors[:, before:].astype(np.int64) - before


def by_index(X, k, n_before=0):
    """Settle ties by the lower row number, a named mutant."""
    distances = reference.distances(X, X)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k].T


@pytest.mark.parametrize("how", ["dead first", "survivors first", "shuffled"])
def test_the_class_that_comes_first_does_not_win(how):
    """Files of the Titanic sorted either way: survivors among tied neighbours as by a fair draw."""
    X, y = expand_titanic()
    rows = np.argsort(y if how == "dead first" else -y, kind="stable")
    if how == "shuffled":
        rows = np.random.default_rng(0).permutation(len(y))
    X, y = X[rows], y[rows]
    z = []
    for order in range(5):
        counts, means, variances = count_survivors(X, y, 40, order, by_key)
        assert len(counts) >= 8
        z.append((counts - means).sum() / np.sqrt(variances.sum()))
    assert p_value_of_z(sum(z) / np.sqrt(len(z))) > ALPHA
    if how != "shuffled":
        counts, means, variances = count_survivors(X, y, 40, 0, by_index)
        assert p_value_of_z((counts - means).sum() / np.sqrt(variances.sum())) < ALPHA


def test_a_lattice_sorted_by_class():
    """A 3 x 3 x 3 lattice: over many orders ties are filled as when the rows are shuffled."""
    rng = np.random.default_rng(3)
    lattice = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3)
    X = np.repeat(lattice, 4, axis=0)
    y = (rng.random(len(X)) < 0.5).astype(int)
    shares = {}
    for name, rows in {
        "sorted": np.argsort(y, kind="stable"),
        "reversed": np.argsort(-y, kind="stable"),
        "shuffled": rng.permutation(len(y)),
    }.items():
        shares[name] = [y[rows][by_key(X[rows], 5, order)].mean() for order in range(60)]
    for name in ("sorted", "reversed"):
        difference = np.mean(shares[name]) - np.mean(shares["shuffled"])
        error = np.hypot(np.std(shares[name]), np.std(shares["shuffled"])) / np.sqrt(60)
        assert p_value_of_z(difference / error) > ALPHA
    rows = np.argsort(y, kind="stable")
    mutant = y[rows][by_index(X[rows], 5)].mean() - np.mean(shares["shuffled"])
    assert p_value_of_z(mutant / (np.std(shares["shuffled"]) / np.sqrt(60))) < ALPHA


@given(st.integers(0, 2**32 - 1), st.integers(3, 25), st.integers(1, 3))
def test_ties_at_the_end_of_the_lists(seed, n, side):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, side + 1, size=(n, 2)).astype(float)
    distances = reference.distances(points, points)
    k_max = int(rng.integers(1, n))
    stored = sparse.csr_array(
        (distances.ravel(), np.tile(np.arange(n), n), np.arange(0, n * n + 1, n)), shape=(n, n)
    )
    graphs = [NeighborGraph.from_points(points, k_max, search=s) for s in ("kd_tree", "brute")]
    graphs += [
        NeighborGraph.from_points(X, k_max, metric="precomputed") for X in (distances, stored)
    ]
    for k in range(1, k_max + 1):
        expected = 0
        for i in range(n):
            others = np.sort(np.delete(distances[i], i))
            expected += k < n - 1 and others[k - 1] == others[k]
        assert [graph.count_boundary_ties(k) for graph in graphs] == [expected] * 4


def test_a_graph_of_lists_does_not_know_of_ties():
    graph = NeighborGraph.from_neighbors([[1, 2, 0]])
    with pytest.raises(ValueError, match="does not know of ties"):
        graph.count_boundary_ties(1)


def test_a_prefix_of_the_lists_is_the_graph_of_a_smaller_k():
    rng = np.random.default_rng(0)
    points, new = rng.integers(0, 4, size=(40, 2)), rng.normal(2.0, 1.0, size=(9, 2))
    graph = NeighborGraph.from_points(points, 12)
    assert graph.up_to(12) is graph
    for k in (1, 5, 11):
        part, built = graph.up_to(k), NeighborGraph.from_points(points, k)
        for name in ("neighbors", "distances", "tied_beyond"):
            np.testing.assert_array_equal(getattr(part, name), getattr(built, name))
        for one, other in zip(part.incidence, built.incidence, strict=True):
            np.testing.assert_array_equal(one, other)
        labels = np.arange(40) % 3
        one, other = (each.query(new).counts(labels, 3, k) for each in (part, built))
        np.testing.assert_array_equal(one, other)
        assert not part.neighbors.flags.writeable
    lists = NeighborGraph.from_neighbors([[1, 2, 0], [2, 0, 1]]).up_to(1)
    assert lists.neighbors.tolist() == [[1, 2, 0]] and lists.tied_beyond is None
    with pytest.raises(ValueError, match=r"k must be an integer in 1..12"):
        graph.up_to(13)
