"""Probabilities, errors, intervals and leave-one-out results against their slow twins."""

import tracemalloc

import numpy as np
import pytest

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.model import BoltzmannModel
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive, decide, find_zones, log_score
from tests.model.graphs import ripley_graph
from tests.predictive.problems import interval, problem, random_nodes, rule_at_nodes

RIPLEY_MODEL = BoltzmannModel(ripley_graph(), 2)
CASES = [
    (n_classes, weighted, direction)
    for n_classes in (2, 3, 4)
    for weighted in (False, True)
    for direction in ("both", "forward")
]


def build(n_classes, weighted=False, direction="both", nodes=None, **options):
    graph, X, labels, new = problem(n_classes)
    weights = np.linspace(0.6, 1.7, n_classes) if weighted else None
    if nodes is None:
        nodes = random_nodes(graph.k_max)
    model = BoltzmannModel(graph, n_classes, weights)
    predictive = Predictive(model, labels, nodes, direction=direction, **options)
    return predictive, (X, labels, new, n_classes, nodes, weights, direction)


def dense_nodes(k_max=12, n=3000):
    """Enough draws at every k for the Gauss rules to replace them."""
    rng = np.random.default_rng(5)
    return PosteriorNodes.from_draws(rng.gamma(9.0, 0.2, size=n), rng.integers(4, 7, size=n))


@pytest.mark.parametrize(("n_classes", "weighted", "direction"), CASES)
def test_probabilities_are_the_weighted_rule(n_classes, weighted, direction):
    predictive, case = build(n_classes, weighted, direction)
    found = predictive.probabilities(case[2])
    values = rule_at_nodes(*case)
    assert np.allclose(found, np.tensordot(case[4].weight, values, axes=1), atol=1e-12)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-12)
    assert found.min() >= 0 and found.max() <= 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_condensing_does_not_show(n_classes, weighted):
    predictive, case = build(n_classes, weighted, nodes=dense_nodes())
    assert predictive._rule._condensed.n_nodes < predictive.nodes.n_nodes / 4
    values = rule_at_nodes(*case)
    mean = np.tensordot(case[4].weight, values, axes=1)
    assert np.abs(predictive.probabilities(case[2]) - mean).max() < 1e-7


@pytest.mark.parametrize("mutant", ["forward", "reverse twice", "beta not divided by k"])
def test_wrong_rules_are_told_apart(mutant):
    predictive, case = build(2)
    X, labels, new, n_classes, nodes, *_ = case
    if mutant == "forward":
        wrong = rule_at_nodes(X, labels, new, n_classes, nodes, direction="forward")
    elif mutant == "reverse twice":
        both = rule_at_nodes(X, labels, new, n_classes, nodes)
        forward = rule_at_nodes(X, labels, new, n_classes, nodes, direction="forward")
        wrong = both**2 / forward / (both**2 / forward).sum(axis=2, keepdims=True)
    else:
        times_k = PosteriorNodes(nodes.k, nodes.beta * nodes.k, nodes.weight)
        wrong = rule_at_nodes(X, labels, new, n_classes, times_k)
    mean = np.tensordot(nodes.weight, wrong, axes=1)
    assert np.abs(predictive.probabilities(new) - mean).max() > 1e-3


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("n_classes", "weighted", "direction"), CASES)
def test_intervals_are_weighted_quantiles(n_classes, weighted, direction, level):
    predictive, case = build(n_classes, weighted, direction)
    found = predictive.intervals(case[2], level)
    values = rule_at_nodes(*case)
    weights = case[4].weight
    for q in range(len(case[2])):
        for g in range(n_classes):
            expected = interval(values[:, q, g], weights, level, weights @ values[:, q, g])
            assert np.allclose(found[q, g], expected, atol=1e-12)


