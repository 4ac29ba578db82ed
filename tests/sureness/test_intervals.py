"""Calibration, intervals of the true probability, typicality and influence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_glass, load_ripley
from bayesknn.sureness.calibration import Calibrator
from bayesknn.sureness.intervals import fit_interval_model
from tests.sureness.laws import draw

RIPLEY, GLASS = load_ripley(), load_glass()
# Coverage and width of 95 % intervals: n = 250 over six data sets, n = 1,000 over two.
TABLE = {
    "ripley": ((0.974, 0.232), (0.999, 0.159)),
    "sine1": ((0.986, 0.398), (1.000, 0.271)),
    "xor": ((0.898, 0.438), (0.934, 0.321)),
    "lda10": ((0.950, 0.325), (0.992, 0.315)),
    "mix6": ((0.991, 0.175), (1.000, 0.118)),
    "sep": ((0.999, 0.047), (0.996, 0.018)),
}


@pytest.fixture(scope="module")
def pseudo():
    return BayesianKNeighborsClassifier("pseudo", random_state=0).fit(
        RIPLEY.X_train, RIPLEY.y_train
    )


def measure(law, n, seed, **settings):
    """Return coverage, width and mean KL(P || p), raw and pooled, of one data set."""
    X, y, new, truth, k_max = draw(law, n, seed)
    settings = {"likelihood": "pseudo", "max_neighbors": k_max, "random_state": 0} | settings
    clf = BayesianKNeighborsClassifier(calibrate=True, **settings).fit(X, y)
    low, high = np.moveaxis(clf.predict_interval(new), 2, 0)
    covered = np.mean((low <= truth) & (truth <= high))
    stated = clf._predictive.probabilities(new), clf.predict_proba(new)
    divergence = [(stats.entropy(truth, p, axis=1)).mean() for p in stated]
    return covered, np.mean(high - low), *divergence


def check_table(law, n, seeds):
    expected = TABLE[law][0 if n == 250 else 1]
    found = np.mean([measure(law, n, seed)[:2] for seed in seeds], axis=0)
    assert abs(found[0] - expected[0]) < 0.02 and abs(found[1] - expected[1]) < 0.01


@pytest.mark.parametrize("law", ["ripley", "sep"])
def test_intervals_cover_as_measured(law):
    check_table(law, 250, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("n", [250, 1000])
@pytest.mark.parametrize("law", TABLE)
def test_intervals_of_all_six_laws_cover_as_measured(law, n):
    check_table(law, n, range(6 if n == 250 else 2))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"likelihood": "holmes-adams"}, {"likelihood": "coherent"}])
def test_other_likelihoods_cover_too(settings):
    rows = [measure("ripley", 250, seed, **settings) for seed in range(4)]
    covered, _, raw, pooled = np.mean(rows, axis=0)
    assert 0.92 < covered < 0.995 and pooled < raw


@pytest.mark.slow
def test_classes_of_different_spread_open_the_gate():
    """Without the term for the distance the intervals of outliers are in the wrong place."""
    with_term, without, n_open = [], [], 0
    for seed in range(4):
        X, y, new, truth, k_max = draw("spread10", 250, seed)
        clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=k_max, random_state=0)
        sure = clf.fit(X, y)._interval_model
        n_open += sure.calibrator.spread is not None
        found = clf._predictive.predict(new)
        shut = without_spread(clf, found)
        for rows, (ends, _) in ((with_term, sure.intervals(found, 0.95)), (without, shut)):
            rows.append(np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1])))
    assert n_open >= 3
    assert np.mean(with_term) > np.mean(without) + 0.03
    assert np.mean(with_term) > 0.9


def interval_model_of(clf, left_out, columns):
    """Return the interval model of other leave-one-out predictions, without copies of rows."""
    predictive, labels = clf._predictive, clf._labels
    nodes, weights = predictive.nodes, predictive.class_weight
    calibrator = Calibrator.fit(left_out, labels, nodes.votes_by_rank, weights[labels])
    both = predictive.direction == "both"
    return fit_interval_model(
        left_out,
        labels,
        pairs=calibrator.find_pairs(
            left_out, labels, clf.graph_.neighbors, nodes.k_mean, weights, both
        ),
        n_votes=nodes.k_mean,
        columns=columns,
        copies=None,
        weights=weights[labels],
        groups=None,
        calibrator=calibrator,
    )


def without_spread(clf, found):
    """Intervals as they are where all distances are the same to the calibration."""
    left_out = clf._left_out
    flat = left_out._replace(distances=np.ones_like(left_out.distances))
    sure = interval_model_of(clf, flat, None)
    assert sure.calibrator.spread is None
    return replace(sure, scale=clf._interval_model.scale).intervals(found, 0.95)


NEW = np.array([[0.0, 0.5], [5.0, 5.0]])


def test_the_numbers_of_ripley_by_the_old_leave_one_out(pseudo):
    """The formulas, from probabilities that have seen the labels."""
    predictive = pseudo._predictive
    walk = predictive.graph.iterate_counts(predictive.labels, 2, predictive._rule.k_values)
    counts = np.stack([each.copy() for _, each in walk])
    seen = predictive._rule.predict(counts, np.zeros(250))[0].probabilities
    sure = interval_model_of(pseudo, pseudo._left_out._replace(probabilities=seen), RIPLEY.X_train)
    calibrator = sure.calibrator
    assert np.allclose(calibrator.calibration, (0.801, 0.439), atol=6e-4)
    assert calibrator.spread is None
    assert abs(sure.correlation.value - 0.0090) < 6e-5
    assert abs(sure.correlation.error - 0.0388) < 6e-5
    ends, _ = sure.intervals(predictive.predict(NEW), 0.95)
    assert np.allclose(ends[:, 1], [[0.256, 0.782], [0, 1]], atol=1e-3)


def test_the_numbers_of_ripley(pseudo):
    assert np.allclose(pseudo.calibration_, (0.653, 0.661), atol=1e-3)
    assert pseudo.calibration_spread_ is None
    assert abs(pseudo.residual_correlation_ - 0.0059) < 1e-4
    assert abs(pseudo.residual_correlation_error_ - 0.0383) < 1e-4
    ends = pseudo.predict_interval(NEW)
    assert np.allclose(ends[:, 1], [[0.261, 0.775], [0, 1]], atol=1e-3)
    assert np.allclose(ends[:, 0], 1 - ends[:, 1, ::-1])


def slow_twin(clf, new):
    """Write the formulas out point by point: t and s as found, then correlation, intervals."""
    left_out, nodes, graph = clf._left_out, clf._predictive.nodes, clf.graph_
    y, G, n = clf._labels, len(clf.classes_), len(clf._labels)
    t, s = clf.calibration_
    pairs = list(zip(nodes.k.tolist(), nodes.beta.tolist(), nodes.weight.tolist(), strict=True))
    A = [sum(w * b / k for k, b, w in pairs if k >= r) for r in range(1, max(nodes.k) + 1)]
    k_eff = sum(A) ** 2 / sum(a * a for a in A)
    k_mean = sum(w * k for k, _, w in pairs)
    reverse = clf.likelihood != "holmes-adams"

    def share(S):
        return [(k_eff * (v / sum(S) if sum(S) else 1 / G) + 1 / G) / (k_eff + 1) for v in S]

    def cal(log_p, S):
        fields = [t * p + s * math.log(v) for p, v in zip(log_p, share(S), strict=True)]
        e = [math.exp(f - max(fields)) for f in fields]
        return np.array(e) / sum(e)

    def votes(i):
        total = np.zeros(G)
        for k, b, w in pairs:
            total += w * b / k * graph.counts(y, G, k, "both" if reverse else "forward")[i]
        return total

    S = [votes(i) for i in range(n)]
    loo = np.log(left_out.probabilities)
    Y = np.eye(G)

    def without(i, j, a):
        return cal(loo[i] - a * (Y[y[j]] - 1 / G), np.maximum(S[i] - a * Y[y[j]], 0))

    T = Q = 0.0
    n_ranks = min(int(np.clip(int(k_mean / 5), 3, 15)), max(nodes.k))
    for r in range(n_ranks):
        a = (2 if reverse else 1) * A[r]
        for i in range(n):
            j = int(graph.neighbors[r, i])
            c = (Y[y[i]] - without(i, j, a)) @ (Y[y[j]] - without(j, i, a))
            T, Q = T + c, Q + c * c
    q = np.array([cal(loo[i], S[i]) for i in range(n)])
    D = n_ranks * (q * (1 - q)).sum()
    v, se = T / D, math.sqrt(2 * Q) / D
    away = q - q.mean(axis=0)
    rho = np.mean([
        sum(away[i] @ away[int(graph.neighbors[r, i])] for i in range(n)) for r in range(n_ranks)
    ]) / (away**2).sum()  # fmt: skip
    rho = min(max(rho, 0.2), 1.0)
    near = max(v, 0) / rho + min(v, 0) + se
    cautious = min((max(v, 0) + se) / rho, n_ranks * (away**2).sum() / D)
    kappa = min(max(1.5 / k_mean, near, cautious), 0.5)
    assert clf.diagnostics_["misfit_column"] is None
    rank = round(k_mean)
    h = np.sort(graph.distances[rank - 1])
    query = graph.query(new)
    found = []
    for x in range(len(new)):
        values = []
        total = np.zeros(G)
        for k, b, w in pairs:
            counts = query.counts(y, G, [k], "both" if reverse else "forward")[0][x]
            e = np.exp(b / k * (counts - counts.max()))
            values.append(e / e.sum())
            total += w * b / k * counts
        mean = nodes.weight @ np.array(values)
        V = nodes.weight @ (np.array(values) - mean) ** 2
        pooled = cal(np.log(mean), total)
        d = query.distances[rank - 1, x]
        for g in range(G):
            p = (n * pooled[g] + 1 / G) / (n + 1)
            v = kappa * (1 + (d / np.median(h)) ** 2) / 2 * p * (1 - p) + V[g]
            m = max(p * (1 - p) / v - 1, 1)
            law = stats.beta(m * p, m * (1 - p))
            ends = [p, pooled[g], mean[g], law.ppf(0.1 * p), law.ppf(1 - 0.1 * (1 - p))]
            # What k votes leave open.
            p = (k_mean * pooled[g] + 1 / G) / (k_mean + 1)
            law = stats.beta((k_mean + 1) * p, (k_mean + 1) * (1 - p))
            ends += [p, law.ppf(0.1 * p), law.ppf(1 - 0.1 * (1 - p))]
            ends = min(ends), max(ends)
            found.append((0, 1) if d > h[-1] else ends)
    return T / D, math.sqrt(2 * Q) / D, np.reshape(found, (len(new), G, 2))


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_it_is_what_its_slow_twin_says(likelihood):
    glass = load_glass()
    X, y = glass.X_train[:, :3], glass.y_train
    # Draws, so that there are few nodes.
    clf = BayesianKNeighborsClassifier(
        likelihood, "metropolis", max_neighbors=8, beta_max=6.0, n_chains=1, n_draws=30,
        n_warmup=100, random_state=0,
    )  # fmt: skip
    with pytest.warns(match="mix|draws|accepted"):
        clf.fit(X, y)
    if clf.calibration_spread_ is not None:
        pytest.fail("the twin does not know the term for the distance")
    new = np.vstack([glass.X_test[:6, :3], [[9.0, 9.0, 9.0]]])
    value, error, ends = slow_twin(clf, new)
    assert math.isclose(clf.residual_correlation_, value, rel_tol=1e-6)
    assert math.isclose(clf.residual_correlation_error_, error, rel_tol=1e-6)
    assert np.allclose(clf.predict_interval(new, 0.9), ends, atol=1e-6)


def test_both_classifiers_give_the_correlation_as_two_numbers(pseudo):
    """It was a tuple of all that residuals show in the pool."""
    pool = PooledNeighborsClassifier(("evidence",), random_state=0)
    for clf in (pseudo, pool.fit(RIPLEY.X_train[::4], RIPLEY.y_train[::4])):
        value, error = clf.residual_correlation_, clf.residual_correlation_error_
        assert type(value) is type(error) is float and -1 <= value <= 1 and error > 0


def test_exponents_maximise_the_penalised_score(pseudo):
    left_out, sure = pseudo._left_out, pseudo._calibrator

    def score(t, s):
        moved = replace(sure, calibration=sure.calibration._replace(t=t, s=s), spread=None)
        own = moved.calibrate(left_out)[np.arange(250), RIPLEY.y_train]
        return np.log(own).sum() - ((t - 1) ** 2 + s**2) / (2 * 0.5**2)

    t, s = sure.calibration
    best = score(t, s)
    assert all(
        score(t + a, s + b) < best for a, b in [(1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)]
    )


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams", "coherent"])
def test_pooled_probabilities_are_better_on_ripley(likelihood):
    settings = {"likelihood": likelihood, "random_state": 0, "beta_max": 4.0}
    raw, pooled = (
        BayesianKNeighborsClassifier(calibrate=calibrate, **settings)
        .fit(RIPLEY.X_train, RIPLEY.y_train)
        for calibrate in (False, True)
    )  # fmt: skip
    losses = [log_loss(RIPLEY.y_test, clf.predict_proba(RIPLEY.X_test)) for clf in (raw, pooled)]
    assert losses[1] < losses[0] - 0.0005
    assert pooled.loo_log_score_ > raw.loo_log_score_
    ends, p = pooled.predict_interval(RIPLEY.X_test), pooled.predict_proba(RIPLEY.X_test)
    assert np.all(ends[..., 0] <= p) and np.all(p <= ends[..., 1])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    # The same intervals whether or not predict_proba pools, but for what they must hold.
    own = raw.predict_proba(RIPLEY.X_test)
    expected = np.stack([np.minimum(ends[..., 0], own), np.maximum(ends[..., 1], own)], axis=-1)
    np.testing.assert_allclose(raw.predict_interval(RIPLEY.X_test), expected, atol=1e-12)


@pytest.mark.parametrize("of", ["probability", "parameters"])
@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("way", [None, "offset", "weights"])
def test_intervals_hold_the_probabilities_beside_them(of, calibrate, way):
    glass = load_glass()
    clf = BayesianKNeighborsClassifier(
        "pseudo", max_neighbors=9, beta_max=6.0, random_state=0, calibrate=calibrate,
        class_prior=None if way is None else [0.05, 0.15, 0.3, 0.5], class_prior_as=way or "offset",
    ).fit(glass.X_train, glass.y_train)  # fmt: skip
    for level in (0.2, 0.8):
        summary = clf.predict_summary(glass.X_test, level, of)
        cases = (summary[:2], (clf.loo_proba_, clf.loo_interval(level, of)))
        for p, ends in cases:
            assert np.all(ends[..., 0] <= p) and np.all(p <= ends[..., 1])
            assert ends.min() >= 0 and ends.max() <= 1


def test_class_frequencies_offset_the_log_odds():
    glass = load_glass()
    settings = {"likelihood": "pseudo", "max_neighbors": 9, "beta_max": 6.0, "random_state": 0}
    prior = dict(zip(np.unique(glass.y_train), [0.1, 0.2, 0.3, 0.4], strict=True))
    plain = BayesianKNeighborsClassifier(**settings).fit(glass.X_train, glass.y_train)
    moved = BayesianKNeighborsClassifier(class_prior=prior, **settings)
    moved.fit(glass.X_train, glass.y_train)
    # The posterior is the same.
    assert moved.beta_mean_ == plain.beta_mean_
    ratio = moved.class_weight_
    expected = plain.predict_proba(glass.X_test) * ratio
    expected /= expected.sum(axis=1, keepdims=True)
    p = moved.predict_proba(glass.X_test)
    np.testing.assert_allclose(p, expected)
    expected = plain.loo_proba_ * ratio
    np.testing.assert_allclose(moved.loo_proba_, expected / expected.sum(axis=1, keepdims=True))
    ends = moved.predict_interval(glass.X_test, of="parameters")
    assert np.all(ends[..., 0] <= p + 1e-12) and np.all(p <= ends[..., 1] + 1e-12)
    # On the logit scale each end moves by as much as the calibrated probability.
    before, pooled = plain._interval_model.intervals(plain._predictive.predict(glass.X_test), 0.95)
    ends = moved.predict_interval(glass.X_test)
    inside = (before > 1e-6) & (before < 1 - 1e-6)
    others = (pooled @ ratio)[:, None] - ratio * pooled
    shift = np.log(ratio * (1 - pooled) / others)[..., None] * np.ones(2)
    logit = np.log(before[inside] / (1 - before[inside])) + shift[inside]
    np.testing.assert_allclose(ends[inside], 1 / (1 + np.exp(-logit)), rtol=1e-6)


def test_an_offset_is_better_than_weights_where_frequencies_differ():
    """Ripley's classes are balanced; at prediction class 1 makes up a tenth."""
    weight = np.where(RIPLEY.y_test == 1, 0.1, 0.9)
    losses = []
    for prior, way in ((None, "offset"), ([0.9, 0.1], "weights"), ([0.9, 0.1], "offset")):
        clf = BayesianKNeighborsClassifier(
            "pseudo", max_neighbors=60, beta_max=4.0, class_prior=prior, class_prior_as=way
        ).fit(RIPLEY.X_train, RIPLEY.y_train)
        p = clf.predict_proba(RIPLEY.X_test)
        losses.append(log_loss(RIPLEY.y_test, p, sample_weight=weight))
    assert losses[2] < min(losses[:2]) - 0.05


