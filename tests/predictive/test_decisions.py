"""Zones, decisions and scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesknn.predictive import decide, find_zones, log_score

unit = st.floats(0, 1)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5), st.just(2)), elements=unit)
)
def test_a_zone_is_the_class_above_all_others(ends):
    ends = np.sort(ends, axis=2)
    zones = find_zones(ends)
    assert zones.dtype == np.int64
    for row, zone in zip(ends, zones, strict=True):
        above = [
            g
            for g in range(len(row))
            if all(row[g, 0] > row[h, 1] for h in range(len(row)) if h != g)
        ]
        assert above == ([] if zone == -1 else [zone])


@given(st.lists(st.tuples(unit, unit), min_size=1))
def test_for_two_classes_the_border_is_one_half(pairs):
    lower = np.minimum(*np.array(pairs).T)
    upper = np.maximum(*np.array(pairs).T)
    mirrored = np.stack([np.stack([1 - upper, 1 - lower], 1), np.stack([lower, upper], 1)], 1)
    zones = find_zones(mirrored)
    for low, high, zone in zip(lower, upper, zones, strict=True):
        if min(abs(low - 0.5), abs(high - 0.5)) > 1e-12:
            assert zone == (1 if low > 0.5 else 0 if high < 0.5 else -1)


def test_without_a_loss_the_most_probable_class_is_taken():
    decisions, expected = decide([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])
    assert decisions.tolist() == [1, 0, 2] and decisions.dtype == np.int64
    assert np.allclose(expected, [0.5, 0.6, 0.0])


@given(arrays(np.float64, (5, 3), elements=st.floats(0.01, 1)))
def test_the_default_is_the_matrix_of_ones_off_the_diagonal(values):
    chances = values / values.sum(axis=1, keepdims=True)
    assert np.allclose(decide(chances)[1], decide(chances, 1 - np.eye(3))[1], atol=1e-12)


def test_a_loss_matrix_moves_the_border_and_may_offer_to_abstain():
    chances = [[0.95, 0.05], [0.6, 0.4], [0.02, 0.98]]
    decisions, expected = decide(chances, [[0, 1], [1, 0], [0.1, 0.1]])
    assert decisions.tolist() == [0, 2, 1]
    assert np.allclose(expected, [0.05, 0.1, 0.02])
    assert decide([[0.75, 0.25]], [[0, 10], [1, 0]])[0].tolist() == [1]
    assert decide([[0.5, 0.5]], [[1, 1], [1, 1]])[0].tolist() == [0]


def test_the_log_score_is_the_mean_log_probability():
    chances = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    score = log_score(chances, [0, 1, 0])
    assert math.isclose(score, (math.log(0.5) + math.log(0.8) + math.log(0.9)) / 3)
    assert log_score([[1.0, 0.0]], [1]) == -math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_zones(np.zeros((3, 2))), r"shape \(m, n_classes, 2\), got \(3, 2\)"),
        (lambda: decide([0.5, 0.5]), r"shape \(m, n_classes\), got \(2,\)"),
        (lambda: decide([[0.5, np.nan]]), "got nan in row 0, class 1"),
        (lambda: decide([[0.5, 0.5]], [[0, 1, 2]]), "2 columns, one for each class"),
        (lambda: decide([[0.5, 0.5]], [0, 1]), "2 columns, one for each class"),
        (lambda: decide([[0.5, 0.5]], [[0, 1], [np.inf, 0]]), "got inf for decision 1 and class 0"),
        (lambda: log_score([[0.5, 0.5]], [2]), r"labels must lie in 0..1 .*, got 2"),
        (lambda: log_score([[0.5, 0.5]], [-1]), r"labels must lie in 0..1 .*, got -1"),
        (lambda: log_score([[0.5, 0.5]], [0, 1]), "one label for each of the 1 points"),
        (lambda: log_score([[0.5, 0.5]], ["a"]), "labels must be integers"),
        (lambda: log_score(np.empty((0, 2)), np.empty(0, int)), "no label to score"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