def test_intervals_contain_the_mean_even_of_extreme_laws():
    # One node in fifty holds almost all of the mean of class 1, and lies in the tail.
    graph = NeighborGraph.from_points([[0.0], [1.0], [8.0], [9.0]], k_max=1)
    nodes = PosteriorNodes([1, 1], [0.0, 40.0], [0.02, 0.98])
    predictive = Predictive(BoltzmannModel(graph, 2), [0, 0, 1, 1], nodes)
    ends, mean = predictive.intervals([[0.4]], 0.95), predictive.probabilities([[0.4]])
    assert np.all(ends[..., 0] <= mean) and np.all(mean <= ends[..., 1])
    assert np.isclose(mean[0, 1], 0.01) and np.isclose(ends[0, 1, 1], 0.01)
    for n_classes in (2, 3, 4):
        predictive, case = build(n_classes, nodes=dense_nodes())
        ends, mean = predictive.intervals(case[2], 0.1), predictive.probabilities(case[2])
        assert np.all(ends[..., 0] <= mean) and np.all(mean <= ends[..., 1])


def test_one_node_makes_intervals_of_no_width():
    predictive, case = build(3, nodes=PosteriorNodes([5], [1.3], [1.0]))
    mean = predictive.probabilities(case[2])
    ends = predictive.intervals(case[2])
    assert np.allclose(ends, mean[..., None], atol=1e-15)


def test_zones_of_two_classes_follow_the_paper():
    ripley = load_ripley()
    posterior = grid_posterior(PseudoLikelihood(ripley_graph(), ripley.y_train), beta_max=4.0)
    nodes = PosteriorNodes.from_grid(posterior)
    predictive = Predictive(RIPLEY_MODEL, ripley.y_train, nodes)
    ends = predictive.intervals(ripley.X_test)
    assert np.allclose(ends[:, 0, 0], 1 - ends[:, 1, 1], atol=1e-12)
    contains_half = (ends[:, 1, 0] <= 0.5) & (ends[:, 1, 1] >= 0.5)
    zones = find_zones(ends)
    assert np.array_equal(zones == -1, contains_half)
    assert np.array_equal(zones == 1, ends[:, 1, 0] > 0.5)
    assert 10 < contains_half.sum() < 200


@pytest.mark.parametrize("likelihood", [PseudoLikelihood, HolmesAdamsLikelihood])
def test_the_log_score_at_one_node_is_the_log_product(likelihood):
    ripley = load_ripley()
    product = likelihood(ripley_graph(), ripley.y_train)
    predictive = Predictive(
        RIPLEY_MODEL, ripley.y_train, PosteriorNodes([30], [1.7], [1.0]),
        direction=product.direction,
    )  # fmt: skip
    score = log_score(predictive.leave_one_out()[0].probabilities, ripley.y_train)
    assert np.isclose(250 * score, product.log_density(1.7, 30))


@pytest.mark.parametrize(
    ("likelihood", "beta_max", "log_loss"),
    [(PseudoLikelihood, 4.0, 0.224), (HolmesAdamsLikelihood, 12.0, 0.215)],
)
def test_ripley_comes_out_as_in_spec(likelihood, beta_max, log_loss):
    ripley = load_ripley()
    product = likelihood(ripley_graph(), ripley.y_train)
    nodes = PosteriorNodes.from_grid(grid_posterior(product, beta_max=beta_max))
    direction = product.direction
    predictive = Predictive(RIPLEY_MODEL, ripley.y_train, nodes, direction=direction)
    found = predictive.probabilities(ripley.X_test)
    assert abs(-log_score(found, ripley.y_test) - log_loss) < 0.0006
    if product.direction == "both":
        assert np.mean(decide(found)[0] != ripley.y_test) == 0.085


