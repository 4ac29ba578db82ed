"""The front before the three samplers: the right law from each, the same checks for all."""

from contextlib import contextmanager

import numpy as np
import pytest

from bayesknn.exceptions import CoalescenceError, MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from tests.model.enumeration import exact_law, state_index
from tests.model.graphs import random_graph, ring, ripley_graph
from tests.statistical import check, p_value_of_counts, rejects

GRAPH = random_graph(np.random.default_rng(3), n=5, k_max=3)
BETA, K, N_CLASSES = 1.3, 2, 3
METHODS = ["swendsen-wang", "perfect", "gibbs"]


def p_value_of_law(method, beta=BETA, class_weight=None, n_classes=N_CLASSES, thin=40):
    _, law = exact_law(GRAPH, BETA, K, n_classes, class_weight)

    def p_value(n_draws, seed):
        labels = sample_labels(
            GRAPH, beta, K, n_classes, method, n_draws, thin, seed, class_weight, n_warmup=100
        )
        counts = np.bincount(state_index(labels, n_classes), minlength=len(law))
        return p_value_of_counts(counts, law)

    return p_value


@pytest.mark.parametrize("method", METHODS)
def test_every_method_draws_from_the_model(method):
    check(p_value_of_law(method), 4000)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_class_weights(method):
    check(p_value_of_law(method, class_weight=[0.5, 1.6], n_classes=2), 4000)


