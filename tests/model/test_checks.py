"""What the functions of the model accept, and what their errors say."""

import numpy as np
import pytest

from bayesknn.labels import sample_labels
from bayesknn.likelihood import log_pseudo_likelihood
from bayesknn.model import log_normalizer_exact
from tests.model.graphs import ring

RING = ring(3)


@pytest.mark.parametrize(
    ("beta", "message"),
    [
        (-0.5, "beta must be at least 0, got -0.5"),
        (np.nan, "beta must be finite, got nan"),
        (np.inf, "beta must be finite, got inf"),
        ("strong", "beta must be numeric, got 'strong'"),
        ([1.0, 2.0], r"beta must be one number, got an array of shape \(2,\)"),
    ],
)
def test_bad_beta(beta, message):
    with pytest.raises(ValueError, match=message):
        sample_labels(RING, beta, 1, 2)


def test_betas_keep_their_shape_and_name_the_bad_one():
    assert log_normalizer_exact(RING, [[0, 1], [2, 3]], 1, 2).shape == (2, 2)
    with pytest.raises(ValueError, match=r"beta must be at least 0, got -2\.0"):
        log_normalizer_exact(RING, [1, -2], 1, 2)


@pytest.mark.parametrize("n_classes", [1, 0, -3, 2.0, "two", None, True])
def test_bad_n_classes(n_classes):
    with pytest.raises(ValueError, match="n_classes must be"):
        log_normalizer_exact(RING, 1.0, 1, n_classes)


@pytest.mark.parametrize("three", [np.uint8(3), np.array(3)])
def test_numpy_integers_are_integers(three):
    assert sample_labels(RING, 1.0, 1, 2, n_draws=three, random_state=0).shape == (3, 3)


@pytest.mark.parametrize("value", [True, np.True_, 2.0, np.float64(2), "2", None, [2], np.ones(2)])
def test_what_only_looks_like_a_count_is_refused(value):
    with pytest.raises(ValueError, match="n_draws must be an integer >= 1, got "):
        sample_labels(RING, 1.0, 1, 2, n_draws=value)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"must hold 2 numbers, one for each class, got an array of shape \(1,\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        ([1.0, 0.0], "finite and positive, got 0.0 for class 1"),
        ([-1.0, 1.0], "finite and positive, got -1.0 for class 0"),
        ([1.0, np.nan], "finite and positive, got nan for class 1"),
        ("balanced", "class_weight must be numeric, got 'balanced'"),
        ({0: 1.0, 1: 2.0}, "class_weight must be numeric, got {0: 1.0, 1: 2.0}"),
    ],
)
def test_bad_class_weight(weights, message):
    with pytest.raises(ValueError, match=message):
        log_normalizer_exact(RING, 1.0, 1, 2, weights)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "one label for each of the 3 points, got 2"),
        ([0, 1, 2], r"must lie in 0..1 \(2 classes\), got 2 at position 2"),
        ([0, -1, 1], r"must lie in 0..1 \(2 classes\), got -1 at position 1"),
        ([0, 0.5, 1], "must be integers, got 0.5 at position 1"),
        ([0, np.nan, 1], "must be integers, got nan at position 1"),
        (["a", "b", "a"], "must be integers 0, 1, 2, ..., got dtype <U1"),
        ([[0, 1, 1]], r"must be one-dimensional, got shape \(1, 3\)"),
        (1, r"must be one-dimensional, got shape \(\)"),
    ],
)
def test_bad_label_vector(labels, message):
    with pytest.raises(ValueError, match=message):
        log_pseudo_likelihood(RING, labels, 1.0, 1, 2)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint32, np.float32])
def test_labels_may_be_of_any_number_type(dtype):
    labels = [0, 1, 1]
    found = log_pseudo_likelihood(RING, np.array(labels, dtype=dtype), 1.0, 1, 2)
    assert found == pytest.approx(log_pseudo_likelihood(RING, labels, 1.0, 1, 2))


def test_more_than_256_classes():
    assert sample_labels(RING, 0.0, 1, 256, random_state=0).dtype == np.uint8
    assert sample_labels(RING, 0.0, 1, 257, random_state=0).max() < 257
