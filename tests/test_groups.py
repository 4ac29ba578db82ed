"""Rows that belong together: no neighbours of one's own group, and all that follows."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import expit

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
    check_intervals,
)
from bayesknn.pooled.member import _leave_each_out
from bayesknn.pooled.views import assign_folds
from bayesknn.sureness.copies import Copies
from bayesknn.sureness.counts import counts_of_probabilities
from bayesknn.sureness.groups import correlate_relatives, count_alike, find_scored, weigh_relatives


def draw_visits(n_groups=40, size=5, sd=1.5, seed=0, n_classes=2):
    """Visits of patients that are alike in their values and, beyond these, in their labels."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups, 2))[groups] + 0.1 * rng.normal(size=(len(groups), 2))
    log_odds = 1.5 * X[:, 0] + sd * rng.normal(size=n_groups)[groups]
    return X, (rng.random(len(groups)) < expit(log_odds)).astype(int), groups


def products(**changed):
    given = {"random_state": 0} | changed
    return [
        BayesianKNeighborsClassifier("pseudo", **given),
        BayesianKNeighborsClassifier("holmes-adams", **given),
    ]


@pytest.mark.parametrize("clf", products(), ids=lambda clf: clf.likelihood)
def test_groups_of_one_row_give_the_same_bits(clf):
    X, y, _ = draw_visits(25, 3)
    alone = clf.fit(X, y).loo_proba_, clf.predict_interval(X[:9]), clf.beta_mean_
    other = clf.fit(X, y, groups=np.arange(len(y))[::-1])
    assert other.groups_ is None
    for one, two in zip(
        alone, (other.loo_proba_, other.predict_interval(X[:9]), other.beta_mean_), strict=True
    ):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("clf", products(), ids=lambda clf: clf.likelihood)
def test_left_out_scores_are_those_of_new_groups(clf):
    """Where visits of a patient are alike, plain leave-one-out recognises the patient."""
    X, y, groups = draw_visits(80, 5, sd=3.0)
    new, y_new, _ = draw_visits(300, 1, sd=3.0, seed=1)

    def score(proba, labels):
        return np.log(proba[np.arange(len(labels)), labels])

    plain = clf.fit(X, y)
    flattering = plain.loo_log_score_, score(plain.predict_proba(new), y_new).mean()
    grouped = clf.fit(X, y, groups=groups)
    test = score(grouped.predict_proba(new), y_new)
    error = np.hypot(test.std() / np.sqrt(300), test.std() / np.sqrt(80))
    assert abs(grouped.loo_log_score_ - test.mean()) < 4.5 * error
    assert flattering[0] - flattering[1] > 3 * error


@pytest.mark.parametrize("clf", products(), ids=lambda clf: clf.likelihood)
def test_labels_of_relatives_move_nothing_but_the_posterior(clf):
    """The invariance 'groups': relatives' labels move a row no more than its own label does."""
    X, y, groups = draw_visits(30, 4, sd=4.0)
    clf.set_params(beta_max=4.0, max_neighbors=3)
    row = 5
    first = clf.fit(X, y, groups=groups).loo_proba_[row]
    own = y.copy()
    own[row] = 1 - own[row]
    moved = np.abs(clf.fit(X, own, groups=groups).loo_proba_[row] - first).max()
    relatives = y.copy()
    some = (groups == groups[row]) & (np.arange(len(y)) != row)
    relatives[some] = 1 - relatives[some]
    by_relatives = np.abs(clf.fit(X, relatives, groups=groups).loo_proba_[row] - first).max()
    # Three labels of relatives enter where one own label does: the factors of their neighbours.
    assert by_relatives < 3 * moved + 0.01
    plain = clf.fit(X, y).loo_proba_[row]
    assert np.abs(clf.fit(X, relatives).loo_proba_[row] - plain).max() > 0.2


def test_the_longest_list_ends_where_other_groups_do():
    X, y, _ = draw_visits(4, 10)
    groups = np.repeat([0, 1, 2], [30, 5, 5])
    y[:3], y[30:33], y[35:38] = [0, 1, 0], [0, 1, 1], [1, 0, 0]
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y, groups=groups)
    assert clf.k_values_[-1] == 10
    with pytest.raises(ValueError, match="max_neighbors must be"):
        clf.set_params(max_neighbors=11).fit(X, y, groups=groups)