@pytest.mark.parametrize("method", METHODS)
def test_the_mutant_without_the_division_by_k_is_rejected(method):
    assert rejects(p_value_of_law(method, beta=BETA * K), 4000)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_labels(method):
    first, second, other = (
        sample_labels(GRAPH, BETA, K, N_CLASSES, method, 20, random_state=seed)
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert first.shape == (20, 5)


@pytest.mark.parametrize("method", METHODS)
def test_info_describes_the_draws(method):
    labels, info = sample_labels(
        GRAPH, BETA, K, N_CLASSES, method, 200, random_state=1, return_info=True
    )
    agreement = [
        sum(y[i] == y[j] for i in range(5) for j in GRAPH.neighbors[:K, i]) for y in labels
    ]
    assert np.array_equal(info.agreement, agreement)
    assert info.method == method
    assert info.n_sweeps >= 200
    assert (info.coalescence is None) == (method != "perfect")
    assert info.autocorrelation_time > 0.5


def test_perfect_draws_do_not_depend_on_threads():
    one, two = (
        sample_labels(ripley_graph(), 1.45, 13, 3, "perfect", 8, random_state=2, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one, two)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_progress_is_told_in_full_and_changes_nothing(method, n_jobs, monkeypatch):
    told = []

    @contextmanager
    def watched(description, total, verbose):
        told.append((description, total, verbose, steps := []))
        yield steps.append

    # Pieces of a single sweep or draw.
    monkeypatch.setattr("bayesknn.labels.mixing._OPERATIONS_PER_CALL", 1)
    monkeypatch.setattr("bayesknn.labels.perfect._WORK_PER_CALL", 1)
    arguments = (GRAPH, BETA, K, N_CLASSES, method, 21)
    options = {"random_state": 5, "n_jobs": n_jobs, "return_info": True}
    silent = sample_labels(*arguments, **options)
    with monkeypatch.context() as patch:
        patch.setattr("bayesknn.labels.sampling.progress", watched)
        labels, info = sample_labels(*arguments, verbose=1, **options)
    np.testing.assert_array_equal(labels, silent[0])
    np.testing.assert_array_equal(info.agreement, silent[1].agreement)
    ((description, total, verbose, steps),) = told
    assert (description, verbose) == ("Drawing labels", 1)
    assert total == sum(steps) == (21 if method == "perfect" else info.n_sweeps)
    assert len(steps) == {"perfect": 21, "gibbs": 2 * 500 + 21}.get(method, 2 * 200 + 21)


def test_underscores_are_dashes():
    assert sample_labels(GRAPH, BETA, K, N_CLASSES, "swendsen_wang").shape == (1, 5)


def test_chains_that_do_not_meet_are_reported():
    # Gibbs stays in the patchwork that random labels freeze into, and in the single class.
    with pytest.warns(MixingWarning, match="have not met at beta=40, k=2"):
        sample_labels(ripley_graph(), 40.0, 2, 6, "gibbs", 200, thin=1, n_warmup=20, random_state=0)


@pytest.mark.parametrize("method", METHODS)
def test_information_does_not_change_the_draws(method):
    told, _ = sample_labels(GRAPH, BETA, K, 2, method, 20, random_state=5, return_info=True)
    silent = sample_labels(GRAPH, BETA, K, 2, method, 20, random_state=5)
    np.testing.assert_array_equal(silent, told)


def test_without_information_the_starts_are_compared_all_the_same():
    # Ten classes, every point everybody's neighbour: at the first-order transition, 2.47, chains
    # stay where they started.
    everybody = NeighborGraph.from_neighbors(
        [(np.arange(300) + shift) % 300 for shift in range(1, 300)]
    )
    with pytest.warns(MixingWarning, match="have not met at beta=2.47, k=299 .mean S_1 "):
        sample_labels(everybody, 2.47, 299, 10, n_draws=200, thin=1, n_warmup=20, random_state=0)


def test_a_short_past_raises_and_returns_nothing():
    with pytest.raises(CoalescenceError) as caught:
        sample_labels(ripley_graph(), 1.45, 13, 2, "perfect", random_state=0, max_sweeps=1)
    assert caught.value.n_apart > 0
    assert caught.value.n_sweeps == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": -0.1}, "beta must be at least 0, got -0.1"),
        ({"beta": np.nan}, "beta must be finite, got nan"),
        ({"beta": np.inf}, "beta must be finite, got inf"),
        ({"k": 0}, "k must be an integer in 1..3"),
        ({"k": 4}, "k must be an integer in 1..3"),
        ({"k": 1.5}, "k must be an integer in 1..3"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2, got 1"),
        ({"n_draws": 0}, "n_draws must be an integer >= 1, got 0"),
        ({"n_draws": 1.5}, "n_draws must be an integer"),
        ({"thin": 0}, "thin must be an integer >= 1, got 0"),
        ({"n_warmup": -1}, "n_warmup must be an integer >= 0, got -1"),
        ({"max_sweeps": 0}, "max_sweeps must be an integer in 1..2147483648, got 0"),
        ({"method": "magic"}, "swendsen-wang, perfect, gibbs"),
        ({"class_weight": [1.0, 2.0]}, "class_weight must hold 3 numbers"),
        ({"class_weight": [1.0, 2.0, -1.0]}, "class_weight must be finite and positive"),
        ({"initial": [0, 1]}, "one label for each of the 5 points, got 2"),
        ({"initial": [0, 1, 3, 0, 0]}, "labels must lie in 0..2"),
        ({"initial": [0, 1], "method": "gibbs"}, "one label for each of the 5 points, got 2"),
        ({"initial": 3}, "initial must be an integer in 0..2, got 3"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"graph": GRAPH, "beta": BETA, "k": K, "n_classes": N_CLASSES, **change}
    with pytest.raises(ValueError, match=message) as caught:
        sample_labels(**arguments)
    assert "\n" not in str(caught.value)


def test_perfect_draws_with_unequal_weights_and_three_classes_name_the_way_out():
    with pytest.raises(ValueError, match="(?i)gibbs|swendsen"):
        sample_labels(GRAPH, BETA, K, 3, "perfect", class_weight=[1.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="initial is for chains"):
        sample_labels(GRAPH, BETA, K, 3, "perfect", initial=[0, 0, 0, 0, 0])


@pytest.mark.parametrize("method", ["swendsen-wang", "gibbs"])
def test_one_class_for_all_points_is_a_start(method):
    one, other = (
        sample_labels(GRAPH, BETA, K, 3, method, 5, random_state=0, n_warmup=0, initial=initial)
        for initial in (2, [2, 2, 2, 2, 2])
    )
    np.testing.assert_array_equal(one, other)


def test_the_smallest_graph_works():
    pair = NeighborGraph.from_neighbors([[1, 0]])
    for method in METHODS:
        assert sample_labels(pair, 0.0, 1, 2, method, 3, random_state=0).shape == (3, 2)


# What Gibbs sampling needs of wider labels is compiled for its twin anyway.
@pytest.mark.parametrize("method", ["gibbs", pytest.param("swendsen-wang", marks=pytest.mark.slow)])
def test_more_than_256_classes_fit(method):
    labels = sample_labels(ring(600), 0.0, 1, 1000, method, n_draws=2, random_state=0)
    assert labels.max() > 255


def test_an_unknown_autocorrelation_time_is_not_a_number_and_said():
    # Two points that are bound in every sweep: S is 2 in all draws.
    pair = NeighborGraph.from_neighbors([[1, 0]])
    with pytest.warns(MixingWarning, match="time is unknown: S_1 is the same in all draws"):
        _, info = sample_labels(pair, 50.0, 1, 2, n_draws=50, random_state=0, return_info=True)
    assert np.isnan(info.autocorrelation_time)
