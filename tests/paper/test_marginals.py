"""Tests of the figures that compare the marginals of several posteriors."""

import numpy as np
import pytest

from bayesknn.paper import REGISTRY
from bayesknn.paper.samples import exact_posterior
from bayesknn.paper.setting import Setting


@pytest.fixture(scope="module")
def setting():
    return Setting("tiny", n_jobs=1)


def test_marginals_share_axes_and_end_where_they_vanish(setting):
    (figure,) = REGISTRY["fig:pseudoB"].function(setting).figures
    beta, k = figure.axes
    names = ["exact", "pseudo-likelihood", "path sampling", "perfect draws"]
    assert [text.get_text() for text in beta.get_legend().get_texts()] == names
    assert (beta.get_xlabel(), k.get_xlabel()) == (r"$\beta$", "k")
    for ax in (beta, k):
        assert len({str(line.get_linestyle()) for line in ax.lines}) == 4
    every_k, drawn = k.lines[0].get_data()
    expected = exact_posterior(setting).k_probabilities
    np.testing.assert_allclose(drawn, expected[every_k - 1])
    # The curve extends one value of k beyond those with more than 0.1 % of the largest probability.
    visible = np.flatnonzero(expected > 1e-3 * expected.max()) + 1
    assert (every_k[0], every_k[-1]) == (max(visible[0] - 1, 1), visible[-1] + 1)


def test_the_panels_at_fixed_k_are_those_of_beta(setting):
    (figure,) = REGISTRY["fig:pseudoA"].function(setting).figures
    assert [ax.get_title() for ax in figure.axes] == ["k = 1", "k = 10", "k = 70", "k = 125"]
    assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes} == {(r"$\beta$", "density")}
