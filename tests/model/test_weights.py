"""Class weights a_g."""

import numpy as np
import pytest

from bayesknn.model import class_weights


def test_true_frequencies_give_weight_one():
    labels = [0, 0, 0, 1, 2, 2]
    np.testing.assert_allclose(class_weights(labels, [1 / 2, 1 / 6, 1 / 3], range(3)), 1)


def test_the_frequencies_of_the_sample_give_exactly_one():
    """Weights of 1 plus a rounding error would be unequal weights, which another sampler serves."""
    for n in range(20, 90):
        labels = np.unique(np.arange(n) ** 2 % 7 % 5, return_inverse=True)[1]
        frequencies = np.bincount(labels) / n
        weights = class_weights(labels, frequencies, classes=range(len(frequencies)))
        np.testing.assert_array_equal(weights, 1.0)


def test_weights_are_p_n_over_n_g():
    labels = np.array([1, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(
        class_weights(labels, [0.5, 0.5], [0, 1]), [0.5 * 8 / 6, 0.5 * 8 / 2]
    )


def test_a_mapping_by_class_name():
    labels = [0, 1, 1]
    by_name = class_weights(labels, {"yes": 0.25, "no": 0.75}, classes=["no", "yes"])
    np.testing.assert_array_equal(by_name, class_weights(labels, [0.75, 0.25], [0, 1]))
    by_number = class_weights(labels, {1: 0.25, 0: 0.75}, [0, 1])
    np.testing.assert_array_equal(by_number, by_name)
    of_numpy = class_weights(labels, {"yes": 0.25, "no": 0.75}, classes=np.array(["no", "yes"]))
    np.testing.assert_array_equal(of_numpy, by_name)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.6], r"must sum to 1, got 1\.1"),
        ([1.0, 0.0], "must be positive, got 0.0 for class 1"),
        ([1.5, -0.5], "must be positive, got -0.5 for class 1"),
        ([np.nan, 0.5], "must be positive, got nan for class 0"),
        (
            [0.2, 0.3, 0.5],
            r"must hold 2 frequencies, one for each class, got an array of shape \(3,\)",
        ),
        (0.5, "must hold 2 frequencies"),
        ("even", "class_prior must be numeric, got 'even'"),
        ({0: 0.5}, "class_prior has no entry for class 1"),
        (
            {0: 0.5, 1: 0.3, 2: 0.2},
            r"has an entry for 2, which is not a class; the classes are \[0, 1\]",
        ),
    ],
)
def test_bad_class_prior(prior, message):
    with pytest.raises(ValueError, match=message):
        class_weights([0, 1, 1], prior, [0, 1])


def test_a_class_without_points_is_named():
    with pytest.raises(ValueError, match="class 'b' has no points"):
        class_weights([0, 2], np.full(3, 1 / 3), ["a", "b", "c"])