def test_a_class_of_one_group_is_fitted_and_counts_in_no_score():
    X, y, groups = draw_visits(30, 4)
    y[groups == 7] = 2
    X[groups == 7] += 20
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0, beta_max=6.0, max_neighbors=5)
    with pytest.warns(UserWarning, match="class 2 has rows in one group alone"):
        clf.fit(X, y, groups=groups)
    (said,) = [each for each in clf.diagnostics_["warnings"] if "in one group alone" in each]
    assert said.startswith("class 2 has") and "no score uses them (4 rows)" in said
    rest = y < 2
    scores = np.log(clf.loo_proba_[np.arange(len(y)), y])
    assert np.isclose(clf.loo_log_score_, scores[rest].mean())
    assert scores[~rest].mean() < clf.loo_log_score_ - 0.5
    assert clf.predict([[20.0, 20.0]])[0] == 2
    assert clf.predict_interval([[20.0, 20.0]])[0, 2, 1] > 0.4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classical = ClassicalKNeighborsClassifier().fit(X, y, groups=groups)
    assert any("class 2 has" in str(each.message) for each in caught)
    assert classical.loo_errors_.min() < 0.5
    with pytest.raises(ValueError, match="no class is in two groups"):
        clf.set_params(max_neighbors=2).fit(
            X[:8], [0, 0, 0, 0, 1, 1, 1, 1], groups=[0, 0, 0, 0, 1, 1, 1, 1]
        )


def test_the_classical_rule_chooses_k_by_other_groups():
    X, y, groups = draw_visits(60, 5, sd=2.5)
    plain = ClassicalKNeighborsClassifier().fit(X, y)
    grouped = ClassicalKNeighborsClassifier().fit(X, y, groups=groups)
    near = grouped.graph_.neighbors[0]
    assert grouped.loo_errors_[0] == np.mean(y[near] != y)
    assert np.all(groups[near] != groups)
    assert plain.loo_errors_.min() < grouped.loo_errors_.min() - 0.03
    assert plain.n_neighbors_ < grouped.n_neighbors_


def test_saved_models_keep_the_groups():
    X, y, groups = draw_visits(30, 4)
    X = np.round(X)
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y, groups=groups)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.groups_, clf.groups_)
    assert np.array_equal(again.predict_interval(X), clf.predict_interval(X))
    assert np.array_equal(again.loo_interval(), clf.loo_interval())
    other = clf.reweight(clf.prior_)
    assert np.allclose(other.loo_proba_, clf.loo_proba_, atol=1e-9)
    assert np.allclose(other.predict_interval(X), clf.predict_interval(X), atol=1e-9)


def test_groups_are_routed_by_scikit_learn():
    import sklearn
    from sklearn.model_selection import GroupKFold, cross_validate

    X, y, groups = draw_visits(30, 4)
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0, max_neighbors=20, beta_max=6.0)
    with sklearn.config_context(enable_metadata_routing=True):
        clf.set_fit_request(groups=True)
        fits = cross_validate(
            clf, X, y, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True
        )["estimator"]
    assert all(fit.groups_.max() == 19 for fit in fits)


def test_blocks_on_other_machines_take_no_groups():
    pytest.importorskip("dask")
    from bayesknn.distributed import DistributedNeighborsClassifier

    with pytest.raises(ValueError, match="takes no groups"):
        DistributedNeighborsClassifier().fit(None, None, groups=[1, 1, 2])


def test_rows_of_a_batch_may_be_neighbors_and_counts_know_groups():
    X, y, groups = draw_visits(40, 5, sd=3.0)
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y, groups=groups)
    draws = clf.sample_labels(X[:6] + 0.01, n_draws=60, random_state=0)
    assert draws.shape == (60, 6)
    loo, proba = clf.loo_proba_, clf.predict_proba(X)
    by_rows = counts_of_probabilities(proba, loo, y, 0.9, np.ones(200))
    by_groups = counts_of_probabilities(proba, loo, y, 0.9, np.ones(200), groups)
    assert np.ptp(by_groups[0, 1:]) > 1.3 * np.ptp(by_rows[0, 1:])
    assert np.array_equal(clf.predict_counts(X)[0], by_groups[0])


def test_intervals_are_checked_with_the_groups():
    X, y, groups = draw_visits(25, 4)
    clf = BayesianKNeighborsClassifier("pseudo", random_state=0, beta_max=6.0)
    clf.fit(X, y, groups=groups)
    result = check_intervals(clf, X, y, n_repeats=2, random_state=0, verbose=0)
    assert 0.8 < result.coverage <= 1


