"""What residuals of near rows, and of rows near along a column, add up to."""

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import pearson3

from bayesknn.sureness.residuals import Pairs, correlate_residuals, find_misfit


def draw_table(n, n_classes, p, seed):
    """Return labels, probabilities, columns (one of them of equal values), weights and groups."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.normal(size=(n, p)), rng.integers(3, size=n)])
    labels = (columns[:, 0] > 0).astype(int) + rng.integers(n_classes - 1, size=n)
    probabilities = rng.dirichlet(np.full(n_classes, 5.0), n)
    return labels, probabilities, columns, rng.uniform(0.5, 2, n), rng.integers(n // 3, size=n)


def slow_columns(P, y, X, w, groups, voters):
    """Write the sums along columns out pair by pair; ties in the order that the code shuffles.

    Return the column that a warning names, None for none, and the bound.
    """
    (n, G), p, named = P.shape, X.shape[1], [(1.0, None)]
    rank = np.empty(n, int)
    rank[np.random.default_rng(0).permutation(n)] = np.arange(n)
    z0, found = ndtri(1 - 0.05 / p), {3: [], 10: []}
    for c in range(p):
        order = sorted(range(n), key=lambda i: (X[i, c], rank[i]))
        for most, columns in found.items():
            total, scale, of_groups = 0.0, 0.0, {}
            for at, i in enumerate(order):
                for j in order[at + 1 : at + 1 + most]:
                    if groups[i] == groups[j] or j in voters[:, i] or i in voters[:, j]:
                        continue
                    product = w[i] * w[j] * (np.eye(G)[y[i]] - P[i]) @ (np.eye(G)[y[j]] - P[j])
                    both = frozenset((groups[i], groups[j]))
                    of_groups[both] = of_groups.get(both, 0.0) + product
                    total += product
                    scale += w[i] * w[j] * (P[i] @ (1 - P[i]) + P[j] @ (1 - P[j])) / 2
            squares = sum(each**2 for each in of_groups.values())
            z = total / np.sqrt(squares)
            if z > z0:
                part = total / scale * (1 - (z0 / z) ** 2)
                columns.append((z, c, part, np.sqrt(squares) / scale))
                skew = 3 * (most - 1) * np.sqrt(sum(each**4 for each in of_groups.values()))
                named.append((z / pearson3.ppf(1 - 0.05 / (2 * p), skew / squares), c))
    bounds = [sum(each[2] for each in some) + max(some)[3] for some in found.values() if some]
    return (max(named, key=lambda each: each[0])[1], max(bounds)) if bounds else None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_are_summed_as_pair_by_pair(n_classes):
    n_found = 0
    for seed in range(4):
        y, P, X, w, groups = draw_table(60, n_classes, 2, seed)
        voters = np.random.default_rng(seed).integers(60, size=(3, 60))
        nobody, alone = np.empty((0, 60)), np.arange(60)
        for found, slow in (
            (
                find_misfit(P, y, X, w, near_pairs(P, voters[0])._replace(voters=voters)),
                slow_columns(P, y, X, w, alone, voters),
            ),
            (find_misfit(P, y, X, w, None, groups), slow_columns(P, y, X, w, groups, nobody)),
        ):
            assert (found is None) == (slow is None)
            if found is not None:
                n_found += 1
                assert found.column == slow[0] and found.bound == pytest.approx(slow[1])
    assert n_found > 1


def test_effects_of_several_columns_add_up():
    """Labels that follow two columns miss more than those that follow one."""
    rng = np.random.default_rng(0)
    X, even = rng.normal(size=(2000, 6)), np.full((2000, 2), 0.5)
    bounds = []
    for n_columns in (1, 2):
        p = expit(1.5 * X[:, :n_columns].sum(axis=1))
        y = (rng.random(2000) < p).astype(int)
        found = find_misfit(even, y, X, np.ones(2000))
        bounds.append((found.bound, np.mean((p - 0.5) ** 2) / 0.25))
    for bound, truth in bounds:
        assert 0.75 * truth < bound < 1.25 * truth
    # The largest column alone shows half of the second one.
    assert bounds[1][0] > 1.2 * bounds[0][0]


def test_a_barely_significant_column_hardly_counts():
    """By chance one of many columns of noise passes; its value is then mostly chance."""
    rng, even = np.random.default_rng(1), np.full((250, 2), 0.5)
    bounds = []
    for _ in range(200):
        y, X = rng.integers(2, size=250), rng.normal(size=(250, 1))
        found = find_misfit(even, y, X, np.ones(250))
        bounds += [] if found is None else [found.bound]
    # Taken at face value they are at least 1.64 standard errors of 1 / sqrt(2500) and one more.
    assert 5 < len(bounds) < 40
    assert np.median(bounds) < 2.6 / np.sqrt(2500)


def near_pairs(P, j):
    return Pairs(j[None], lambda a, b, rank: P[a])


def correlate(P, y, j, **changed):
    given = {"columns": None, "weights": np.ones(len(y)), "groups": None} | changed
    return correlate_residuals(P, y, near_pairs(P, j), 1e9, **given)


def test_pairs_that_stand_apart_are_divided_by_how_alike_they_are():
    """Pairs that are half alike show half of the squared error."""
    rng = np.random.default_rng(0)
    n = 4000
    j = np.arange(n) ^ 1
    shared = np.repeat(rng.normal(size=n // 2), 2)
    for own in (0.0, 1.0):
        field = (shared + own * rng.normal(size=n)) / np.sqrt(1 + own**2)
        # Smoothing halves the log odds.
        P, stated = expit(2 * field), expit(field)
        y, stated = (rng.random(n) < P).astype(int), np.column_stack([1 - stated, stated])
        truth = np.mean((P - stated[:, 1]) ** 2) / np.mean(stated[:, 0] * stated[:, 1])
        found = correlate(stated, y, j)
        rho = 1 / (1 + own**2)
        assert found.value == pytest.approx(rho * truth, abs=4 * found.error)
        assert 0.6 * truth < found.bound - found.error / rho < 1.5 * truth
    p = 0.3 + 0.001 * rng.normal(size=n)
    flat = correlate(np.column_stack([1 - p, p]), (rng.random(n) < p).astype(int), j)
    # Only the estimate itself is divided, not its error, which would be five times as large.
    value, error = flat[:2]
    assert flat.bound == pytest.approx(max(value, 0) / 0.2 + min(value, 0) + error, rel=1e-6)


def test_rows_of_one_group_are_no_pair():
    y, P, _, w, _ = draw_table(40, 3, 1, 0)
    j, groups = np.arange(40) ^ 1, np.repeat(np.arange(10), 4)
    apart = np.array([4 * (i // 4) + (i + 2) % 4 if i % 4 else (i + 13) % 40 for i in range(40)])
    some = correlate(P, y, apart, weights=w, groups=groups)
    held = groups != groups[apart]
    both = (w * w[apart])[held]
    residuals = np.eye(3)[y] - P
    products = both * (residuals * residuals[apart]).sum(axis=1)[held]
    assert 0 < held.sum() < 40
    expected = products.sum() / (both @ (P * (1 - P)).sum(axis=1)[held])
    assert some.value == pytest.approx(expected)
    none = correlate(P, y, j, weights=w, groups=groups)
    assert none.value == 0 and none.error == 0


def test_without_pairs_nothing_is_known():
    y, P, X, w, _ = draw_table(40, 2, 1, 0)
    found = correlate_residuals(P, y, None, 9.0, columns=X, weights=w, groups=None)
    assert np.isnan(found.value) and found.bound == 0.5 and found.column is None


def test_large_tables_are_examined_on_a_sample(monkeypatch):
    y, P, X, w, _ = draw_table(300, 2, 2, 0)
    monkeypatch.setattr("bayesknn.sureness.residuals.MAX_ROWS", 100)
    rows = np.sort(np.random.default_rng(0).permutation(300)[:100])
    found = find_misfit(P, y, X, w)
    # Ties are shuffled, so that the sample alone is compared on columns without any.
    X = X[:, :2]
    found, alone = find_misfit(P, y, X, w), find_misfit(P[rows], y[rows], X[rows], w[rows])
    assert found.column == alone.column and found.bound == pytest.approx(alone.bound)
