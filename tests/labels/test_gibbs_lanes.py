"""Lanes: the Python twin, the approximate comparison against exact thresholds, and the law."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bayesknn._jit import kernel
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import gibbs_lanes_two
from bayesknn.labels.gibbs_lanes import gibbs_lanes
from bayesknn.labels.gibbs_lanes_two import LANES, _compare, _lane_constants
from bayesknn.labels.random import spawn_keys
from bayesknn.labels.vectors import _filled, _store
from bayesknn.model import expected_agreement_exact
from tests.labels.exact import (
    agreement_of,
    betas,
    bits,
    enumerate_law,
    gibbs_twin,
    graphs,
    index_of,
    keys,
    random_graph,
    ring,
    ring_mean_agreement,
    star,
    start_labels,
    sweep_key,
)
from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects

KEY = np.uint64(77)
GRAPH = random_graph(5, 3, seed=1)
K = 2


def word_of(key, lane, n, two_classes):
    """Return the function of (sweep, site) that gives the 64 bits a lane uses there."""
    block, column = divmod(lane, LANES)

    def word(sweep, site):
        stream, place = sweep_key(key, sweep), block * n + site
        if not two_classes:
            return bits(stream, place * LANES + column)
        upper = bits(stream, place * LANES // 4 + column // 4) >> 16 * (column % 4) & 0xFFFF
        return upper << 48 | bits(stream, 2**40 + place * LANES + column) >> 16

    return word


def lane_start(key, lane, n, n_classes):
    block, column = divmod(lane, LANES)
    places = [(block * n + site) * LANES + column for site in range(n)]
    return start_labels(key, places, n_classes)


def check_against_twin(
    graph, lane_betas, k, n_classes, key, lanes, class_weight=None, two_classes=None
):
    n, n_sweeps = graph.n_points, 4
    labels, info = gibbs_lanes(
        graph, lane_betas, k, n_classes, n_sweeps=3, n_warmup=1, key=key, class_weight=class_weight
    )
    if two_classes is None:
        two_classes = n_classes == 2 and class_weight is None
    for lane in lanes:
        states = gibbs_twin(
            graph, lane_betas[lane], k, n_classes, lane_start(key, lane, n, n_classes),
            word_of(key, lane, n, two_classes), n_sweeps, class_weight, two_classes,
        )  # fmt: skip
        np.testing.assert_array_equal(labels[lane], states[-1])
        expected = [agreement_of(graph, state, k, class_weight) for state in states[1:]]
        np.testing.assert_allclose(info.agreement[:, lane], expected, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(graphs(7), st.lists(betas(), min_size=1, max_size=5), st.integers(2, 4), keys, st.booleans())
def test_twin(graph_and_k, lane_betas, n_classes, key, weighted):
    graph, k = graph_and_k
    class_weight = np.linspace(0.5, 1.5, n_classes) if weighted else None
    lanes = range(len(lane_betas))
    check_against_twin(graph, np.array(lane_betas), k, n_classes, key, lanes, class_weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_twin_in_several_blocks(n_classes):
    lane_betas = np.linspace(0.0, 5.0, 2 * LANES + 10)
    check_against_twin(GRAPH, lane_betas, K, n_classes, KEY, [0, 1, 63, 64, 100, 127, 128, 137])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_hub_of_large_degree(n_classes):
    # More than 255 neighbours of either weight would overflow bytes.
    check_against_twin(star(600), np.array([0.001, 0.6]), 1, n_classes, KEY, [0, 1])
    crowd = random_graph(300, 280, seed=2)
    check_against_twin(crowd, np.array([0.8]), 280, n_classes, KEY, [0])


def test_degrees_beyond_16_bits_go_to_the_general_kernel(monkeypatch):
    # The package exports a function of the module's name, which hides the module.
    monkeypatch.setattr(sys.modules[gibbs_lanes.__module__], "LARGEST_DEGREE", 2)
    lane_betas = np.array([1.0])
    check_against_twin(GRAPH, lane_betas, K, 2, KEY, [0], two_classes=False)


def test_settling_every_lane_by_64_bits_changes_nothing(monkeypatch):
    graph, lane_betas = random_graph(200, 20, seed=9), np.linspace(0.0, 4.0, LANES)
    arguments = dict(n_sweeps=100, n_warmup=0, key=KEY)
    labels, info = gibbs_lanes(graph, lane_betas, 7, 2, **arguments)

    def all_close(strengths, largest):
        constants, thresholds, _ = _lane_constants(strengths, largest)
        return constants, thresholds, 32767

    monkeypatch.setattr(gibbs_lanes_two, "_lane_constants", all_close)
    settled, settled_info = gibbs_lanes(graph, lane_betas, 7, 2, **arguments)
    np.testing.assert_array_equal(labels, settled)
    np.testing.assert_array_equal(info.agreement, settled_info.agreement)


def test_more_classes_than_a_byte_holds():
    check_against_twin(random_graph(20, 3, seed=1), np.array([2.0]), 3, 300, KEY, [0])


@kernel
def _count_wrong(constants, thresholds, slack):
    """Lanes decided by 16 bits against the exact threshold, over every half-word and field."""
    largest = thresholds.shape[1] - 1
    labels = np.empty(64, np.uint8)
    wrong, n_close = 0, 0
    for difference in range(-largest, largest + 1):
        for half in range(65536):
            new, close = _compare(
                _filled(difference, 16, 64), _filled(half, 16, 64), constants, slack
            )
            _store(labels, 0, new)
            smallest = np.uint64(half) << np.uint64(48)
            greatest = smallest | np.uint64(2**48 - 1)
            for lane in range(64):
                if (close >> np.uint64(lane)) & np.uint64(1):
                    n_close += 1
                    continue
                if difference >= 0:
                    first = smallest < thresholds[lane, difference]
                    last = greatest < thresholds[lane, difference]
                else:
                    first = ~smallest >= thresholds[lane, -difference]
                    last = ~greatest >= thresholds[lane, -difference]
                if labels[lane] != first or labels[lane] != last:
                    wrong += 1
    return wrong, n_close / (65536 * 64 * (2 * largest + 1))


@pytest.mark.parametrize(
    ("strengths", "largest"),
    [
        (np.geomspace(1e-4, 1.0, LANES), 9),
        (np.linspace(0.0, 4.0, LANES) / 3, 11),
        (np.linspace(0.0, 40.0, LANES), 4),
    ],
)
def test_no_half_word_is_decided_wrongly(strengths, largest):
    constants, thresholds, slack = _lane_constants(strengths, largest)
    wrong, close = _count_wrong(constants, thresholds, slack)
    assert wrong == 0
    assert close < 0.02
    # The mutant that trusts the approximation is caught.
    wrong, _ = _count_wrong(constants, thresholds, 0)
    assert wrong > 0


@pytest.mark.parametrize("largest", [1, 40, 1000, 32767])
def test_slack_stays_small(largest):
    for strengths in (np.linspace(0, 4, LANES), np.linspace(0, 4, LANES) / 100):
        _, _, slack = _lane_constants(strengths, largest)
        assert slack < 64


def p_value_of_law(n_classes, class_weight=None):
    """P-value function: the last labels of many chains of one beta against enumeration."""
    _, _, law = enumerate_law(GRAPH, 1.0, K, n_classes, class_weight)

    def p_value(n_draws, seed):
        labels, _ = gibbs_lanes(
            GRAPH, np.ones(n_draws), K, n_classes, n_sweeps=1, n_warmup=60,
            class_weight=class_weight, key=spawn_keys(seed, 1)[0],
        )  # fmt: skip
        counts = np.bincount(index_of(labels, n_classes), minlength=len(law))
        return p_value_of_counts(counts, law)

    return p_value


@pytest.mark.parametrize(
    ("n_classes", "class_weight"), [(2, None), (3, None), (2, np.array([0.7, 1.4]))]
)
def test_law(n_classes, class_weight):
    check(p_value_of_law(n_classes, class_weight), 10_000)


def p_value_of_means(n_classes, factor=1.0):
    """P-value function: each lane's mean of S at its own beta, from sweeps 40 apart."""
    lane_betas = np.linspace(0.0, 1.2, 50)
    moments = []
    for beta in lane_betas:
        _, agreement, law = enumerate_law(GRAPH, beta, K, n_classes)
        moments.append((law @ agreement, np.sqrt(law @ agreement**2 - (law @ agreement) ** 2)))
    means, deviations = np.array(moments).T

    def p_value(n_draws, seed):
        _, info = gibbs_lanes(
            GRAPH, factor * lane_betas, K, n_classes, n_sweeps=40 * n_draws,
            key=spawn_keys(seed, 1)[0],
        )  # fmt: skip
        apart = info.agreement[::40]
        return p_value_of_z((apart.mean(axis=0) - means) / deviations * np.sqrt(len(apart)))

    return p_value


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_lane_has_its_own_beta(n_classes):
    check(p_value_of_means(n_classes), 1500)
    assert rejects(p_value_of_means(n_classes, factor=1.1), 1500)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_on_a_ring(n_classes):
    def p_value(n_draws, seed):
        _, info = gibbs_lanes(
            ring(60), np.ones(LANES), 1, n_classes, n_sweeps=n_draws, key=spawn_keys(seed, 1)[0]
        )
        exact = ring_mean_agreement(60, 1.0, n_classes)
        return stats.ttest_1samp(info.mean_agreement, exact).pvalue

    check(p_value, 2000)


