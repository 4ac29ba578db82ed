"""Checks on arguments: what is accepted, and what the errors say."""

import numpy as np
import pytest

from bayesknn._utils.checks import (
    check_count,
    check_label_draws,
    check_label_vector,
    label_dtype,
)
from bayesknn.model.checks import (
    check_beta,
    check_betas,
    check_class_weight,
    check_n_classes,
)


@pytest.mark.parametrize(
    ("beta", "message"),
    [
        (-0.5, "beta must be at least 0, got -0.5"),
        (np.nan, "beta must be finite, got nan"),
        (np.inf, "beta must be finite, got inf"),
        ("strong", "beta must be a number, got 'strong'"),
        ([1.0, 2.0], r"beta must be one number, got an array of shape \(2,\)"),
    ],
)
def test_bad_beta(beta, message):
    with pytest.raises(ValueError, match=message):
        check_beta(beta)


def test_betas_keep_their_shape_and_name_the_bad_one():
    assert check_betas([[0, 1], [2, 3]]).shape == (2, 2)
    with pytest.raises(ValueError, match=r"beta_max must be at least 0, got -2\.0"):
        check_betas([1, -2], name="beta_max")


@pytest.mark.parametrize("n_classes", [1, 0, -3, 2.0, "two", None, True])
def test_bad_n_classes(n_classes):
    with pytest.raises(ValueError, match="n_classes must be"):
        check_n_classes(n_classes)


@pytest.mark.parametrize("three", [np.uint8(3), np.array(3)])
def test_numpy_integers_are_integers(three):
    count = check_count(three, "n")
    assert count == 3
    assert type(count) is int


@pytest.mark.parametrize("value", [True, np.True_, 2.0, np.float64(2), "2", None, [2], np.ones(2)])
def test_what_only_looks_like_a_count_is_refused(value):
    with pytest.raises(ValueError, match="n must be an integer in 0..9, got "):
        check_count(value, "n", 0, 9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"must hold 2 numbers, one for each class, got an array of shape \(1,\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        ([1.0, 0.0], "finite and positive, got 0.0 for class 1"),
        ([-1.0, 1.0], "finite and positive, got -1.0 for class 0"),
        ([1.0, np.nan], "finite and positive, got nan for class 1"),
        ("balanced", "must be None or 2 numbers"),
        ({0: 1.0, 1: 2.0}, "must be None or 2 numbers"),
    ],
)
def test_bad_class_weight(weights, message):
    with pytest.raises(ValueError, match=message):
        check_class_weight(weights, n_classes=2)


def test_no_class_weight():
    assert check_class_weight(None, n_classes=2) is None


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
        check_label_vector(labels, n_points=3, n_classes=2)


def test_bad_label_in_a_batch_is_located():
    with pytest.raises(ValueError, match="got 7 at position 0 of draw 1"):
        check_label_draws([[0, 1], [7, 0]], n_points=2, n_classes=2)
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\) or \(n_draws, 2\)"):
        check_label_draws(np.zeros((1, 1, 2), int), n_points=2, n_classes=2)
    with pytest.raises(ValueError, match="be 0 or more, got -1 at position 1"):
        check_label_draws([0, -1], n_points=2)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint32, np.float32])
def test_labels_of_any_number_type_become_unsigned(dtype):
    labels = check_label_vector(np.array([0, 1, 1], dtype=dtype), n_points=3, n_classes=2)
    assert labels.dtype == np.uint8
    assert labels.tolist() == [0, 1, 1]


def test_more_than_256_classes():
    assert label_dtype(256) is np.uint8
    assert check_label_draws([0, 300], n_points=2).dtype == np.uint32


def test_an_empty_batch_is_a_batch():
    assert check_label_draws(np.zeros((0, 3), int), n_points=3, n_classes=2).shape == (0, 3)