@pytest.mark.parametrize("direction", ["both", "forward"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_renaming_classes_permutes_the_columns(n_classes, weighted, direction):
    graph, _, labels, new = problem(n_classes)
    nodes = random_nodes(graph.k_max)
    weights = np.linspace(0.6, 1.7, n_classes) if weighted else np.ones(n_classes)
    renamed = np.roll(np.arange(n_classes), 1)
    predictives = [
        Predictive(
            BoltzmannModel(graph, n_classes, a if weighted else None),
            y,
            nodes,
            direction=direction,
        )
        for y, a in ((labels, weights), (renamed[labels], weights[np.argsort(renamed)]))
    ]
    for method in ("probabilities", "intervals"):
        first, second = (getattr(p, method)(new) for p in predictives)
        np.testing.assert_allclose(second[:, renamed], first, rtol=1e-10, atol=1e-14)
    first, second = (p.leave_one_out()[0].probabilities for p in predictives)
    np.testing.assert_allclose(second[:, renamed], first, rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (2, True), (3, False)])
def test_blocks_and_threads_give_the_same_bits(n_classes, weighted, monkeypatch):
    graph, _, labels, _ = problem(n_classes)
    new = np.random.default_rng(8).normal(size=(3000, 2))
    nodes = random_nodes(graph.k_max)
    weights = np.linspace(0.6, 1.7, n_classes) if weighted else None

    def everything(n_jobs=None, rows=None):
        model = BoltzmannModel(graph, n_classes, weights)
        predictive = Predictive(model, labels, nodes, n_jobs=n_jobs)
        parts = [new] if rows is None else np.array_split(new, rows)
        return [
            np.concatenate([predictive.probabilities(X) for X in parts]),
            np.concatenate([predictive.intervals(X[:200]) for X in parts[:1]]),
            predictive.leave_one_out()[0].probabilities,
            predictive.leave_one_out(0.95)[0].intervals,
        ]

    whole = everything()
    threaded = everything(n_jobs=2)
    monkeypatch.setattr("bayesknn.predictive.predictive._BLOCK_BYTES", 1)
    monkeypatch.setattr("bayesknn.predictive.predictive._LOO_BLOCK_BYTES", 1)
    blocks = everything()
    assert all(map(np.array_equal, whole, threaded))
    assert all(map(np.array_equal, whole, blocks))
    by_rows = everything(rows=7)
    assert np.array_equal(whole[0], by_rows[0]) and np.array_equal(whole[1], by_rows[1])


def test_the_query_reaches_no_further_than_the_weights():
    graph, _, labels, _ = problem(2)
    nodes = PosteriorNodes([3, 5], [1.0, 1.0], [0.5, 0.5])
    assert Predictive(BoltzmannModel(graph, 2), labels, nodes).graph.k_max == 5


def test_an_empty_class_and_far_points():
    graph, _, labels, _ = problem(2)
    predictive = Predictive(BoltzmannModel(graph, 3), labels, random_nodes(graph.k_max))
    found = predictive.probabilities([[1e9, 0.0], [-1e9, 1e9]])
    assert np.all(np.isfinite(found)) and np.allclose(found.sum(axis=1), 1)
    assert np.all(found[:, 2] > 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "reverse"}, "direction must be one of both, forward, got 'reverse'"),
        ({"nodes": PosteriorNodes([13], [1.0], [1.0])}, r"k must be an integer in 1..12"),
        ({"labels": [0, 1]}, "one label for each of the 40 points"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    graph, _, labels, _ = problem(2)
    arguments = {"labels": labels, "nodes": random_nodes(graph.k_max)} | change
    with pytest.raises(ValueError, match=message):
        Predictive(BoltzmannModel(graph, 2), **arguments)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2.0, np.nan, "high", None, [0.5]])
def test_a_level_outside_the_unit_interval_is_refused(level):
    predictive, case = build(2)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        predictive.intervals(case[2], level)


def test_memory_grows_with_the_answer_alone():
    """Blocks of new points leave nothing behind that is as wide as a list of neighbours."""
    rng = np.random.default_rng(0)
    k_max, n_new = 100, (20_000, 40_000)
    graph = NeighborGraph.from_points(rng.normal(size=(200, 2)), k_max)
    labels = rng.integers(2, size=200)
    nodes = PosteriorNodes.from_draws(np.full(10, 1.5), np.full(10, k_max))
    predictive = Predictive(BoltzmannModel(graph, 2), labels, nodes)
    peaks = []
    for m in n_new:
        new = rng.normal(size=(m, 2))
        tracemalloc.start()
        predictive.probabilities(new)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < (n_new[1] - n_new[0]) * 8 * k_max / 4