@pytest.mark.parametrize(("n_classes", "beta"), [(2, 1.0), (3, 0.8)])
def test_mean_on_ripleys_graph(n_classes, beta):
    graph = NeighborGraph.from_points(load_ripley().X_train, 3)
    exact = expected_agreement_exact(graph, beta, 3, n_classes)

    def p_value(n_draws, seed):
        _, info = gibbs_lanes(
            graph, np.full(LANES, beta), 3, n_classes, n_sweeps=n_draws, key=spawn_keys(seed, 1)[0]
        )
        return stats.ttest_1samp(info.mean_agreement, exact).pvalue

    check(p_value, 1000)


def p_value_of_independence(run):
    """P-value function: correlations between the S of every pair of lanes."""

    def p_value(n_draws, seed):
        apart = run(40 * n_draws, spawn_keys(seed, 1)[0])[::40]
        scores = (apart - apart.mean(axis=0)) / apart.std(axis=0)
        correlations = (scores.T @ scores / len(apart))[np.triu_indices(apart.shape[1], 1)]
        return p_value_of_z(np.arctanh(np.clip(correlations, -0.999, 0.999)) * len(apart) ** 0.5)

    return p_value


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lanes_are_independent(n_classes):
    def run(n_sweeps, key):
        _, info = gibbs_lanes(GRAPH, np.full(80, 0.8), K, n_classes, n_sweeps=n_sweeps, key=key)
        return info.agreement

    check(p_value_of_independence(run), 1000)


