"""Joint draws of a batch and its counts: exact joint laws, chains that do not agree, coverage."""

import warnings

import numpy as np
import pytest
from scipy import stats

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.model import BoltzmannModel
from bayesknn.predictive import PosteriorNodes, Predictive, draw_jointly
from bayesknn.predictive.joint import joint_edges, largest_rhat
from tests.labels import clamped_twin
from tests.model.enumeration import state_index
from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects
from tests.sureness.laws import LAWS

RIPLEY = load_ripley()
WEIGHTS = np.array([0.5, 1.0, 1.4])


def small_sample(kind, n=60, n_classes=3, seed=0):
    """Points, labels and new points; ``kind`` is the metric, or "ties" for points on a lattice."""
    rng = np.random.default_rng([seed, n])
    points = rng.normal(size=(n + 5, 2)) * [1.0, 10.0]
    if kind == "ties":
        points = rng.integers(0, 4, size=(n + 5, 2)).astype(float)
    return points[:n], rng.integers(0, n_classes, n), points[n:]


def make_predictive(X, y, n_classes, nodes, metric="euclidean", class_weight=None, **options):
    graph = NeighborGraph.from_points(X, max(nodes[0]), metric=metric)
    model = BoltzmannModel(graph, n_classes, class_weight)
    return Predictive(model, y, PosteriorNodes(*nodes), **options)


@pytest.mark.parametrize("direction", ["both", "forward"])
@pytest.mark.parametrize("class_weight", [None, WEIGHTS])
@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "manhattan", "gower", "ties"])
def test_the_conditional_of_one_new_point_is_its_probability(metric, class_weight, direction):
    """Exactly: the classes around it in the joint graph, averaged over the nodes."""
    X, y, new = small_sample(metric)
    k, beta, weight = [2, 2, 9, 28], [0.5, 2.0, 1.0, 3.0], [0.2, 0.3, 0.4, 0.1]
    predictive = make_predictive(
        X, y, 3, (k, beta, weight),
        metric="euclidean" if metric == "ties" else metric,
        class_weight=class_weight, direction=direction,
    )  # fmt: skip
    strengths = np.ones(3) if class_weight is None else class_weight
    found = np.zeros((len(new), 3))
    for q in range(len(new)):
        edges = joint_edges(predictive, new[q : q + 1])
        for node_k, node_beta, node_weight in zip(k, beta, weight, strict=True):
            at = round(node_k * 61 / 60)
            heard = [*edges.neighbors[:at, 0], *edges.sources[: edges.starts[at]]]
            counts = np.bincount(np.array(heard, int), minlength=3)
            odds = np.exp(node_beta / at * strengths * counts)
            found[q] += node_weight * odds / odds.sum()
    np.testing.assert_allclose(found, predictive.probabilities(new), atol=1e-7)


def test_draws_for_one_point_have_its_probabilities():
    X, y, new = small_sample("euclidean")
    predictive = make_predictive(X, y, 3, ([2, 9], [2.0, 3.0], [0.6, 0.4]), class_weight=WEIGHTS)

    def p_value(n_draws, seed, shift=0.0):
        draws = draw_jointly(predictive, new[:1], n_draws, seed)
        law = predictive.probabilities(new[:1])[0] + shift * np.array([1.0, -1.0, 0.0])
        return p_value_of_counts(np.bincount(draws[:, 0], minlength=3), law)

    check(p_value, 4_000)
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, shift=0.1), 4_000)


def test_law_of_a_small_batch_is_the_exact_one():
    """Four labelled and four new points: k = 1 becomes 2, and every joint labelling is counted."""
    rows = [0, 1, 125, 126, 2, 3, 127, 128]
    X, y = RIPLEY.X_train[rows], RIPLEY.y_train[rows]
    betas, weight = [0.5, 1.5, 2.5], [0.3, 0.5, 0.2]
    predictive = make_predictive(X[:4], y[:4], 2, ([1, 1, 1], betas, weight))
    known = np.append(y[:4], [-1] * 4)
    graph = predictive.graph.join(X[4:], 3)

    def exact(k):
        return sum(
            w * clamped_twin.exact_free_law(graph, known, b, k, 2)[1]
            for b, w in zip(betas, weight, strict=True)
        )

    def p_value(n_draws, seed, k=2):
        draws = draw_jointly(predictive, X[4:], n_draws, seed)
        return p_value_of_counts(np.bincount(state_index(draws, 2), minlength=16), exact(k))

    check(p_value, 6_000)
    # k that does not grow with the number of points is seen.
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, k=1), 6_000)


