"""Intervals, zones, typicality and influence of the pool; noise columns and weak signal."""

import numpy as np
import pytest
from scipy.special import expit

from bayesknn import PooledNeighborsClassifier
from bayesknn.datasets import load_pima, load_ripley

RIPLEY = load_ripley()


@pytest.fixture(scope="module")
def ripley():
    clf = PooledNeighborsClassifier(("discriminant",), random_state=0)
    return clf.fit(RIPLEY.X_train, RIPLEY.y_train)


def test_intervals_hold_the_probabilities_and_widen_with_the_level(ripley):
    new = RIPLEY.X_test[::40]
    proba = ripley.predict_proba(new)
    intervals = ripley.predict_interval(new)
    assert intervals.shape == (len(new), 2, 2)
    assert (intervals[..., 0] <= proba).all() and (proba <= intervals[..., 1]).all()
    np.testing.assert_allclose(intervals[:, 1], 1 - intervals[:, 0, ::-1])
    wider = ripley.predict_interval(new, level=0.99)
    assert (np.ptp(wider, axis=2) >= np.ptp(intervals, axis=2)).all()
    np.testing.assert_array_equal(ripley.predict_interval([[50.0, 50.0]])[0], [[0, 1]] * 2)
    with pytest.raises(ValueError, match="of must be one of probability"):
        ripley.predict_interval(new, of="parameters")
    with pytest.raises(ValueError, match="level"):
        ripley.predict_interval(new, level=1.5)


def test_intervals_hold_probabilities_that_class_prior_moved():
    clf = PooledNeighborsClassifier(("discriminant",), class_prior=[0.999, 0.001], random_state=0)
    clf.fit(RIPLEY.X_train, RIPLEY.y_train)
    summary = clf.predict_summary(RIPLEY.X_test, level=0.1)
    for p, ends in (summary[:2], (clf.loo_proba_, clf.loo_interval(0.1))):
        assert (ends[..., 0] <= p).all() and (p <= ends[..., 1]).all()


def test_intervals_of_training_rows_that_are_left_out(ripley):
    left_out = ripley.loo_interval()
    proba = ripley.loo_proba_
    assert (left_out[..., 0] <= proba).all() and (proba <= left_out[..., 1]).all()
    # A copy of a row is one of its own neighbours: left out, less is known about its place.
    known = ripley.predict_interval(RIPLEY.X_train)
    assert np.ptp(left_out, axis=2).mean() > np.ptp(known, axis=2).mean()
    assert (np.ptp(ripley.loo_interval(0.99), axis=2) >= np.ptp(left_out, axis=2)).all()


def test_zones_and_typicality(ripley):
    zones = ripley.predict_zone([[0.4, 0.9], [-0.4, 0.1], [50.0, 50.0]], uncertain="?")
    assert zones.tolist() == [1, 0, "?"]
    zones = ripley.predict_zone([[0.4, 0.9], [50.0, 50.0]], unfamiliar=0.01)
    assert zones.tolist() == [1, "unfamiliar"]
    with pytest.raises(ValueError, match="unfamiliar must lie between 0 and 1"):
        ripley.predict_zone([[0.4, 0.9]], unfamiliar=2)
    loss = [[0, 1], [1, 0], [0.2, 0.2]]
    decisions, _ = ripley.predict_decision([[0.4, 0.9], [0.0, 0.5]], loss, actions=["ask"])
    assert decisions.tolist() == [1, "ask"]
    typicality = ripley.predict_typicality([[0.4, 0.9], [50.0, 50.0]])
    assert typicality[0] > 0 == typicality[1]


@pytest.mark.parametrize("data", ["ripley", "pima", "step"])
def test_rows_far_outside_training_are_undecided(data):
    """Metrics of ranks and class shares see nothing beyond the range: there all rows are alike."""
    rng = np.random.default_rng(0)
    if data == "step":
        X = rng.random((250, 4))
        y = (X[:, 0] > 0.5).astype(int)
    else:
        bunch = RIPLEY if data == "ripley" else load_pima()
        X, y = bunch.X_train, bunch.y_train
    clf = PooledNeighborsClassifier(random_state=0).fit(X, y)
    size = 20 * X.std(axis=0)
    first = size * (np.arange(X.shape[1]) == 0)
    far = X.mean(axis=0) + np.array([size, -size, first])
    np.testing.assert_allclose(clf.predict_interval(far), np.broadcast_to([0.0, 1.0], (3, 2, 2)))
    assert clf.predict_typicality(far).tolist() == [0, 0, 0]
    assert clf.predict_zone(far).tolist() == ["undecided"] * 3


