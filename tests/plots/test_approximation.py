"""Several posteriors in one picture."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesknn.plots import ApproximationDisplay

from .test_posterior import chain_tree, normal_grid


def test_marginals_stand_on_common_axes():
    posteriors = {"grid": normal_grid(), "chains": chain_tree()}
    display = ApproximationDisplay.from_posteriors(posteriors, n_bins=40)
    assert display.k_values.tolist() == list(range(1, 12))
    np.testing.assert_allclose(display.k_probabilities["grid"][[1, 3]], [0.3, 0.7])
    widths = np.diff(display.beta_edges)
    for name, density in display.beta_densities.items():
        assert np.sum(density * widths) == pytest.approx(1, abs=1e-3), name
        assert display.k_probabilities[name].sum() == pytest.approx(1)
    legend = display.axes_[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["grid", "chains"]


def test_lines_are_the_marginals_without_their_empty_ends():
    display = ApproximationDisplay(
        [0, 1, 2, 3],
        {"a": [0.25, 0.75, 0.0], "b": [0.0, 0.0, 1.0]},
        [4, 5, 6, 7],
        {"a": [0.0, 0.5, 0.5, 0.0], "b": [0.0, 0.0, 0.0, 1.0]},
    ).plot()
    beta, k = (
        [np.transpose(line.get_xydata()).tolist() for line in ax.lines] for ax in display.axes_
    )
    assert beta == [[[0.5, 1.5, 2.5], [0.25, 0.75, 0.0]], [[1.5, 2.5], [0.0, 1.0]]]
    assert k == [[[4, 5, 6, 7], [0, 0.5, 0.5, 0]], [[6, 7], [0, 1]]]
    first, second = display.axes_[0].lines
    assert first.get_linestyle() != second.get_linestyle()


def test_one_parameter_on_given_axes():
    ax = Figure().subplots()
    display = ApproximationDisplay.from_posteriors(
        {"grid": normal_grid()}, parameters=["beta"], axes=ax
    )
    assert display.axes_.tolist() == [ax]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"$\beta$", "density")


def test_a_fitted_classifier_is_a_posterior_too(clf):
    display = ApproximationDisplay.from_posteriors({"pseudo": clf})
    np.testing.assert_array_equal(display.k_probabilities["pseudo"], clf.k_probabilities_)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="name different posteriors"):
        ApproximationDisplay([0, 1], {"a": [1]}, [1], {"b": [1]})
    with pytest.raises(ValueError, match="'a' does not fit beta_edges and k_values"):
        ApproximationDisplay([0, 1], {"a": [1]}, [1, 2], {"a": [1]})
    with pytest.raises(ValueError, match="from 1 to 8 posteriors can be told apart, got 9"):
        many = {str(i): [1] for i in range(9)}
        ApproximationDisplay([0, 1], many, [1], many)
    with pytest.raises(ValueError, match="no posteriors to compare"):
        ApproximationDisplay.from_posteriors({})
    display = ApproximationDisplay([0, 1], {"a": [1]}, [1], {"a": [1]})
    with pytest.raises(ValueError, match="parameters must be taken from"):
        display.plot(parameters=["theta"])