def test_counts_of_half_of_ripley_are_the_exact_ones():
    """Every other row is labelled; mean and variance of the other half's count by elimination."""
    train, new = np.arange(0, 250, 2), np.arange(1, 250, 2)
    predictive = make_predictive(
        RIPLEY.X_train[train], RIPLEY.y_train[train], 2, ([1], [1.4], [1.0])
    )
    graph = predictive.graph.join(RIPLEY.X_train[new], 2)
    known = np.append(RIPLEY.y_train[train], np.full(125, -1))
    h = 0.01
    low, mid, high = (clamped_twin.log_sum(graph, known, 1.4, 2, 2, t) for t in (-h, 0.0, h))
    mean, variance = (high - low) / (2 * h), (high + low - 2 * mid) / h**2

    def p_value(n_draws, seed, off=1.0):
        counts = draw_jointly(predictive, RIPLEY.X_train[new], n_draws, seed).sum(axis=1)
        squares = (counts - mean) ** 2
        z = [
            (s.mean() - e) / (s.std() / np.sqrt(n_draws))
            for s, e in ((counts, mean), (squares, off * variance))
        ]
        return p_value_of_z(z)

    check(p_value, 4_000)
    # Independent labels would have a smaller variance, by a half.
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, off=0.5), 4_000)


def test_draws_depend_on_the_seed_alone():
    X, y, new = small_sample("euclidean")
    nodes = ([2, 9], [1.0, 1.5], [0.5, 0.5])
    predictive = make_predictive(X, y, 3, nodes)
    first = draw_jointly(predictive, new, 40, random_state=3)
    again = draw_jointly(make_predictive(X, y, 3, nodes, n_jobs=2), new, 40, random_state=3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, draw_jointly(predictive, new, 40, random_state=4))


def test_draws_stand_in_random_order():
    """Any part of the draws is a sample of the whole law: no order of (beta, k) is left in them."""
    X, y, new = small_sample("euclidean")
    predictive = make_predictive(X, y, 3, ([1, 28], [8.0, 0.0], [0.5, 0.5]))
    counts = np.sum(draw_jointly(predictive, new, 2_000, random_state=0) == 0, axis=1)
    assert autocorrelation_time(counts) < 1.5


@pytest.mark.parametrize("n_draws", [1, 10, 1000])
def test_a_frozen_batch_is_said_to_be_one(n_draws):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(12, 2)), rng.normal(size=(200, 2))
    y = np.arange(12) % 3
    predictive = make_predictive(X, y, 3, ([3], [8.0], [1.0]))
    with pytest.warns(MixingWarning, match=r"frozen: .* to \d+ of its 200 points"):
        draw_jointly(predictive, new, n_draws, random_state=0)


