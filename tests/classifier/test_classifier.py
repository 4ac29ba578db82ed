"""The Bayesian classifier: the paper's numbers, and what must not change the answer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.utils import shuffle

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_glass, load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.graph.ties import order_ties
from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import BoltzmannModel, UniformPrior, class_weights
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive
from tests.graph.titanic import expand_titanic
from tests.predictive.problems import probabilities_and_errors

RIPLEY = load_ripley()
# Several times the Monte Carlo error of a log P(k) that is known to .05: see test_same_answer.
WITHIN_ERROR = 6.0


def fit_ripley(**parameters):
    parameters = {"max_neighbors": 125, "beta_max": 4.0, "random_state": 0} | parameters
    return BayesianKNeighborsClassifier(**parameters).fit(RIPLEY.X_train, RIPLEY.y_train)


@pytest.fixture(scope="module")
def coherent():
    return fit_ripley()


@pytest.fixture(scope="module")
def pseudo():
    return fit_ripley(likelihood="pseudo")


def check_summary(clf, beta_mean, k_mean, p14=None):
    assert abs(clf.beta_mean_ - beta_mean) < 0.01
    assert abs(clf.k_values_ @ clf.k_probabilities_ - k_mean) < 0.3
    if p14 is not None:
        assert abs(clf.k_probabilities_[13] - p14) < 0.04


def test_posterior_of_the_coherent_model(coherent):
    check_summary(coherent, 1.457, 15.0, 0.28)
    assert coherent.diagnostics_["inference"] == "grid"
    assert "250 points" in coherent.diagnostics_["reason"]
    assert 0.08 < coherent.beta_sd_ < 0.12
    assert np.isfinite(coherent.log_evidence_)


def test_posterior_of_the_pseudo_likelihood(pseudo):
    check_summary(pseudo, 2.447, 55.1)
    assert pseudo.diagnostics_["log_normalizer_error"] == 0.0


def test_the_answer_is_that_of_the_parts(pseudo):
    graph = NeighborGraph.from_points(RIPLEY.X_train, 125)
    grid = grid_posterior(PseudoLikelihood(graph, RIPLEY.y_train), UniformPrior(125, 4.0))
    parts = Predictive(BoltzmannModel(graph, 2), RIPLEY.y_train, PosteriorNodes.from_grid(grid))
    np.testing.assert_array_equal(
        pseudo.predict_proba(RIPLEY.X_test), parts.probabilities(RIPLEY.X_test)
    )
    np.testing.assert_array_equal(pseudo.loo_proba_, parts.leave_one_out()[0].probabilities)


def test_holmes_and_adams_look_forward_only():
    clf = fit_ripley(likelihood="holmes-adams", beta_max=8.0)
    graph = NeighborGraph.from_points(RIPLEY.X_train, 125)
    grid = grid_posterior(HolmesAdamsLikelihood(graph, RIPLEY.y_train), UniformPrior(125, 8.0))
    forward = graph.query(RIPLEY.X_test[:50]).counts(
        RIPLEY.y_train, 2, grid.k_values, direction="forward"
    )
    odds = np.exp(grid.betas[:, None, :, None] / grid.k_values[:, None, None, None]
                  * (forward - forward.max(axis=2, keepdims=True))[:, :, None, :])  # fmt: skip
    rule = odds / odds.sum(axis=3, keepdims=True)
    expected = np.einsum("kb,kmbg->mg", grid.weights, rule)
    np.testing.assert_allclose(clf.predict_proba(RIPLEY.X_test[:50]), expected, atol=1e-6)


def test_ripley_log_losses_are_those_of_the_specification(coherent, pseudo):
    X, y = RIPLEY.X_test, RIPLEY.y_test
    assert abs(log_loss(y, coherent.predict_proba(X)) - 0.258) < 0.004
    assert abs(log_loss(y, pseudo.predict_proba(X)) - 0.224) < 0.002
    holmes_adams = fit_ripley(likelihood="holmes-adams", beta_max=8.0)
    assert abs(log_loss(y, holmes_adams.predict_proba(X)) - 0.215) < 0.002
    assert 0.091 <= 1 - coherent.score(X, y) <= 0.095
    assert 1 - pseudo.score(X, y) == pytest.approx(0.085, abs=0.0011)


def test_probabilities_intervals_and_zones_fit_together(coherent):
    X = RIPLEY.X_test
    proba, interval = coherent.predict_proba(X), coherent.predict_interval(X, of="parameters")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert interval.shape == (1000, 2, 2)
    assert np.all(interval[..., 0] <= proba) and np.all(proba <= interval[..., 1])
    assert np.all(interval >= 0) and np.all(interval <= 1)
    zones = coherent.predict_zone(X, of="parameters")
    # The paper's rule: sure where the interval of P(y = 1) does not contain one half.
    sure_of_one, sure_of_zero = interval[:, 1, 0] > 0.5, interval[:, 1, 1] < 0.5
    np.testing.assert_array_equal(zones == 1, sure_of_one)
    np.testing.assert_array_equal(zones == 0, sure_of_zero)
    assert 0 < np.mean(zones == "undecided") < 0.5
    np.testing.assert_array_equal(zones[sure_of_one], coherent.predict(X)[sure_of_one])
    assert set(coherent.predict_zone(X, uncertain=-1, of="parameters")) == {0, 1, -1}


@pytest.mark.parametrize("of", ["probability", "parameters"])
def test_a_wider_level_is_less_sure(coherent, of):
    X = RIPLEY.X_test
    narrow, wide = (coherent.predict_interval(X, level, of) for level in (0.5, 0.99))
    assert np.all(wide[..., 0] <= narrow[..., 0]) and np.all(narrow[..., 1] <= wide[..., 1])
    n_uncertain = [
        np.sum(coherent.predict_zone(X, level, of=of) == "undecided") for level in (0.5, 0.99)
    ]
    assert n_uncertain[0] < n_uncertain[1]


def test_zones_of_four_classes():
    glass = load_glass()
    clf = BayesianKNeighborsClassifier(likelihood="pseudo", beta_max=5.0).fit(
        glass.X_train, glass.y_train
    )
    interval = clf.predict_interval(glass.X_test, of="parameters")
    zones = clf.predict_zone(glass.X_test, of="parameters")
    for ends, zone in zip(interval, zones, strict=True):
        above = [
            g for g in range(4) if all(ends[g, 0] > ends[h, 1] for h in range(4) if h != g)
        ]  # fmt: skip
        assert zone == (clf.classes_[above[0]] if above else "undecided")


def test_same_bits_every_time(coherent):
    X = RIPLEY.X_test[:50]
    again = fit_ripley(n_jobs=2)
    np.testing.assert_array_equal(coherent.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(coherent.predict_proba(X), coherent.predict_proba(X))
    assert coherent.posterior_.identical(again.posterior_)


def test_expected_loss(coherent):
    X = RIPLEY.X_test
    classes, loss = coherent.predict_decision(X)
    np.testing.assert_array_equal(classes, coherent.predict(X))
    np.testing.assert_allclose(loss, 1 - coherent.predict_proba(X).max(axis=1))
    # Missing a 1 is nine times as bad, so 1 is said from one chance in ten on.
    classes, loss = coherent.predict_decision(X, [[0, 9], [1, 0]])
    p = coherent.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(classes == 1, p > 0.1)
    np.testing.assert_allclose(loss, np.minimum(9 * p, 1 - p))


LOSS = [[0, 1], [1, 0], [0.1, 0.1]]


def test_further_actions_have_names(pseudo):
    p = pseudo.predict_proba(RIPLEY.X_test)
    expected = np.where(p.min(axis=1) > 0.1, "ask", p.argmax(axis=1).astype(object))
    for loss, actions in (
        (LOSS, ["ask"]),
        (LOSS, [0, 1, "ask"]),
        ({0: LOSS[0], 1: {0: 1, 1: 0}, "ask": LOSS[2]}, None),
    ):
        decisions, risk = pseudo.predict_decision(RIPLEY.X_test, loss, actions)
        assert decisions.tolist() == expected.tolist()
        np.testing.assert_allclose(risk, np.minimum(p.min(axis=1), 0.1))
    # All rows may be something else than a class.
    decisions, _ = pseudo.predict_decision(RIPLEY.X_test, [[0, 3], [1, 1]], ["wait", "treat"])
    assert decisions.tolist() == np.where(3 * p[:, 1] > 1, "treat", "wait").tolist()


@pytest.mark.parametrize(
    ("loss", "actions", "message"),
    [
        ([[0, 1]], None, "loss must have 2 rows, one for each class, got 1; name further"),
        (LOSS, None, "loss must have 2 rows, one for each class, got 3; name further"),
        (LOSS, ["ask", "wait"], "must name the 3 rows of loss, .* 2 classes, got 2 names"),
        (LOSS, [1], "two rows of loss are called 1"),
        ([[0, 1, 2], [1, 2, 3]], None, "2 columns, one for each class"),
        ({0: [0, 1], 1: {0: 1}}, None, "no entry for class 1"),
        (None, ["ask"], "pass loss as well"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused(pseudo, loss, actions, message):
    with pytest.raises(ValueError, match=message):
        pseudo.predict_decision(RIPLEY.X_test, loss, actions)


def test_a_class_may_not_be_called_what_is_said_of_no_class():
    y = np.array(["decided", "undecided"])[RIPLEY.y_train]
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=9, beta_max=4.0)
    clf.fit(RIPLEY.X_train, y)
    with pytest.raises(ValueError, match="'undecided' is the name of a class; pass another word"):
        clf.predict_zone(RIPLEY.X_test)
    assert set(clf.predict_zone(RIPLEY.X_test, uncertain="?")) == {"decided", "undecided", "?"}


def test_leave_one_out_scores(pseudo, coherent):
    own = pseudo.loo_proba_[np.arange(250), RIPLEY.y_train]
    assert pseudo.loo_log_score_ == pytest.approx(np.log(own).mean())
    # The largest pseudo-likelihood, per point, has seen every label that it scores.
    assert -71.7523 / 250 - 0.02 < pseudo.loo_log_score_ < -71.7523 / 250
    # SURENESS; a posterior that has seen the labels says -.3132.
    assert abs(coherent.loo_log_score_ + 0.3187) < 0.001


def average_over_draws(clf, tree, rows, labels):
    """Return predictive and leave-one-out probabilities of training points, draw by draw."""
    weights = np.ones(2) if clf.class_weight_ is None else clf.class_weight_
    drawn = zip(tree["beta"].values.ravel(), tree["k"].values.ravel(), strict=True)
    plain, left_out = np.zeros((len(rows), 2)), np.zeros((len(rows), 2))
    for beta, k in drawn:
        fields = beta / k * weights * clf.graph_.counts(labels, 2, int(k))[rows]
        p = np.exp(fields - fields.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        plain += p
        left_out += p / p[np.arange(len(rows)), labels[rows], None]
    return plain / plain.sum(axis=1, keepdims=True), left_out / left_out.sum(axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.parametrize("class_prior", [None, [0.8, 0.2]], ids=["equal", "weighted"])
def test_chains_predict_what_their_draws_say(class_prior):
    """The mutants that use k - 1, that leave class weights out, or keep the label are rejected."""
    X, y = RIPLEY.X_train[::3], RIPLEY.y_train[::3]
    clf = BayesianKNeighborsClassifier(
        "pseudo", "metropolis", max_neighbors=10, beta_max=4.0, class_prior=class_prior,
        class_prior_as="weights", n_chains=2, n_draws=300, n_warmup=200, random_state=0,
    ).fit(X, y)  # fmt: skip
    rows = np.arange(len(y))
    draws = clf.posterior_["posterior"]
    plain, left_out = average_over_draws(clf, draws, rows, y)
    assert np.abs(clf.loo_proba_ - left_out).max() < 1e-6
    assert np.abs(clf.loo_proba_ - plain).max() > 1e-3
    fewer = draws.to_dataset().assign(k=np.maximum(draws["k"] - 1, 1))
    assert np.abs(average_over_draws(clf, fewer, rows, y)[1] - clf.loo_proba_).max() > 1e-3
    new = RIPLEY.X_test[:40]
    query = clf.graph_.query(new)
    expected = np.zeros((40, 2))
    weights = np.ones(2) if clf.class_weight_ is None else clf.class_weight_
    for beta, k in zip(draws["beta"].values.ravel(), draws["k"].values.ravel(), strict=True):
        fields = beta / k * weights * query.counts(y, 2, [int(k)])[0]
        p = np.exp(fields - fields.max(axis=1, keepdims=True))
        expected += p / p.sum(axis=1, keepdims=True)
    assert np.abs(clf.predict_proba(new) - expected / draws["k"].size).max() < 1e-6


def test_a_label_that_moves_the_posterior_by_itself_is_named():
    X = np.arange(60.0)[:, None]
    y = np.repeat([0, 1], 30)
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=2, beta_max=40.0).fit(X, y)
    assert not any("leave-one-out" in sentence for sentence in clf.diagnostics_["warnings"])
    y[7] = 1
    clf.fit(X, y)
    (sentence,) = (s for s in clf.diagnostics_["warnings"] if "leave-one-out" in s)
    assert "(7" in sentence


def test_leave_one_out_intervals_contain_the_probabilities(pseudo):
    low, high = np.moveaxis(pseudo.loo_interval(0.9, of="parameters"), 2, 0)
    assert low.shape == (250, 2)
    assert np.all(low <= pseudo.loo_proba_) and np.all(pseudo.loo_proba_ <= high)
    wide = pseudo.loo_interval(0.99, of="parameters")
    assert np.all(wide[..., 0] <= low) and np.all(high <= wide[..., 1])


def test_shuffling_rows_changes_nothing_without_ties(pseudo):
    order = np.random.default_rng(0).permutation(250)
    shuffled = BayesianKNeighborsClassifier(
        likelihood="pseudo", max_neighbors=125, beta_max=4.0
    ).fit(RIPLEY.X_train[order], RIPLEY.y_train[order])
    np.testing.assert_allclose(
        shuffled.predict_proba(RIPLEY.X_test), pseudo.predict_proba(RIPLEY.X_test), atol=1e-9
    )
    np.testing.assert_allclose(shuffled.loo_proba_, pseudo.loo_proba_[order], atol=1e-9)


def test_shuffling_rows_changes_only_what_ties_decide():
    """With tied distances the order of rows decides, and nothing else does.

    A lattice is full of ties. Moving every point by less than half the least difference between
    distances, rows of small keys least, settles each tie as the keys would; the fit on the moved
    points no longer depends on the order of rows, and predicts what the fit on the lattice does.
    """
    rng = np.random.default_rng(0)
    line = np.cumsum(rng.integers(1, 4, size=40)).astype(float)[:, None]
    y = (rng.random(40) < 0.5 + 0.4 * np.sign(line[:, 0] - line[20, 0])).astype(int)
    settings = {"likelihood": "pseudo", "max_neighbors": 8, "beta_max": 4.0}
    distances = np.abs(line - line.T)
    assert len(np.unique(distances)) < 0.2 * distances.size
    order = rng.permutation(40)
    for rows in (np.arange(40), order):
        lattice = BayesianKNeighborsClassifier(**settings).fit(line[rows], y[rows])
        # d(i, l) grows with the place of l and of i in the order of ties.
        place = order_ties(40).ranks[np.argsort(rows)] * 1e-6
        untied = distances + place + place[:, None]
        np.fill_diagonal(untied, 0.0)
        for again in (np.arange(40), rng.permutation(40)):
            moved = BayesianKNeighborsClassifier(metric="precomputed", **settings)
            moved.fit(untied[np.ix_(again, again)], y[again])
            undo = np.argsort(again)
            np.testing.assert_allclose(
                moved.loo_proba_[undo], lattice.loo_proba_[np.argsort(rows)], atol=1e-9
            )


def check_same_within_errors(ours, theirs, columns, X):
    """Compare two fits of the coherent model in units of their Monte Carlo errors."""
    expected, errors = probabilities_and_errors(theirs, X)
    difference = np.abs(ours.predict_proba(X)[:, columns] - expected)
    # Both have these errors, which a few dozen replicates tell to a tenth or so.
    assert np.all(difference < WITHIN_ERROR * np.sqrt(2) * errors + 1e-6)


def test_shuffling_rows_changes_the_coherent_model_by_its_error(coherent):
    order = np.random.default_rng(1).permutation(250)
    shuffled = BayesianKNeighborsClassifier(
        max_neighbors=125, beta_max=4.0, random_state=3
    ).fit(RIPLEY.X_train[order], RIPLEY.y_train[order])  # fmt: skip
    check_same_within_errors(shuffled, coherent, [0, 1], RIPLEY.X_test)


def test_relabelling_classes_permutes_the_columns(coherent, pseudo):
    names = np.array(["yes", "no"])[RIPLEY.y_train]
    renamed = clone(coherent).fit(RIPLEY.X_train, names)
    assert renamed.classes_.tolist() == ["no", "yes"]
    check_same_within_errors(renamed, coherent, [1, 0], RIPLEY.X_test)
    exact = clone(pseudo).fit(RIPLEY.X_train, names)
    np.testing.assert_array_equal(
        exact.predict_proba(RIPLEY.X_test)[:, ::-1], pseudo.predict_proba(RIPLEY.X_test)
    )


@pytest.mark.parametrize("likelihood", ["coherent", "pseudo"])
def test_relabelling_four_classes_permutes_the_columns(likelihood):
    glass = load_glass()
    settings = {"likelihood": likelihood, "beta_max": 4.0, "random_state": 0}
    plain = BayesianKNeighborsClassifier(**settings).fit(glass.X_train, glass.y_train)
    new_names = dict(zip(plain.classes_, ["d", "b", "a", "c"], strict=True))
    renamed = BayesianKNeighborsClassifier(**settings)
    renamed.fit(glass.X_train, [new_names[label] for label in glass.y_train])
    columns = [list(renamed.classes_).index(new_names[name]) for name in plain.classes_]
    if likelihood == "pseudo":
        proba = renamed.predict_proba(glass.X_test)[:, columns]
        np.testing.assert_allclose(proba, plain.predict_proba(glass.X_test), atol=1e-12)
    else:
        check_same_within_errors(renamed, plain, columns, glass.X_test)


def test_duplicates_are_neighbours_at_distance_zero():
    """Whichever of two equal rows comes first, the prediction is the same."""
    X = np.repeat(RIPLEY.X_train[::4], 3, axis=0)
    y = np.repeat(RIPLEY.y_train[::4], 3)
    clf = BayesianKNeighborsClassifier(likelihood="pseudo", max_neighbors=20, beta_max=4.0)
    clf.fit(X, y)
    # Every point's two nearest are its copies.
    assert np.all(clf.graph_.distances[:2] == 0) and np.all(clf.graph_.distances[2] > 0)
    expected = clf.predict_proba(RIPLEY.X_test)
    order = np.random.default_rng(0).permutation(len(y))
    clf.fit(X[order], y[order])
    np.testing.assert_allclose(clf.predict_proba(RIPLEY.X_test), expected, atol=1e-9)


def test_ties_are_counted_and_told():
    X, y = expand_titanic()
    settings = {"likelihood": "pseudo", "max_neighbors": 20, "beta_max": 4.0, "n_draws": 50}
    clf = BayesianKNeighborsClassifier(**settings).fit(X, y)
    k = int(np.argmax(clf.k_probabilities_)) + 1
    n_tied = clf.graph_.count_boundary_ties(k)
    assert clf.diagnostics_["boundary_ties"] == n_tied > 2000
    (told,) = (w for w in clf.diagnostics_["warnings"] if "tied" in w)
    assert told.startswith(f"{n_tied:,} of 2,201 rows have tied neighbours (equal distances)")
    assert "metric that ties less" in told and "VotingClassifier" in told
    free = BayesianKNeighborsClassifier(**settings).fit(RIPLEY.X_train, RIPLEY.y_train)
    assert free.diagnostics_["boundary_ties"] == 0
    assert not any("tied" in words for words in free.diagnostics_["warnings"])


def test_shuffled_rows_are_averaged_by_a_voting_classifier():
    """What the warning about ties advises, as the documentation writes it."""
    X, y = expand_titanic()
    X, y = X[::5], y[::5]
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=20, beta_max=4.0, n_draws=50)
    fits = [clone(clf).fit(*shuffle(X, y, random_state=seed)) for seed in range(4)]
    votes = [(f"order {seed}", FrozenEstimator(fit)) for seed, fit in enumerate(fits)]
    average = VotingClassifier(votes, voting="soft").fit(X, y)
    kinds = np.unique(X, axis=0)
    each = [fit.predict_proba(kinds) for fit in fits]
    assert np.abs(each[0] - each[1]).max() > 1e-3
    np.testing.assert_allclose(average.predict_proba(kinds), np.mean(each, axis=0))


def test_contradicting_duplicates_are_uncertain():
    X, y = np.tile([[0.0], [9.0]], (10, 1)), np.empty(20, dtype=int)
    # Of ten copies those with the smallest keys are the nearest: 0 1 0 1 from either place.
    for place in (0, 1):
        y[place + 2 * np.argsort(order_ties(20).ranks[place::2])] = [0, 1] * 5
    clf = BayesianKNeighborsClassifier(random_state=0, max_neighbors=4, beta_max=4.0).fit(X, y)
    for of in ("probability", "parameters"):
        assert clf.predict_zone([[0.0], [9.0]], of=of).tolist() == ["undecided", "undecided"]


def test_class_prior_moves_the_odds_towards_the_frequent_class():
    X, y = RIPLEY.X_train, RIPLEY.y_train
    settings = {"likelihood": "pseudo", "max_neighbors": 60, "beta_max": 4.0}
    plain = BayesianKNeighborsClassifier(**settings).fit(X, y)
    same = BayesianKNeighborsClassifier(class_prior=[0.5, 0.5], **settings).fit(X, y)
    rare = BayesianKNeighborsClassifier(class_prior={0: 0.9, 1: 0.1}, **settings).fit(X, y)
    assert plain.class_weight_ is None
    np.testing.assert_allclose(
        same.predict_proba(RIPLEY.X_test), plain.predict_proba(RIPLEY.X_test)
    )
    np.testing.assert_allclose(rare.class_weight_, class_weights(y, [0.9, 0.1], [0, 1]))
    means = [clf.predict_proba(RIPLEY.X_test)[:, 1].mean() for clf in (plain, rare)]
    assert means[1] < means[0] - 0.1


def test_class_prior_of_the_coherent_model_is_exact_on_a_small_graph():
    from bayesknn.likelihood import ExactLikelihood

    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], [16, 8])
    X = rng.normal(size=(24, 2)) + 1.5 * y[:, None]
    prior = UniformPrior(3, 4.0)
    clf = BayesianKNeighborsClassifier(
        prior=prior, class_prior=[0.5, 0.5], class_prior_as="weights", random_state=0
    ).fit(X, y)
    weights = class_weights(y, [0.5, 0.5], [0, 1])
    exact = grid_posterior(ExactLikelihood(clf.graph_, y, 2, weights), prior)
    errors = clf.k_probabilities_error_
    assert np.all(np.abs(clf.k_probabilities_ - exact.k_probabilities) < 6 * errors + 1e-3)
    assert abs(clf.log_evidence_ - exact.log_evidence) < 6 * clf.log_evidence_error_ + 1e-3


def test_beta_max_is_found_and_doubled_for_holmes_and_adams():
    auto = BayesianKNeighborsClassifier(likelihood="pseudo", random_state=0)
    auto.fit(RIPLEY.X_train, RIPLEY.y_train)
    assert 4.0 < auto.beta_max_ < 5.5
    twice = BayesianKNeighborsClassifier(likelihood="holmes-adams", random_state=0)
    twice.fit(RIPLEY.X_train, RIPLEY.y_train)
    assert twice.beta_max_ == pytest.approx(2 * auto.beta_max_)


def test_priors_of_every_kind():
    X, y = RIPLEY.X_train[::4], RIPLEY.y_train[::4]
    settings = {"likelihood": "pseudo", "beta_max": 4.0}
    uniform = BayesianKNeighborsClassifier(max_neighbors=10, **settings).fit(X, y)
    given = BayesianKNeighborsClassifier(prior=UniformPrior(10, 4.0), likelihood="pseudo").fit(X, y)
    np.testing.assert_array_equal(uniform.k_probabilities_, given.k_probabilities_)
    array = BayesianKNeighborsClassifier(max_neighbors=3, prior=[0.0, 1.0, 0.0], **settings)
    np.testing.assert_allclose(array.fit(X, y).k_probabilities_, [0.0, 1.0, 0.0])
    function = BayesianKNeighborsClassifier(
        max_neighbors=3, prior=lambda beta, k: np.where(k == 3, 1.0, 0.0), **settings
    )
    np.testing.assert_allclose(function.fit(X, y).k_probabilities_, [0.0, 0.0, 1.0])


def test_a_posterior_against_the_edge_says_so():
    X = np.concatenate([np.arange(20.0), 100 + np.arange(20.0)])[:, None]
    clf = BayesianKNeighborsClassifier(likelihood="pseudo", beta_max=2.0)
    clf.fit(X, np.repeat([0, 1], 20))
    assert "beta_max" in clf.diagnostics_["warnings"][0]


def test_labels_that_ignore_their_neighbours_say_so():
    y = np.random.default_rng(0).permutation(RIPLEY.y_train)
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=2, beta_max=40.0)
    clf.fit(RIPLEY.X_train, y)
    assert "beta is all but 0" in clf.diagnostics_["warnings"][0]


def test_a_posterior_at_the_largest_k_says_so():
    clf = fit_ripley(likelihood="pseudo", max_neighbors=8)
    assert any("max_neighbors" in sentence for sentence in clf.diagnostics_["warnings"])
    for few in (1, 2, 5, 9):
        clf = fit_ripley(likelihood="pseudo", max_neighbors=few)
        assert any("max_neighbors" in sentence for sentence in clf.diagnostics_["warnings"]), few
    assert fit_ripley(likelihood="pseudo").diagnostics_["warnings"] == []


@pytest.mark.parametrize("likelihood", ["coherent", "pseudo", "holmes-adams"])
def test_a_beta_of_frequencies_alone_says_so(likelihood):
    """Without an intercept beta explains that classes are unequal, whatever the columns say."""
    X, y = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) < 18
    clf = BayesianKNeighborsClassifier(likelihood, random_state=0).fit(X, y)
    assert clf.beta_mean_ > 1.0
    assert any("frequencies" in sentence for sentence in clf.diagnostics_["warnings"])
    X[:, 0] += 4 * y
    clf.fit(X, y)
    assert not any("frequencies" in sentence for sentence in clf.diagnostics_["warnings"])


@pytest.mark.parametrize(("n_rare", "size"), [(1, 2), (1, 3), (1, 5), (10, 2)])
def test_rare_classes_do_not_set_the_k_of_all_others(pseudo, n_rare, size):
    """Points far away from Ripley's, of other classes: his stay as well predicted as they can."""
    rng = np.random.default_rng(0)
    rare = np.repeat(np.arange(2, 2 + n_rare), size)
    far = np.column_stack([20.0 + 5 * rare, rng.normal(size=len(rare))])
    X, y = np.vstack([RIPLEY.X_train, far]), np.append(RIPLEY.y_train, rare)

    def score(**parameters):
        clf = BayesianKNeighborsClassifier("pseudo", random_state=0, **parameters).fit(X, y)
        p = clf.predict_proba(RIPLEY.X_test)
        return -np.log(p[np.arange(len(p)), RIPLEY.y_test]).mean()

    assert score() < score(max_neighbors=125) + 0.03
    if n_rare == 1:
        without = log_loss(RIPLEY.y_test, pseudo.predict_proba(RIPLEY.X_test))
        assert score() < without + 0.03