def test_lanes_that_share_numbers_are_rejected():
    def run(n_sweeps, key):
        arguments = dict(n_sweeps=n_sweeps, key=key)
        alone = [gibbs_lanes(GRAPH, [b], K, 2, **arguments)[1].agreement for b in (0.7, 0.8)]
        return np.hstack(alone)

    assert rejects(p_value_of_independence(run), 1000)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_and_company_do_not_change_a_chain(n_classes):
    graph = random_graph(30, 6, seed=4)
    lane_betas = np.linspace(0.1, 3.0, 150)
    arguments = dict(n_sweeps=20, n_warmup=5, key=KEY)
    labels, info = gibbs_lanes(graph, lane_betas, 4, n_classes, **arguments)
    threaded, _ = gibbs_lanes(graph, lane_betas, 4, n_classes, n_threads=3, **arguments)
    np.testing.assert_array_equal(labels, threaded)
    fewer, fewer_info = gibbs_lanes(graph, lane_betas[:70], 4, n_classes, **arguments)
    np.testing.assert_array_equal(labels[:70], fewer)
    np.testing.assert_array_equal(info.agreement[:, :70], fewer_info.agreement)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_initial_labels(n_classes):
    graph = random_graph(30, 6, seed=4)
    arguments = dict(n_sweeps=3, n_warmup=0, key=KEY)
    same = np.ones(30, int)
    labels, info = gibbs_lanes(graph, np.full(70, 900.0), 4, n_classes, initial=same, **arguments)
    assert np.all(labels == 1)
    assert np.all(info.agreement == 4 * 30)
    each = np.repeat(np.arange(70) % 2, 30).reshape(70, 30)
    labels, _ = gibbs_lanes(graph, np.full(70, 900.0), 4, n_classes, initial=each, **arguments)
    np.testing.assert_array_equal(labels, each)


def test_info():
    _, info = gibbs_lanes(GRAPH, np.array([0.5, 1.0]), K, 2, n_sweeps=400, n_warmup=10, key=KEY)
    assert info.n_sweeps == 410
    np.testing.assert_allclose(info.mean_agreement, info.agreement.mean(axis=0))
    np.testing.assert_allclose(info.variance_agreement, info.agreement.var(axis=0))
    expected = np.sqrt(info.variance_agreement * info.autocorrelation_time / 400)
    np.testing.assert_allclose(info.standard_error, expected)


def test_constants_are_what_the_module_says():
    # The cubic in units of 2**-16 is within five units of 2**-f.
    fraction = np.arange(0, 65536, 16)
    fall = gibbs_lanes_two._C2 - (fraction * gibbs_lanes_two._C3 >> 16)
    fall = gibbs_lanes_two._C1 - (fraction * fall >> 16)
    power = 65535 - (fraction * fall >> 16)
    assert np.abs(power - 65536 * 2.0 ** -(fraction / 65536)).max() < 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"betas": [-1.0]}, "betas"),
        ({"betas": [np.nan]}, "betas"),
        ({"betas": []}, "betas is empty"),
        ({"k": 0}, "k must be"),
        ({"n_classes": 1}, "n_classes"),
        ({"n_sweeps": 0}, "n_sweeps"),
        ({"n_warmup": -1}, "n_warmup"),
        ({"class_weight": [1.0]}, "class_weight"),
        ({"initial": [9, 0, 0, 0, 0]}, "labels"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {
        "betas": [1.0], "k": 1, "n_classes": 3, "n_sweeps": 2, "key": np.uint64(1), **change
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        gibbs_lanes(ring(5), **arguments)