def test_correlation_within_groups_is_that_of_pairs():
    rng = np.random.default_rng(0)
    groups = np.append(np.arange(12), rng.integers(12, size=48))
    weights, P = rng.uniform(0.5, 2, 60), rng.dirichlet([4, 4], 60)
    shared = rng.integers(2, size=12)[groups]
    y = np.where(rng.random(60) < 0.6, shared, rng.integers(2, size=60))
    residuals, variances = np.eye(2)[y] - P, (P * (1 - P)).sum(axis=1)
    total = scale = 0.0
    for i in range(60):
        for j in range(60):
            if i != j and groups[i] == groups[j]:
                both = weights[i] * weights[j]
                total += both * residuals[i] @ residuals[j]
                scale += both * (variances[i] + variances[j]) / 2
    rho = correlate_relatives(residuals, variances, weights, groups)
    assert 0 < rho < 1 and np.isclose(rho, total / scale)
    # m rows count as m / (1 + (m - 1) rho).
    sizes = np.bincount(groups)
    counted = np.bincount(groups, weigh_relatives(np.ones(60), groups, rho))
    assert np.allclose(counted, sizes / (1 + (sizes - 1) * rho))
    assert weigh_relatives(weights, None, 0.0) is weights


def test_voters_of_one_group_are_worth_fewer():
    neighbors = np.array([[2, 2, 0, 0], [3, 3, 1, 1]])
    alike, apart = np.array([0, 0, 1, 1]), np.arange(4)
    assert count_alike(neighbors, 2.0, alike, 1.0) == 2.0
    assert count_alike(neighbors, 2.0, alike, 0.5) == 1.5
    assert count_alike(neighbors, 2.0, apart, 1.0) == 1.0
    assert count_alike(neighbors, 2.0, None, 0.0) == 1.0


def test_copies_of_one_group_count_as_their_correlation_says():
    values, labels = np.zeros((6, 1)), np.array([0, 0, 0, 1, 1, 0])
    groups, ones = np.array([0, 0, 0, 1, 1, 2]), np.ones(6)
    copies = Copies.from_rows(values, labels, ones, 2)
    for within, n_rows in ((0.0, 6.0), (1.0, 36 / (9 + 4 + 1))):
        some = copies.among_groups(ones, groups, within)
        assert np.isclose(some.count_new(np.zeros((1, 1))).sum(), n_rows)
    others = copies.among_groups(ones, groups, 0.0).count_others(labels, ones)
    assert others[0].tolist() == [1.0, 2.0] and others[5].tolist() == [3.0, 2.0]
    assert copies.count_others(labels, ones)[0].tolist() == [3.0, 2.0]


def test_scored_are_classes_of_two_groups():
    labels, groups = np.array([0, 1, 0, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2])
    assert find_scored(labels, groups).tolist() == [1, 1, 1, 1, 0, 0]
    assert find_scored(labels, None).tolist() == [1] * 6


def test_folds_are_stratified_whole_groups():
    rng = np.random.default_rng(0)
    for n_groups, n_folds in ((30, 5), (4, 5), (3, 2)):
        groups = np.append(np.arange(n_groups), rng.integers(n_groups, size=10 * n_groups))
        labels = rng.integers(3, size=n_groups)[groups]
        # A class of two groups is in two folds, whatever else they hold.
        labels[groups < 2] = 3
        labels = np.unique(labels, return_inverse=True)[1]
        folds = assign_folds(labels, n_folds, rng, groups)
        assert np.unique(np.column_stack([groups, folds]), axis=0).shape == (n_groups, 2)
        assert folds.max() + 1 == min(n_folds, n_groups)
        assert len(np.unique(folds[labels == labels.max()])) == 2
    groups = np.repeat(np.arange(40), 5)
    labels = np.repeat(np.arange(40) % 4 == 0, 5).astype(int)
    shares = np.bincount(assign_folds(labels, 5, rng, groups), labels) / 10
    assert np.array_equal(shares, np.ones(5))


def test_a_step_without_a_group_is_that_of_its_rows_together():
    """Each class of the others takes over the weight that the group had of it."""
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(6, size=40), rng.integers(2, size=40)
    scores, weights = rng.normal(size=(40, 3)), rng.uniform(0.5, 2, 40)
    lost = _leave_each_out(scores, labels, weights, groups)
    for row in range(40):
        kept = np.zeros(3)
        for g in range(2):
            of_class, rest = labels == g, (labels == g) & (groups != groups[row])
            share = weights[of_class].sum() / weights[rest].sum()
            kept += share * scores[rest].sum(axis=0)
        assert np.allclose(scores.sum(axis=0) - lost[row], kept)
    alone = _leave_each_out(scores, labels, weights, np.arange(40))
    assert np.allclose(alone, _leave_each_out(scores, labels, weights, None))