def test_few_labelled_points_are_warned_of():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(20, 2)), rng.normal(size=(81, 2))
    predictive = make_predictive(X, np.arange(20) % 2, 2, ([2], [0.5], [1.0]))
    with pytest.warns(MixingWarning, match="only 20 of 101 points are labelled"):
        draw_jointly(predictive, new, 10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_jointly(predictive, new[:80], 10, random_state=0)


def test_rhat_tells_chains_that_stay_apart():
    rng = np.random.default_rng(0)
    same = rng.poisson(50.0, size=(3, 400, 2))
    assert largest_rhat(same) < 1.02
    assert largest_rhat(same + np.array([0, 0, 4])[:, None, None]) > 1.04
    assert largest_rhat(np.tile([[[1, 2]], [[2, 1]]], (1, 30, 1))) == np.inf
    assert largest_rhat(np.ones((3, 30, 2))) == 1.0


def test_a_batch_too_large_is_refused(monkeypatch):
    X, y, new = small_sample("euclidean")
    predictive = make_predictive(X, y, 3, ([2], [1.0], [1.0]))
    monkeypatch.setattr("bayesknn.predictive.joint._MOST_EDGES", 100)
    with pytest.raises(ValueError, match="5 new points beside 60 training .* pass them in parts"):
        draw_jointly(predictive, new, 10)


# Through the classifier.


def fitted(likelihood="pseudo", inference="auto", **options):
    rng = np.random.default_rng(5)
    y = np.repeat(["bee", "ant", "wasp"], 15)
    X = rng.normal(size=(45, 2)) + 1.5 * np.repeat(np.eye(3)[:, :2], 15, axis=0)
    options = {"max_neighbors": 4, "beta_max": 3.0, "random_state": 0, **options}
    clf = BayesianKNeighborsClassifier(likelihood, inference, **options)
    with warnings.catch_warnings():
        # Chains as short as a test's may say so.
        warnings.simplefilter("ignore", MixingWarning)
        return clf.fit(X, y), X + 0.1


@pytest.mark.parametrize(
    ("likelihood", "inference"),
    [
        ("pseudo", "grid"),
        ("pseudo", "metropolis"),
        ("holmes-adams", "grid"),
        ("coherent", "grid"),
        ("coherent", "exchange"),
    ],
)
def test_every_likelihood_and_route_has_joint_draws(likelihood, inference):
    clf, new = fitted(likelihood, inference, n_chains=2, n_draws=300, n_warmup=100)
    draws = clf.sample_labels(new, n_draws=200, random_state=1)
    assert draws.shape == (200, 45)
    assert set(np.unique(draws)) <= set(clf.classes_)
    counts = clf.predict_counts(new, random_state=1)
    assert counts.shape == (3, 3)
    assert counts[:, 0].sum() == pytest.approx(45)
    assert np.all((counts[:, 1] <= counts[:, 0]) & (counts[:, 0] <= counts[:, 2]))
    # Errors of joint draws are shared, and the mean is not far from that of single predictions.
    np.testing.assert_allclose(counts[:, 0], clf.predict_proba(new).sum(axis=0), atol=6.0)


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_counts_are_means_and_quantiles(level):
    """The ends are the smallest numbers with so much of the draws up to them; none are between."""
    clf, new = fitted()
    draws = clf.sample_labels(new, 1000, random_state=3)
    counts = clf.predict_counts(new, level, "free", random_state=3)
    for name, (mean, *ends) in zip(clf.classes_, counts, strict=True):
        drawn = np.sum(draws == name, axis=1)
        assert mean == pytest.approx(drawn.mean())
        for end, part in zip(ends, ((1 - level) / 2, (1 + level) / 2), strict=True):
            assert np.mean(drawn <= end) >= part - 1e-9 and np.mean(drawn < end) < part + 1e-9
            assert end in drawn
    # A class that no point can have is drawn nowhere.
    none, _ = fitted(class_prior=[1 - 2e-12, 1e-12, 1e-12])
    np.testing.assert_array_equal(none.predict_counts(new, level, "free", 3)[1:], np.zeros((2, 3)))


@pytest.mark.parametrize("class_prior", [None, [0.2, 0.3, 0.5]])
def test_sums_are_corrected_by_the_mean_residual(class_prior):
    clf, new = fitted(class_prior=class_prior)
    p, loo, labels = clf.predict_proba(new), clf.loo_proba_, clf._labels
    m, rows = len(new), np.arange(len(labels))
    # Each training point counts as much as its class does in the batch.
    share = np.full(len(rows), 1 / len(rows)) if class_prior is None else None
    if share is None:
        share = (np.array(class_prior) / np.bincount(labels))[labels]
    assert share.sum() == pytest.approx(1)
    residuals = (labels[:, None] == np.arange(3)) - loo
    mean = p.sum(axis=0) + m * share @ residuals
    variance = (p * (1 - p)).sum(axis=0) + m**2 * share**2 @ residuals**2
    half = stats.norm.ppf(0.95) * np.sqrt(variance)
    expected = np.column_stack([mean, np.rint(mean - half), np.rint(mean + half)]).clip(0, m)
    np.testing.assert_allclose(clf.predict_counts(new, 0.9), expected)
    # The correction is seen.
    assert np.abs(mean - p.sum(axis=0)).max() > 0.1
    # The ends are numbers of points, whatever the mean.
    sure = clf.predict_counts(new[:1], 0.9)
    assert sure.min() >= 0 and sure.max() <= 1
    np.testing.assert_array_equal(sure[:, 1:], np.rint(sure[:, 1:]))


def test_the_default_number_of_draws_and_the_level():
    clf, new = fitted()
    assert clf.sample_labels(new[:3]).shape == (1000, 3)
    wide, narrow = (clf.predict_counts(new, level, random_state=0) for level in (0.99, 0.3))
    assert np.all(wide[:, 2] - wide[:, 1] > narrow[:, 2] - narrow[:, 1])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 90"):
        clf.predict_counts(new, level=90)
    with pytest.raises(ValueError, match="prevalence must be one of training, free, got 'any'"):
        clf.predict_counts(new, prevalence="any")
    with pytest.raises(ValueError, match="n_draws must be an integer >= 1, got 0"):
        clf.sample_labels(new, n_draws=0)
    with pytest.raises(ValueError, match="features"):
        clf.sample_labels(new[:, :1])


def test_class_frequencies_enter_the_draws():
    """They shift the odds of one point as those of ``predict_proba``, nearly: see the notes."""
    clf, new = fitted(class_prior={"ant": 0.1, "bee": 0.2, "wasp": 0.7})
    plain, _ = fitted()

    def p_value(n_draws, seed, judge=clf):
        draws = clf.sample_labels(new[:1], n_draws, seed)
        counts = [np.sum(draws == g) for g in clf.classes_]
        return p_value_of_counts(counts, judge.predict_proba(new[:1])[0])

    check(p_value, 2_000)
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, plain), 2_000)


