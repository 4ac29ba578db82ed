"""Class probabilities of two methods against each other."""

import numpy as np
import pytest

from bayesknn.plots import ProbabilityComparisonDisplay


def test_two_classes_are_one_cloud(ax):
    first, second = np.array([0.1, 0.4, 0.8]), np.array([0.2, 0.6, 0.7])
    display = ProbabilityComparisonDisplay(
        np.column_stack([1 - first, first]),
        np.column_stack([1 - second, second]),
        ["no", "yes"],
        ("ours", "theirs"),
    ).plot(ax=ax)
    identity, *_, cloud = ax.lines
    np.testing.assert_array_equal(identity.get_xdata(), identity.get_ydata())
    np.testing.assert_array_equal(cloud.get_xydata(), np.column_stack([first, second]))
    assert display.n_different == 1
    assert ax.get_title() == "1 of 3 points change class"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("P(class yes), ours", "P(class yes), theirs")


def test_more_classes_are_a_cloud_each(ax):
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(3), (2, 20))
    display = ProbabilityComparisonDisplay(first, second).plot(ax=ax)
    for g, cloud in enumerate(ax.lines[1:]):
        np.testing.assert_array_equal(cloud.get_xydata().T, [first[:, g], second[:, g]])
    assert len({cloud.get_marker() for cloud in ax.lines[1:]}) == 3
    assert display.n_different == np.sum(first.argmax(axis=1) != second.argmax(axis=1))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"same points and classes, got shapes \(1, 2\) and \(2,"):
        ProbabilityComparisonDisplay([[0.5, 0.5]], np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(2,\)"):
        ProbabilityComparisonDisplay([0.5, 0.5], [0.5, 0.5])