def test_influence_is_what_a_row_adds(ripley):
    """In a pool of one metric whose links use counts alone, it is exactly that."""
    clf = PooledNeighborsClassifier(("discriminant",), random_state=0)
    clf.fit(RIPLEY.X_train, RIPLEY.y_train)
    new = RIPLEY.X_test[:1]
    indices, influence = clf.predict_influence(new, n_neighbors=400)
    assert indices.shape == (1, 400) and (np.diff(influence[0]) <= 0).all()
    there = indices[0] >= 0
    assert len(set(indices[0][there])) == there.sum() <= 250
    assert (influence[0][~there] == 0).all()
    # Rank by rank from the soft counts, written out for one row.
    view, member = clf._views["discriminant"], clf._members["discriminant"]
    space = view.space
    x = view.metric.transform(clf._columns.transform(new))[0]
    d = np.linalg.norm(space.points - x, axis=1)
    # The fit has its own order of rows.
    d, reach_of = (each[np.argsort(clf._order.rows)] for each in (d, space.reach))
    row, added = int(indices[0, 3]), 0.0
    for k, weight, b, reach in zip(
        clf.k_values_, member.k_weights, member.b, reach_of.T, strict=True
    ):
        u = np.minimum(d / np.sort(d)[k], 1), np.minimum(d / reach, 1)
        u[1][d > np.sort(d)[clf.k_values_[-1]]] = 1
        votes = (1 - u[0] ** 3) ** 3 + (1 - u[1] ** 3) ** 3
        total = 0.5 + votes[RIPLEY.y_train == RIPLEY.y_train[row]].sum()
        added += weight * b[0] * np.log(total / (total - votes[row]))
    assert influence[0, 3] == pytest.approx(clf.pool_weights_["discriminant"] * added)


def draw_law(law, rng, n):
    """Points, and the true probability of class 1 there."""
    if law == "sine":
        X = rng.random((n, 1))
        return X, 0.5 + 0.4 * np.sin(4 * np.pi * X[:, 0])
    if law == "slope":
        X = rng.random((n, 3))
        return X, expit(6 * X[:, 0] - 3)
    X = rng.normal(size=(n, 2))
    return X, expit(3 * (np.hypot(*X.T) - 1.2))


def covers(intervals, p):
    """Share of points whose true probability of class 1 lies in its interval, and mean width."""
    low, high = intervals[:, 1].T
    return ((low <= p) & (p <= high)).mean(), (high - low).mean()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["sine", "slope", "ring"])
def test_intervals_cover_the_true_probability(law):
    """Mean coverage over points and sets at level 0.95, and intervals that are worth having.

    Of new points, and of training points that are left out.

    On other seeds than these: 1.00, 0.98 and 0.94 of the points at mean widths of 0.53, 0.42 and
    0.37. Pairs of far neighbours (60 ranks for 3) cover 0.88 on the ring and an error half as
    large 0.84; one twice as large is 0.68 wide on the sine, the most that there can be 0.88.
    """
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, p = draw_law(law, rng, 650)
        y = (rng.random(650) < p).astype(int)
        clf = PooledNeighborsClassifier(random_state=seed).fit(X[:250], y[:250])
        left_out = covers(clf.loo_interval(), p[:250])
        found.append([covers(clf.predict_interval(X[250:]), p[250:]), left_out])
    for covered, width in np.mean(found, axis=0):
        assert covered > 0.9 and width < 0.6, found