def test_precomputed_distances_are_refused_in_words():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    clf = BayesianKNeighborsClassifier(
        "pseudo", metric="precomputed", max_neighbors=3, beta_max=3.0
    ).fit(distances, np.arange(20) % 2)
    with pytest.raises(ValueError, match="distances among new points are not known; fit on the"):
        clf.sample_labels(distances[:5])


def coverage_of_counts(likelihood, law, n, m, n_sets, prevalence="training"):
    """Share of 90 % intervals for the numbers of the classes that hold them.

    Of the classifier; of points taken for independent; of sums that no residual corrects.
    """
    law = LAWS[law]
    n_classes = law.probabilities(law.sample(2, np.random.default_rng(0))[0]).shape[1]
    held = []
    for s in range(n_sets):
        rng = np.random.default_rng([s, n, m])
        X, y = law.sample(n, rng)
        new, truth = law.sample(m, rng)
        if np.bincount(y, minlength=n_classes).min() < 2:
            continue
        truth = np.bincount(truth, minlength=n_classes)
        # The draws of the posterior are not looked at.
        clf = BayesianKNeighborsClassifier(likelihood, beta_max=4.0, n_draws=9, random_state=s)
        clf.fit(X, y)
        _, low, high = clf.predict_counts(new, 0.9, prevalence, random_state=s).T
        p = clf.predict_proba(new)
        alone = (p * (1 - p)).sum(axis=0)
        brier = ((np.eye(n_classes)[y] - clf.loo_proba_) ** 2).mean(axis=0)
        misses = np.maximum(np.abs(truth - p.sum(axis=0)) - 0.5, 0)
        wide = stats.norm.ppf(0.95) * np.sqrt([alone, alone + m**2 * brier / n])
        held.append([(low <= truth) & (truth <= high), *(misses <= wide)])
    return np.mean(held, axis=(0, 2))


def check_counts_cover(likelihood, laws, n_sets):
    """Check the mean over laws, and each law by what chance leaves open."""
    each = [coverage_of_counts(likelihood, law, 60, 200, n_sets) for law in laws]
    ours, alone, uncorrected = np.mean(each, axis=0)
    assert 0.85 < ours < 0.95
    assert all(0.84 < found[0] < 0.97 for found in each)
    assert alone < 0.75 and uncorrected < ours
    return uncorrected


def test_intervals_of_counts_cover_where_sums_are_off_centre():
    """Sums over single predictions are too sure; where classes differ in spread, off centre too."""
    assert check_counts_cover("pseudo", ["ripley", "spread10"], n_sets=200) < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
def test_intervals_of_counts_cover_on_five_laws(likelihood):
    check_counts_cover(likelihood, ["ripley", "sine1", "lda10", "mix6", "xor"], n_sets=400)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_joint_draws_cover_counts_of_the_coherent_model():
    """With 60 labels: independent predictions .68, joint draws .92 to .95."""
    ours, alone, _ = coverage_of_counts("coherent", "ripley", n=60, m=190, n_sets=150)
    # Standard errors .02 and .04.
    assert ours > 0.85
    assert alone < 0.83
    assert ours - alone > 0.10


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_joint_draws_follow_a_batch_of_other_class_frequencies():
    """Half of the training points are of class 1, a fifth of the batch: sums do not notice."""
    held = {"training": [], "free": []}
    for s in range(12):
        rng = np.random.default_rng(s)
        X, y = LAWS["ripley"].sample(200, rng)
        new, truth = LAWS["ripley"].sample(500, rng)
        ones = np.flatnonzero(truth == 1)
        rows = np.append(np.flatnonzero(truth == 0), ones[: len(ones) // 4])
        clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, n_draws=9).fit(X, y)
        for prevalence, found in held.items():
            _, low, high = clf.predict_counts(new[rows], 0.9, prevalence, random_state=s)[1]
            found.append(low <= truth[rows].sum() <= high)
    assert sum(held["free"]) >= sum(held["training"]) + 3


def test_class_frequencies_enter_the_counts():
    """Balanced in training, nine to one in the batch, as class_prior says."""
    held = []
    for s in range(60):
        rng = np.random.default_rng(s)
        X, y = LAWS["ripley"].sample(120, rng)
        new, truth = LAWS["ripley"].sample(900, rng)
        ones = np.flatnonzero(truth == 1)
        rows = np.append(np.flatnonzero(truth == 0), ones[: len(ones) // 9])
        clf = BayesianKNeighborsClassifier(
            "pseudo", beta_max=4.0, n_draws=9, class_prior=[0.9, 0.1]
        )
        plain = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, n_draws=9).fit(X, y)
        counts = truth[rows].sum()
        held.append(
            [low <= counts <= high for _, low, high in
             (each.predict_counts(new[rows])[1] for each in (clf.fit(X, y), plain))]
        )  # fmt: skip
    ours, unaware = np.mean(held, axis=0)
    assert ours > 0.75 and unaware < 0.5
