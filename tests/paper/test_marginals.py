"""Several posteriors in one picture."""

import numpy as np
from matplotlib.figure import Figure

from bayesknn.paper.approximations import draw_marginals
from tests.plots.test_posterior import chain_tree, normal_grid


def test_marginals_stand_on_common_axes_without_their_empty_ends():
    beta, k = Figure().subplots(2)
    draw_marginals({"grid": normal_grid(), "chains": chain_tree()}, beta, k)
    assert [text.get_text() for text in beta.get_legend().get_texts()] == ["grid", "chains"]
    assert (beta.get_xlabel(), k.get_xlabel()) == (r"$\beta$", "k")
    for ax in (beta, k):
        first, second = ax.lines
        assert first.get_linestyle() != second.get_linestyle()
    probabilities = dict(np.transpose(k.lines[0].get_data()))
    np.testing.assert_allclose([probabilities[2], probabilities[4]], [0.3, 0.7])
    assert max(probabilities) <= 5


def test_one_panel_is_that_of_beta():
    ax = Figure().subplots()
    draw_marginals({"grid": normal_grid()}, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"$\beta$", "density")
