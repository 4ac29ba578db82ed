"""Several posteriors in one picture."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesknn.plots import ApproximationDisplay
from bayesknn.plots.marginals import Marginals

from .test_posterior import chain_tree, normal_grid


def test_marginals_stand_on_common_axes():
    posteriors = {"grid": normal_grid(), "chains": chain_tree()}
    display = ApproximationDisplay.from_posteriors(posteriors, n_bins=40)
    grid, chains = display.marginals.values()
    np.testing.assert_allclose(grid.k_probabilities[[1, 3]], [0.3, 0.7])
    np.testing.assert_array_equal(grid.beta_edges, chains.beta_edges)
    for each in (grid, chains):
        assert np.sum(each.beta_density * np.diff(each.beta_edges)) == pytest.approx(1, abs=1e-3)
        assert each.k_probabilities.sum() == pytest.approx(1)
    legend = display.axes_[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["grid", "chains"]


def marginals(density=(1.0,), probabilities=(1.0,)):
    edges, ks = np.arange(len(density) + 1.0), 4 + np.arange(len(probabilities))
    return Marginals(edges, np.array(density), ks, np.array(probabilities), None)


def test_lines_are_the_marginals_without_their_empty_ends():
    both = {
        "a": marginals([0.25, 0.75, 0.0], [0.0, 0.5, 0.5, 0.0]),
        "b": marginals([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]),
    }
    display = ApproximationDisplay(both).plot()
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
    np.testing.assert_array_equal(display.marginals["pseudo"].k_probabilities, clf.k_probabilities_)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="from 1 to 8 posteriors can be told apart, got 9"):
        ApproximationDisplay({str(i): marginals() for i in range(9)})
    with pytest.raises(ValueError, match="no posteriors to compare"):
        ApproximationDisplay.from_posteriors({})
    with pytest.raises(ValueError, match="parameters must be taken from"):
        ApproximationDisplay({"a": marginals()}).plot(parameters=["theta"])