BAD_SETTINGS = [
    ({"likelihood": "potts"}, "likelihood must be one of coherent, pseudo, holmes-adams"),
    ({"inference": "laplace"}, "inference must be one of auto, grid"),
    ({"label_sampler": "wolff"}, "label_sampler must be one of swendsen-wang, perfect, gibbs"),
    ({"likelihood": ["coherent"]}, r"likelihood must be one of .*, got \['coherent'\]"),
    ({"likelihood": {"pseudo": 1}}, "likelihood must be one of .*, got {'pseudo': 1}"),
    ({"likelihood": None}, "likelihood must be one of .*, got None"),
    ({"likelihood": np.array(["pseudo"])}, r"likelihood must be .*, got an array of shape \(1,\)"),
    ({"inference": ["grid", "metropolis"]}, "inference must be one of .*, got .'grid', 'metropol"),
    ({"inference": np.array(["grid", "auto"])}, "inference must be one of .*, got an array"),
    ({"inference": 1}, "inference must be one of .*, got 1"),
    ({"label_sampler": {"gibbs"}}, "label_sampler must be one of .*, got {'gibbs'}"),
    ({"label_sampler": np.array(["gibbs", "perfect"])}, "label_sampler must be one of .*, got an"),
    ({"beta_max": 0.0}, "beta_max must be a positive number, got 0.0"),
    ({"beta_max": -1}, "beta_max must be a positive number, got -1"),
    ({"beta_max": "large"}, "beta_max must be a positive number or 'auto', got 'large'"),
    ({"max_neighbors": 0}, "max_neighbors must be an integer in 1..59, got 0"),
    ({"max_neighbors": 60}, "max_neighbors must be an integer in 1..59, got 60"),
    ({"n_draws": 0}, "n_draws must be an integer >= 1, got 0"),
    ({"n_chains": 1.5}, "n_chains must be an integer >= 1, got 1.5"),
    ({"n_jobs": 0}, "n_jobs must be None, a positive integer or a negative one .*, got 0"),
    ({"n_jobs": 1.5}, "n_jobs must be None, .*, got 1.5"),
    ({"n_jobs": True}, "n_jobs must be None, .*, got True"),
    ({"verbose": "a"}, "verbose must be an integer >= 0, got 'a'"),
    ({"verbose": -1}, "verbose must be an integer >= 0, got -1"),
    ({"prior": UniformPrior(5, 3.0)}, "beta_max=4.0 contradicts the prior, .* beta=3; leave"),
    ({"prior": UniformPrior(9, 4.0), "max_neighbors": 5}, "prior reaches k=9, but k is at most 5"),
    ({"n_warmup": -1}, "n_warmup must be an integer >= 0, got -1"),
    ({"prior": [-1.0, 2.0], "max_neighbors": 2}, "prior must be finite and not negative, got -1"),
    ({"prior": [0.0, 0.0], "max_neighbors": 2}, "prior is zero everywhere"),
    ({"prior": [1.0, 1.0], "max_neighbors": 3}, "prior must have 3 rows"),
    ({"class_prior_as": "prior"}, "class_prior_as must be one of offset, weights, got 'prior'"),
    ({"calibrate": "yes"}, "calibrate must be True or False, got 'yes'"),
    ({"class_prior": [0.9, 0.2]}, "class_prior must sum to 1"),
    ({"class_prior": {0: 1.0}}, "class_prior has no entry for class 1"),
    ({"metric": "nearness"}, "metric"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_SETTINGS)
def test_bad_settings_are_named(parameters, message):
    X, y = RIPLEY.X_train[:60], np.arange(60) % 2
    clf = BayesianKNeighborsClassifier(**{"beta_max": 4.0, "likelihood": "pseudo"} | parameters)
    with pytest.raises(ValueError, match=message) as caught:
        clf.fit(X, y)
    assert "\n" not in str(caught.value)


def test_bad_points_at_prediction_are_named(pseudo):
    from sklearn.exceptions import NotFittedError

    unfitted = BayesianKNeighborsClassifier()
    for use in (unfitted.predict, unfitted.predict_proba, unfitted.predict_zone):
        with pytest.raises(NotFittedError):
            use(RIPLEY.X_test)
    with pytest.raises(NotFittedError):
        _ = unfitted.posterior_
    with pytest.raises(ValueError, match="X has 3 features.*expecting 2"):
        pseudo.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="NaN in row 1, column 0"):
        pseudo.predict([[0.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="0 sample"):
        pseudo.predict(np.empty((0, 2)))
    with pytest.raises(ValueError, match="level"):
        pseudo.predict_interval(RIPLEY.X_test, level=1.5)
    with pytest.raises(ValueError, match="of must be one of probability, parameters, got 'both'"):
        pseudo.predict_interval(RIPLEY.X_test, of="both")
    with pytest.raises(ValueError, match="n_neighbors must be an integer >= 1, got 0"):
        pseudo.predict_influence(RIPLEY.X_test, 0)
    with pytest.raises(ValueError, match="unfamiliar must lie between 0 and 1, got 2"):
        pseudo.predict_zone(RIPLEY.X_test, unfamiliar=2)


def test_unseen_categories_are_named():
    X = pd.DataFrame({"size": np.arange(20.0), "colour": ["red", "blue"] * 10})
    clf = BayesianKNeighborsClassifier(likelihood="pseudo", metric="gower", beta_max=4.0)
    clf.fit(X, np.repeat(["a", "b"], 10))
    new = pd.DataFrame({"size": [3.0], "colour": ["green"]})
    with pytest.warns(UserWarning, match="colour.*green.*they differ from all others"):
        clf.predict(new)


def test_a_refused_refit_leaves_the_fitted_classifier_whole(pseudo):
    before = pseudo.predict_proba(RIPLEY.X_test)
    with pytest.raises(ValueError, match="NaN"):
        pseudo.fit(np.where(RIPLEY.X_train > 0.9, np.nan, RIPLEY.X_train), RIPLEY.y_train)
    np.testing.assert_array_equal(pseudo.predict_proba(RIPLEY.X_test), before)
