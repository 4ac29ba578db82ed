"""beta_max: simulated curves against exact ones, and what it is on the paper's data."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max
from bayesknn.labels.beta_max import _LONG_RUN, _run
from bayesknn.model import BoltzmannModel, expected_agreement_exact, locate_beta_max
from tests.model.graphs import ripley_graph
from tests.statistical import check, p_value_of_z, rejects


def p_value_of_simulation(k_simulated):
    graph, k = ripley_graph(), 5
    model = BoltzmannModel(graph, 2)
    betas = [0.5, 1.5, 2.5]
    exact = np.asarray(expected_agreement_exact(graph, betas, k, 2)) / (graph.n_points * k)

    def p_value(n_draws, seed):
        # Eight batches a run: its t-scores are averaged over runs, whose spread is then known.
        keys = np.random.SeedSequence(seed).generate_state(3 * n_draws, np.uint64).reshape(3, -1)
        z = []
        for beta, mean, row in zip(betas, exact, keys, strict=True):
            runs = [_run(model, beta, k_simulated, key, _LONG_RUN)[0] for key in row]
            z.append((np.mean(runs) - mean) / (np.std(runs, ddof=1) / np.sqrt(n_draws)))
        return p_value_of_z(z)

    return p_value


def test_simulated_curves_are_the_exact_ones():
    check(p_value_of_simulation(5), 40)


def test_a_curve_of_another_k_is_rejected():
    assert rejects(p_value_of_simulation(6), 40)


def test_ripley_gets_a_range_like_the_papers():
    curve = find_beta_max(ripley_graph(), 2, random_state=0)
    assert 3.5 < curve.beta_max < 5.0
    assert curve.decisive_k == 2
    beta, agreement, error = curve.curve(125)
    assert len(beta) >= 12
    assert agreement[-1] > 0.98
    assert np.all(error >= 0)


def test_the_same_seed_gives_the_same_curve():
    first, second = (find_beta_max(ripley_graph(), 3, random_state=seed) for seed in (0, 0))
    assert np.array_equal(first.agreement, second.agreement)


def test_class_weights_change_the_strength_not_the_measure():
    plain = find_beta_max(ripley_graph(), 2, k_values=[3], random_state=0)
    halved = find_beta_max(ripley_graph(), 2, k_values=[3], class_weight=[0.5, 0.5], random_state=0)
    assert np.isclose(halved.crossings[0], 2 * plain.crossings[0], rtol=0.02)
    uneven = find_beta_max(ripley_graph(), 2, k_values=[3], class_weight=[0.8, 1.2], random_state=0)
    assert 2 < uneven.beta_max < plain.beta_max


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_crossing_is_that_of_the_exact_curve(n_classes):
    graph = ripley_graph()

    def exact_share(betas, k):
        means = np.asarray(expected_agreement_exact(graph, betas, k, n_classes))
        return means / (graph.n_points * k), np.zeros(len(betas))

    exact = locate_beta_max(exact_share, [1, 2, 3], n_classes, n_betas=0)
    found = find_beta_max(graph, n_classes, k_values=[1, 2, 3], n_betas=0, random_state=0)
    assert found.decisive_k == exact.decisive_k == 2
    # The error is about .02, and beta_max is rounded up to tenths.
    assert abs(found.crossings.max() - exact.crossings.max()) < 0.1
    assert abs(found.beta_max - exact.beta_max) < 0.11


@pytest.mark.parametrize(("n_features", "n_classes"), [(2, 2), (2, 4), (10, 2)])
def test_some_of_many_points_find_the_same_place(monkeypatch, n_features, n_classes):
    points = np.random.default_rng(0).normal(size=(6000, n_features))
    graph = NeighborGraph.from_points(points, k_max=20)
    some = find_beta_max(graph, n_classes, n_betas=0, random_state=0)
    monkeypatch.setattr("bayesknn.labels.beta_max._MOST_POINTS", 6000)
    whole = find_beta_max(graph, n_classes, n_betas=0, random_state=0)
    assert not np.array_equal(some.agreement, whole.agreement)
    # A standard deviation of 1,000 points is .07 or so; both are rounded up to tenths.
    assert abs(some.beta_max - whole.beta_max) < 0.35


def test_k_values_may_be_an_iterator_on_many_points_too():
    graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(2100, 2)), k_max=3)
    from_list, from_iterator = (
        find_beta_max(graph, 2, k_values=k_values, n_betas=0, random_state=0)
        for k_values in ([1, 3], iter([1, 3]))
    )
    np.testing.assert_array_equal(from_iterator.k_values, [1, 3])
    np.testing.assert_array_equal(from_iterator.agreement, from_list.agreement)


def test_beta_max_does_not_depend_on_the_points_made_for_plotting():
    with_curve, without = (
        find_beta_max(ripley_graph(), 3, n_betas=n_betas, random_state=0) for n_betas in (12, 0)
    )
    assert with_curve.beta_max == without.beta_max
    assert len(without.beta) < len(with_curve.beta)


def test_every_crossing_of_a_curve_is_where_the_curve_crosses():
    curve = find_beta_max(ripley_graph(), 2, random_state=0)
    for k, crossing, error in zip(
        curve.k_values.tolist(), curve.crossings, curve.crossing_errors, strict=True
    ):
        beta, agreement, spread = curve.curve(k)
        near = np.interp(crossing, beta, agreement)
        # The curve is bent between its points, which are a third of a unit apart.
        allowed = 4 * spread.max() + 0.003
        assert abs(near - curve.agreement_threshold) < allowed, (k, error)