def test_intervals_of_left_out_rows_cover():
    """Quick, and intervals at level 0.5 show that not any would do."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 8])
        X, p = draw_law("ring", rng, 250)
        y = (rng.random(250) < p).astype(int)
        clf = PooledNeighborsClassifier(("discriminant",), random_state=seed).fit(X, y)
        found.append([covers(clf.loo_interval(level), p) for level in (0.95, 0.5)])
    (covered, width), (half, _) = np.mean(found, axis=0)
    assert covered > 0.88 and width < 0.6 and half < 0.8, found


@pytest.mark.slow
@pytest.mark.parametrize(("n", "least", "widest"), [(1000, 0.92, 0.63), (4000, 0.89, 0.4)])
def test_intervals_cover_in_ten_dimensions(n, least, widest):
    """Mean coverage and width at level 0.95, within 4.5 standard errors of what was found.

    On other seeds 0.97 of the points at width 0.49 for n = 1,000, and 0.96 at 0.30 for n = 4,000.
    Without regard to how alike pairs are 0.80 and 0.84; an error twice as large is 0.64 and 0.41
    wide.
    """
    found = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 3])
        X = rng.normal(size=(n + 400, 10))
        p = expit(0.5 * ((X**2).sum(axis=1) - 10))
        y = (rng.random(n + 400) < p).astype(int)
        clf = PooledNeighborsClassifier(random_state=seed).fit(X[:n], y[:n])
        found.append(covers(clf.predict_interval(X[n:]), p[n:]))
    covered, width = np.mean(found, axis=0)
    assert covered > least and width < widest, found


def test_without_signal_it_is_as_good_as_the_class_frequencies():
    """The loss on new points beyond that of the frequencies is a few hundredths at most."""
    excess = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(620, 4)), (rng.random(620) < 0.3).astype(int)
        clf = PooledNeighborsClassifier(random_state=seed).fit(X[:120], y[:120])
        proba = clf.predict_proba(X[120:])[np.arange(500), y[120:]]
        share = y[:120].mean()
        excess.append(np.mean(np.log(np.where(y[120:] == 1, share, 1 - share) / proba)))
    assert np.mean(excess) < 0.03, excess


def losses_with_and_without(X, y, n_true, n, seed):
    rows = np.arange(len(y) - n)
    found = []
    for columns in (slice(n_true), slice(None)):
        clf = PooledNeighborsClassifier(random_state=seed).fit(X[:n, columns], y[:n])
        proba = clf.predict_proba(X[n:, columns])
        found.append(-np.log(proba[rows, y[n:]]).mean())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("law", ["ripley", "xor"])
def test_noise_columns_cost_little(law):
    """Within 15 % of the log-loss without them, over three draws of the noise."""
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        if law == "ripley":
            X = np.vstack([RIPLEY.X_train, RIPLEY.X_test])
            y = np.concatenate([RIPLEY.y_train, RIPLEY.y_test])
            X = np.hstack([X, rng.normal(size=(len(y), 10))])
        else:
            X = rng.uniform(-1, 1, size=(1250, 6))
            y = (rng.random(1250) < np.where(X[:, 0] * X[:, 1] > 0, 0.9, 0.1)).astype(int)
        losses.append(losses_with_and_without(X, y, 2, 250, seed))
    plain, noisy = np.mean(losses, axis=0)
    assert noisy < 1.15 * plain, losses


def fit_weighted(weights):
    clf = PooledNeighborsClassifier(("discriminant", "additive"), random_state=0)
    return clf.fit(RIPLEY.X_train[::2], RIPLEY.y_train[::2], weights)


@pytest.mark.parametrize("scale", [2.0, 20.0, 1 / 125, 1e300])
def test_the_scale_of_weights_changes_nothing(scale):
    weights = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 125)
    for given, scaled in ((None, np.full(125, scale)), (weights, scale * weights)):
        first, second = fit_weighted(given), fit_weighted(scaled)
        for name in ("predict_proba", "predict_interval"):
            both = (getattr(clf, name)(RIPLEY.X_test[::10]) for clf in (first, second))
            np.testing.assert_allclose(*both, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(first.loo_proba_, second.loo_proba_, rtol=1e-9)
        assert second.loo_log_score_ == pytest.approx(first.loo_log_score_)
        assert -1 <= second.residual_correlation_ <= 1


def test_scores_are_weighted_as_the_rows_are():
    weights = np.random.default_rng(1).choice([0.5, 4.0], 125)
    clf = fit_weighted(weights)
    own = np.log(clf.loo_proba_[np.arange(125), RIPLEY.y_train[::2]])
    assert clf.loo_log_score_ == pytest.approx(np.average(own, weights=weights))


def test_unequal_weights_widen_the_intervals():
    """They are worth fewer rows; over draws of the weights, since an estimate goes either way."""
    widths = []
    for spread in (0.0, 0.7, 1.4):
        drawn = (np.random.default_rng([seed, 3]).normal(size=125) for seed in range(4))
        fits = (fit_weighted(np.exp(spread * each)) for each in drawn)
        ends = [clf.predict_interval(RIPLEY.X_test[::10])[:, 1] for clf in fits]
        widths.append(np.mean(np.ptp(ends, axis=2)))
    assert widths[0] < widths[1] < widths[2], widths


def test_folds_of_one_row_leave_wide_intervals():
    """Without pairs of rows in a fold nothing is known of the error, and nothing is NaN."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = rng.normal(size=(30, 2)) + y[:, None]
    clf = PooledNeighborsClassifier(("discriminant",), n_folds=20, random_state=0).fit(X, y)
    low, high = np.moveaxis(clf.predict_interval(X), -1, 0)
    assert np.all(low <= clf.predict_proba(X)) and np.all(high - low > 0.3)
