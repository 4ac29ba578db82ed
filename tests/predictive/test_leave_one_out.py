"""Leave-one-out against refits, exact sums over all labels, and its slow twin."""

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bayesknn import reference
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import BoltzmannModel, UniformPrior
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive, log_score
from tests.model.enumeration import as_reference
from tests.predictive.problems import interval, problem, random_nodes, rule_at_nodes

CASES = [
    (n_classes, weighted, direction)
    for n_classes in (2, 3, 4)
    for weighted in (False, True)
    for direction in ("both", "forward")
]


def build(n_classes, weighted=False, direction="both"):
    graph, X, labels, _ = problem(n_classes)
    weights = np.linspace(0.6, 1.7, n_classes) if weighted else None
    nodes = random_nodes(graph.k_max)
    model = BoltzmannModel(graph, n_classes, weights)
    predictive = Predictive(model, labels, nodes, direction=direction)
    return predictive, X, labels, nodes, weights


def loo(predictive):
    return predictive.leave_one_out()[0].probabilities


def reweighted(nodes, values, label):
    weight = nodes.weight / values[:, label]
    return weight / weight.sum()


@pytest.mark.parametrize(("n_classes", "weighted", "direction"), CASES)
def test_it_is_the_reweighted_rule_on_the_graph_without_the_point(n_classes, weighted, direction):
    """Where no distances tie, the full conditional is the predictive law from all other points."""
    predictive, X, labels, nodes, weights = build(n_classes, weighted, direction)
    (found, variances, _votes, *_), share = predictive.leave_one_out()
    for i in range(0, len(X), 5):
        others = np.delete(np.arange(len(X)), i)
        values = rule_at_nodes(
            X[others], labels[others], X[[i]], n_classes, nodes, weights, direction
        )[:, 0]
        w = reweighted(nodes, values, labels[i])
        assert np.allclose(found[i], w @ values, atol=1e-12)
        assert np.allclose(variances[i], w @ values**2 - (w @ values) ** 2, atol=1e-12)
        assert math.isclose(share[i], 1 / (w**2 / nodes.weight).sum(), rel_tol=1e-9)


def test_intervals_are_quantiles_of_the_reweighted_nodes():
    predictive, _, labels, nodes, weights = build(3, weighted=True)
    graph = problem(3)[0]
    values = np.array(
        [
            reference.conditional(*as_reference(graph, 3, weights), labels, beta, int(k))
            for k, beta in zip(nodes.k, nodes.beta, strict=True)
        ]
    )
    found = predictive.leave_one_out(0.9)[0].intervals
    for i in range(len(labels)):
        w = reweighted(nodes, values[:, i], labels[i])
        for g in range(3):
            expected = interval(values[:, i, g], w, 0.9, w @ values[:, i, g])
            assert np.allclose(found[i, g], expected, atol=1e-12)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.7, 1.5, 1.1)], ids=["equal", "weighted"])
def test_it_is_exact_for_the_coherent_model(weights):
    """The labels' joint law, averaged over a prior on three nodes, conditioned on all but one."""
    rng = np.random.default_rng(3)
    graph = NeighborGraph.from_points(rng.normal(size=(7, 2)), k_max=3)
    labels = [0, 0, 1, 1, 2, 2, 0]
    places = [(0.4, 1), (1.5, 2), (3.0, 3)]
    prior = [0.3, 0.5, 0.2]
    near, a = as_reference(graph, 3, weights)

    def evidences(y):
        logs = [reference.log_likelihood(near, a, np.array(y), beta, k) for beta, k in places]
        return np.array(prior) * np.exp(logs)

    posterior = evidences(labels) / evidences(labels).sum()
    nodes = PosteriorNodes([k for _, k in places], [beta for beta, _ in places], posterior)
    found = loo(Predictive(BoltzmannModel(graph, 3, weights), labels, nodes))
    for i in range(len(labels)):
        law = np.array(
            [evidences([*labels[:i], g, *labels[i + 1 :]]).sum() for g in range(3)]
        )  # fmt: skip
        assert np.allclose(found[i], law / law.sum(), atol=1e-12)


def fit_predictive(X, labels, n_classes, prior, kind=PseudoLikelihood):
    graph = NeighborGraph.from_points(X, prior.k_max)
    product = kind(graph, labels, n_classes)
    nodes = PosteriorNodes.from_grid(grid_posterior(product, prior))
    return Predictive(BoltzmannModel(graph, n_classes), labels, nodes, direction=kind.direction)


def refit_without(X, labels, n_classes, prior, rows, kind=PseudoLikelihood):
    """Predict each of the rows from a fit that never saw it."""
    found = []
    for i in rows:
        others = np.delete(np.arange(len(X)), i)
        rest = fit_predictive(X[others], labels[others], n_classes, prior, kind)
        found.append(rest.probabilities(X[[i]])[0])
    return np.array(found)