def test_the_pool_leaves_whole_groups_out():
    X, y, groups = draw_visits(80, 4, sd=3.0)
    new, y_new, _ = draw_visits(300, 1, sd=3.0, seed=1)
    pool = PooledNeighborsClassifier(("discriminant", "evidence", "additive"), random_state=0)

    def score(clf):
        return np.log(clf.predict_proba(new)[np.arange(300), y_new])

    plain = pool.fit(X, y)
    flattering = plain.loo_log_score_ - score(plain).mean()
    grouped = pool.fit(X, y, groups=groups)
    test = score(grouped)
    error = np.hypot(test.std() / np.sqrt(300), test.std() / np.sqrt(80))
    assert abs(grouped.loo_log_score_ - test.mean()) < 4.5 * error
    assert flattering > 3 * error
    again = pickle.loads(pickle.dumps(grouped))
    assert np.array_equal(again.predict_interval(new), grouped.predict_interval(new))
    # Another order of the rows, other names of the groups.
    rows = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"patient {g}" for g in range(80)])[groups]
    other = pool.fit(X[rows], y[rows], groups=names[rows])
    assert np.allclose(other.loo_proba_, again.loo_proba_[rows], atol=1e-8)
    alone = pool.fit(X, y, groups=np.arange(len(y)))
    assert alone.groups_ is None


def test_the_pool_takes_a_class_of_one_group():
    X, y, groups = draw_visits(20, 4)
    y[groups == 7] = 2
    pool = PooledNeighborsClassifier(("evidence", "additive"), random_state=0)
    with pytest.warns(UserWarning, match="class 2 has rows in one group alone"):
        pool.fit(X, y, groups=groups)
    assert pool.classes_.tolist() == [0, 1, 2] and np.all(np.isfinite(pool.loo_proba_))
    scores = np.log(pool.loo_proba_[np.arange(80), y])
    assert np.isclose(pool.loo_log_score_, scores[y < 2].mean())
    few = pool.fit(X[groups < 3], y[groups < 3], groups=groups[groups < 3])
    assert np.all(np.isfinite(few.predict_interval(X)))


def test_with_labels_of_whole_groups_permuted_nothing_is_learned():
    """Without groups the left-out error is next to 0: a relative has the label."""
    pool = PooledNeighborsClassifier(("evidence", "discriminant"), random_state=0)
    errors = []
    for seed in range(12):
        X, _, groups = draw_visits(30, 3, seed=seed)
        y = np.random.default_rng(seed).permutation(np.arange(30) % 2)[groups]
        p = pool.fit(X, y, groups=groups).loo_proba_
        errors.append(np.mean(p.argmax(axis=1) != y))
    plain = np.mean(pool.fit(X, y).loo_proba_.argmax(axis=1) != y)
    assert plain < 0.2
    # Left-out folds of balanced classes lean against the row's class a little.
    assert 0.3 < np.mean(errors) < 0.75


@pytest.mark.filterwarnings("ignore:class 'z' has rows in one group alone")
def test_rows_of_a_class_of_one_group_count_among_equal_rows():
    """They are in no score, and say as much about P at their values as other rows do."""
    n = 60
    groups, X = np.arange(n) // 3, (np.arange(n) % 4 // 2)[:, None]
    y = np.where(groups == 0, "z", np.where(np.arange(n) % 2, "a", "b"))
    clf = PooledNeighborsClassifier(("evidence",), random_state=0).fit(X, y, groups=groups)
    copies = clf._interval_model.copies
    counted = copies.count_new(copies.values)
    assert np.all(counted.sum(axis=1) <= n / 2 + 1e-9)
    assert copies.within == 0
    np.testing.assert_allclose(counted.sum(axis=1), n / 2)


@pytest.mark.parametrize("clf", products(max_neighbors=6, beta_max=3.0), ids=lambda c: c.likelihood)
def test_a_pair_is_predicted_without_the_votes_of_the_other_group(clf):
    """Vote by vote: of every row of the group, in each direction in which it is a neighbour."""
    X, y, groups = draw_visits(15, 3)
    clf.fit(X, y, groups=groups)
    calibrator, neighbors = clf._calibrator, clf.graph_.neighbors
    both, by_rank = clf.likelihood == "pseudo", calibrator.votes_by_rank
    left_out = clf._describe_left_out(None)._replace(copies=None)
    pairs = calibrator.find_pairs(
        left_out,
        y,
        neighbors,
        3.0,
        np.ones(2),
        both,
        groups,
        clf.graph_.incidence if both else None,
    )
    i, j = np.arange(len(y)), neighbors[1]
    votes = np.zeros((len(y), 2))
    for row, group in enumerate(groups[j]):
        for other in np.flatnonzero(groups == group):
            directions = [(row, other), (other, row)][: 1 + both]
            for one, two in directions:
                votes[row, y[other]] += by_rank[neighbors[:, one] == two].sum()
    assert len(pairs.voters) == 6
    fewer = left_out.votes - votes
    odds = np.log(left_out.probabilities) - votes
    changed = left_out._replace(
        probabilities=np.exp(odds - np.logaddexp(*odds.T)[:, None]), votes=np.maximum(fewer, 0)
    )
    np.testing.assert_allclose(
        pairs.predict_without_pair(i, j, 2), calibrator.calibrate(changed), atol=1e-9
    )
