"""``class_prior`` meets intervals, calibration, duplicate rows, saved files and ``reweight``."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import clone

from bayesknn import BayesianKNeighborsClassifier

PRIOR = np.array([0.85, 0.15])


def draw():
    """Return rows of few values, so that many are duplicates, labels, and new rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(5, size=(120, 2)).astype(float)
    y = (rng.random(120) < np.where(X[:, 0] > 1, 0.8, 0.3)).astype(int)
    return X, y, np.array([[0.0, 1.0], [3.0, 3.0], [1.4, 2.2], [4.0, 0.5]])


X, Y, NEW = draw()
# a_g = p_g n / n_g of each row; their mean is 1.
A = (PRIOR * len(Y) / np.bincount(Y))[Y]
PLAIN = BayesianKNeighborsClassifier(
    "pseudo", max_neighbors=12, beta_max=4.0, n_draws=50, calibrate=True, random_state=0
)


def fit(way, **settings):
    clf = clone(PLAIN).set_params(class_prior=PRIOR, class_prior_as=way, **settings)
    return clf.fit(X, Y)


@pytest.fixture(scope="module")
def weighted():
    return fit("weights")


def test_pairs_of_rows_count_by_their_weights(weighted):
    """The number of votes is that of the effective number of rows, (sum a)^2 / sum a^2."""
    votes = weighted._predictive.nodes.k_mean * A.sum() ** 2 / (len(A) * (A**2).sum())
    correlation = weighted._interval_model.correlation
    assert correlation.n_votes == pytest.approx(votes)
    # The error rate of all rows, with one more error that shows in both classes.
    wrong = A @ (weighted.loo_proba_.argmax(axis=1) != Y)
    assert correlation.error_rates[0] == pytest.approx((2 * wrong + 2) / (2 * A.sum() + 2))


def test_exponents_maximise_the_weighted_score(weighted):
    assert weighted.calibration_spread_ is None
    left_out, sure = weighted._left_out, weighted._calibrator

    def score(t, s):
        moved = replace(sure, calibration=sure.calibration._replace(t=t, s=s))
        own = moved.calibrate(left_out)[np.arange(len(Y)), Y]
        return A @ np.log(own) - ((t - 1) ** 2 + s**2) / (2 * 0.5**2)

    t, s = sure.calibration
    steps = [(1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)]
    assert all(score(t + a, max(s + b, 0)) <= score(t, s) for a, b in steps)


def test_duplicate_rows_count_by_their_weights(weighted):
    """Weights of the rows of equal values, as that many rows of equal weight."""

    def count(is_copy):
        totals = np.array([A[is_copy & (Y == g)].sum() for g in (0, 1)])
        return totals * totals.sum() / max((A[is_copy] ** 2).sum(), 1e-300)

    equal = (X[:, None] == X).all(axis=2)
    left_out = [count(equal[i] & (np.arange(len(Y)) != i)) for i in range(len(Y))]
    new = [count((X == row).all(axis=1)) for row in NEW]
    np.testing.assert_allclose(weighted._describe_left_out(None).copies, left_out, atol=1e-9)
    np.testing.assert_allclose(weighted._describe_new(NEW, None).copies, new, atol=1e-9)
    assert max(map(max, new)) > 1


@pytest.mark.parametrize("way", ["weights", "offset"])
def test_the_saved_and_the_reweighted_classifier_keep_the_class_prior(way):
    clf = fit(way)
    wanted = [clf.predict_interval(NEW, of=of) for of in ("probability", "parameters")]
    for other in (pickle.loads(pickle.dumps(clf)), clf.reweight(clf.prior_)):
        got = [other.predict_interval(NEW, of=of) for of in ("probability", "parameters")]
        np.testing.assert_allclose(got, wanted, atol=1e-9)
        np.testing.assert_allclose(other.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-9)
        np.testing.assert_allclose(other.loo_interval(), clf.loo_interval(), atol=1e-9)


def test_an_offset_moves_calibrated_odds_and_intervals_of_the_parameters():
    """By log(a_1 / a_0), whether calibrated or not."""
    shift = np.log(PRIOR[1] / PRIOR[0]) - np.log(np.bincount(Y)[1] / np.bincount(Y)[0])
    for calibrate in (False, True):
        plain = clone(PLAIN).set_params(calibrate=calibrate).fit(X, Y)
        moved = fit("offset", calibrate=calibrate)
        for ask in (lambda clf: clf.predict_proba(NEW), lambda clf: clf.loo_proba_):
            odds = [logit(ask(clf)[:, 1]) for clf in (plain, moved)]
            np.testing.assert_allclose(odds[1] - odds[0], shift, atol=1e-6)
    # The stated probability of the last two is that of the parameters alone.
    plain, moved = (
        clone(PLAIN).set_params(calibrate=False).fit(X, Y),
        fit("offset", calibrate=False),
    )
    ends = [logit(clf.predict_interval(NEW, of="parameters")[:, 1]) for clf in (plain, moved)]
    np.testing.assert_allclose(ends[1] - ends[0], shift, atol=1e-6)