def test_typicality_is_the_share_of_points_as_far_from_their_neighbours(pseudo):
    new = np.vstack([RIPLEY.X_test[:50], NEW])
    rank = round(pseudo._predictive.nodes.k_mean)
    gaps = np.linalg.norm(new[:, None] - RIPLEY.X_train[None], axis=2)
    far = np.sort(gaps, axis=1)[:, rank - 1]
    own = pseudo.graph_.distances[rank - 1]
    expected = [(own >= d).mean() for d in far]
    np.testing.assert_allclose(pseudo.predict_typicality(new), expected)
    zones = pseudo.predict_zone(new, unfamiliar=0.3)
    assert np.array_equal(zones == "unfamiliar", np.array(expected) < 0.3)
    known = zones != "unfamiliar"
    assert np.array_equal(zones[known], pseudo.predict_zone(new)[known])
    assert zones[-1] == "unfamiliar" and "unfamiliar" not in pseudo.predict_zone(new)
    found = pseudo.predict_summary(new, of="parameters")
    np.testing.assert_array_equal(found.probabilities, pseudo.predict_proba(new))
    np.testing.assert_allclose(found.typicality, expected)


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_influence_adds_up_to_the_log_odds_and_flips_with_a_label(likelihood):
    X, y = RIPLEY.X_train[::3], RIPLEY.y_train[::3]
    clf = BayesianKNeighborsClassifier(likelihood, max_neighbors=12, beta_max=6.0).fit(X, y)
    new = RIPLEY.X_test[:30]
    indices, influence = clf.predict_influence(new, n_neighbors=len(X))
    assert indices.shape == influence.shape == (30, len(X))
    assert np.all(np.diff(influence, axis=1) <= 0) and np.all(influence >= 0)
    assert np.all((indices == -1) == (influence == 0))
    votes = clf._predictive.predict(new).votes
    for q in range(30):
        rows = indices[q][indices[q] >= 0]
        assert len(set(rows.tolist())) == len(rows)
        for g in (0, 1):
            spoken = influence[q][: len(rows)][y[rows] == g].sum()
            assert math.isclose(spoken, votes[q, g], rel_tol=1e-9)
    few = clf.predict_influence(new, 5)
    assert np.array_equal(few[0], indices[:, :5]) and np.array_equal(few[1], influence[:, :5])


def test_few_neighbours_that_hardly_err_leave_intervals_narrow():
    """Two or three votes alone would leave P anywhere; that they err once in 100 rows says more."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 2)) + 4.0 * y[:, None]
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=3, beta_max=8.0, random_state=0)
    clf.fit(X, y)
    middle = np.array([[0.0, 0.0], [4.0, 4.0]])
    low, high = clf.predict_interval(middle)[[0, 1], [0, 1]].T
    assert np.all(low > 0.6) and np.all(high == 1.0)