def iris():
    return *load_iris(return_X_y=True), 3


def ripley():
    sample = load_ripley()
    return sample.X_train, sample.y_train, 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "n_rows", "k_max", "beta_max"),
    [(iris, 150, 49, 6.0), (ripley, 60, 124, 4.0)],
    ids=["iris", "ripley"],
)
def test_refits_without_each_point_agree(load, n_rows, k_max, beta_max):
    X, labels, n_classes = load()
    prior = UniformPrior(k_max, beta_max)
    rows = np.random.default_rng(1).permutation(len(X))[:n_rows]
    true = refit_without(X, labels, n_classes, prior, rows)
    found = loo(fit_predictive(X, labels, n_classes, prior))[rows]
    assert abs(log_score(found, labels[rows]) - log_score(true, labels[rows])) < 0.003
    assert np.abs(found - true).max() < 0.05


@pytest.mark.parametrize("kind", [PseudoLikelihood, HolmesAdamsLikelihood])
def test_refits_without_the_points_that_matter_most_agree(kind):
    """The plain average over the posterior, which has seen the labels, is rejected."""
    X, labels, n_classes = iris()
    prior = UniformPrior(30, 12.0)
    whole = fit_predictive(X, labels, n_classes, prior, kind)
    found = loo(whole)
    rows = np.argsort(found[np.arange(150), labels])[:8]
    true = refit_without(X, labels, n_classes, prior, rows, kind)
    assert np.abs(found[rows] - true).max() < 0.05
    error = abs(log_score(found[rows], labels[rows]) - log_score(true, labels[rows]))
    ks = whole._rule.k_values
    walk = whole.graph.iterate_counts(labels, n_classes, ks, whole.direction)
    counts = np.stack([each.copy() for _, each in walk])
    seen = whole._rule.predict(counts, np.zeros(150))[0].probabilities[rows]
    assert abs(log_score(seen, labels[rows]) - log_score(true, labels[rows])) > 3 * error


def test_huge_odds_do_not_overflow():
    X = np.arange(12.0)[:, None] + np.repeat([0.0, 100.0], 6)[:, None]
    labels = np.repeat([0, 1], 6)
    labels[2] = 1
    graph = NeighborGraph.from_points(X, k_max=3)
    nodes = PosteriorNodes([2, 3], [1.0, 900.0], [0.5, 0.5])
    predictive = Predictive(BoltzmannModel(graph, 2), labels, nodes)
    (found, variances, *_), share = predictive.leave_one_out()
    assert np.all(np.isfinite(variances))
    assert np.allclose(found.sum(axis=1), 1) and np.all(np.isfinite(share))
    assert np.all(np.isfinite(predictive.leave_one_out(0.95)[0].intervals))


def test_a_group_is_left_out_exactly_for_the_coherent_model():
    """No edge joins rows of a group: its labels are independent given the others'."""
    rng = np.random.default_rng(5)
    groups = np.array([0, 1, 0, 2, 1, 2, 3, 0])
    graph = NeighborGraph.from_points(rng.normal(size=(8, 2)), k_max=3, groups=groups)
    labels = np.array([0, 0, 1, 1, 2, 2, 0, 1])
    places, prior = [(0.4, 1), (1.5, 2), (3.0, 3)], np.array([0.3, 0.5, 0.2])
    near, a = as_reference(graph, 3, np.ones(3))

    def evidence(y):
        logs = [reference.log_likelihood(near, a, np.array(y), beta, k) for beta, k in places]
        return prior * np.exp(logs)

    posterior = evidence(labels) / evidence(labels).sum()
    nodes = PosteriorNodes([k for _, k in places], [beta for beta, _ in places], posterior)
    predictive = Predictive(BoltzmannModel(graph, 3), labels, nodes)
    raw, share = predictive.leave_one_out()
    for group in range(4):
        members = np.flatnonzero(groups == group)
        law = np.zeros((len(members), 3))
        for some in itertools.product(range(3), repeat=len(members)):
            y = labels.copy()
            y[members] = some
            law[np.arange(len(members)), some] += evidence(y).sum()
        expected = law / law.sum(axis=1, keepdims=True)
        assert np.allclose(raw.probabilities[members], expected, atol=1e-12)
        # One label at a time is another answer.
    plain = predictive._rule.predict(*leave_each(predictive))[0].probabilities
    assert np.abs(plain - raw.probabilities).max() > 1e-3
    assert np.all((share > 0) & (share <= 1))
    alone = predictive.leave_one_out(0.9)[0].intervals
    assert np.all((alone[..., 0] <= raw.probabilities) & (raw.probabilities <= alone[..., 1]))


def leave_each(predictive):
    counts = [
        each.copy()
        for _, each in predictive.graph.iterate_counts(
            predictive.labels, predictive.n_classes, predictive._rule.k_values
        )
    ]
    return np.stack(counts), np.zeros(predictive.graph.n_points), predictive.labels
