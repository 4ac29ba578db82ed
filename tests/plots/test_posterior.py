"""Tests of the figures of the marginals and traces of (beta, k)."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.exceptions import MixingWarning
from bayesknn.plots import PosteriorDisplay
from bayesknn.posterior import GridPosterior, make_tree


def normal_grid(n_replicates=0):
    """Return a grid posterior with normal distributions of beta at k = 2 and at k = 4."""
    centres, masses = np.array([1.0, 2.0]), np.array([0.3, 0.7])
    betas = centres[:, None] + np.linspace(-0.6, 0.6, 161)
    weights = norm.pdf(betas, centres[:, None], 0.1)
    weights[:, [0, -1]] /= 2
    weights *= (masses / weights.sum(axis=1))[:, None]
    replicates = np.array([weights, weights[::-1]])[:n_replicates]
    return GridPosterior(np.array([2, 4]), betas, weights, replicates.reshape(-1, 2, 161), k_max=5)


def chain_tree(algorithm=None):
    rng = np.random.default_rng(0)
    draws = {"beta": rng.normal(1.5, 0.1, (3, 400)), "k": rng.integers(7, 12, (3, 400))}
    return make_tree(draws, attrs={"algorithm": algorithm} if algorithm else None)


def test_marginal_of_beta_on_a_grid_is_the_mixture():
    marginals = PosteriorDisplay.from_posterior(normal_grid())
    edges = marginals.beta_edges
    cdf = 0.3 * norm.cdf(edges, 1.0, 0.1) + 0.7 * norm.cdf(edges, 2.0, 0.1)
    np.testing.assert_allclose(marginals.beta_density * np.diff(edges), np.diff(cdf), atol=1e-4)
    assert marginals.k_values.tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(marginals.k_probabilities, [0, 0.3, 0, 0.7, 0])
    assert marginals.k_errors is None


def test_mass_at_the_end_of_a_grid_is_not_lost():
    weights = np.full((1, 161), 1 / 160)
    weights[0, [0, -1]] /= 2
    grid = GridPosterior(
        np.array([1]), np.linspace(0, 4, 161)[None], weights, np.empty((0, 1, 161)), k_max=1
    )
    marginals = PosteriorDisplay.from_posterior(grid)
    np.testing.assert_allclose(marginals.beta_edges[[0, -1]], [0, 4])
    np.testing.assert_allclose(marginals.beta_density, 0.25)


def test_marginals_of_a_grid_carry_its_error():
    marginals = PosteriorDisplay.from_posterior(normal_grid(2))
    np.testing.assert_allclose(marginals.k_errors, [0, 0.2, 0, 0.2, 0])


def test_range_of_beta_covers_nearly_all_of_the_posterior():
    low, high = PosteriorDisplay.from_posterior(normal_grid()).beta_edges[[0, -1]]
    assert 0.5 < low < 0.75 and 2.3 < high < 2.5


def test_marginals_of_draws_are_their_histograms():
    tree = chain_tree()
    beta, k = tree["posterior"]["beta"].to_numpy(), tree["posterior"]["k"].to_numpy()
    marginals = PosteriorDisplay.from_posterior(tree)
    expected, _ = np.histogram(beta, marginals.beta_edges, density=True)
    np.testing.assert_allclose(marginals.beta_density, expected)
    assert marginals.k_values.tolist() == [7, 8, 9, 10, 11]
    np.testing.assert_allclose(marginals.k_probabilities, [np.mean(k == j) for j in range(7, 12)])


def test_a_chain_that_never_moved_is_one_bin():
    tree = make_tree({"beta": np.full((1, 5), 1.0), "k": np.full((1, 5), 3)})
    display = PosteriorDisplay.from_posterior(tree)
    assert len(display.beta_density) == 1
    assert (display.k_values.tolist(), display.k_probabilities.tolist()) == ([3], [1.0])


def test_chains_are_drawn_with_their_traces():
    tree = chain_tree()
    display = PosteriorDisplay.from_posterior(tree)
    assert display.axes_.shape == (2, 2)
    for ax, name in zip(display.axes_[:, 0], ("beta", "k"), strict=True):
        drawn = np.array([line.get_ydata() for line in ax.lines])
        np.testing.assert_array_equal(drawn, tree["posterior"][name])
    bars = display.axes_[1, 1].patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], display.k_probabilities)
    np.testing.assert_allclose(
        [bar.get_y() + bar.get_height() / 2 for bar in bars], display.k_values
    )
    assert display.axes_[0, 0].get_ylim() == display.axes_[0, 1].get_ylim()


def test_a_grid_is_drawn_without_traces_and_with_errors():
    axes = Figure().subplots(1, 2)
    display = PosteriorDisplay.from_posterior(normal_grid(2), axes=axes)
    assert display.axes_.ravel().tolist() == axes.tolist()
    outline = axes[0].patches[-1].get_data()
    np.testing.assert_array_equal(outline.values, display.beta_density)
    np.testing.assert_array_equal(outline.edges, display.beta_edges)
    np.testing.assert_allclose([bar.get_height() for bar in axes[1].patches], [0, 0.3, 0, 0.7, 0])
    segments = axes[1].collections[0].get_segments()
    np.testing.assert_allclose(segments[3], [[4, 0.5], [4, 0.9]])
    assert axes[1].get_xlim() == (1.0, 5.0)
    assert axes[1].get_ylim()[1] > 0.9


def test_traces_are_drawn_where_there_are_chains():
    assert PosteriorDisplay.from_posterior(chain_tree("grid")).beta_trace is None
    assert PosteriorDisplay.from_posterior(chain_tree("grid"), traces=True).axes_.shape == (2, 2)
    assert PosteriorDisplay.from_posterior(chain_tree(), traces=False).axes_.shape == (1, 2)


def test_the_posterior_of_a_classifier(clf):
    display = PosteriorDisplay.from_estimator(clf)
    np.testing.assert_array_equal(display.k_probabilities, clf.k_probabilities_)
    np.testing.assert_array_equal(display.k_errors, clf.k_probabilities_error_)
    assert display.beta_trace is None
    middles = (display.beta_edges[1:] + display.beta_edges[:-1]) / 2
    mean = np.sum(middles * display.beta_density * np.diff(display.beta_edges))
    assert mean == pytest.approx(clf.posterior_["posterior"]["beta"].mean().item(), abs=0.02)


def test_the_chains_of_a_classifier(ripley):
    chains = BayesianKNeighborsClassifier(
        "pseudo", "metropolis", beta_max=4.0, n_chains=2, n_draws=300, random_state=0
    )
    # Few draws cause a warning about mixing, which is irrelevant for the figure.
    with pytest.warns(MixingWarning):
        chains.fit(ripley.X_train, ripley.y_train)
    display = PosteriorDisplay.from_estimator(chains)
    np.testing.assert_array_equal(display.k_trace, chains.posterior_["posterior"]["k"])
    np.testing.assert_array_equal(display.k_probabilities, chains.k_probabilities_)


def test_bad_input_raises():
    with pytest.raises(ValueError, match="got a list"):
        PosteriorDisplay.from_posterior([1.0, 2.0])
    with pytest.raises(ValueError, match="needs 1 x 2 axes, got 4"):
        PosteriorDisplay([0, 1], [1], [1], [1]).plot(axes=Figure().subplots(2, 2))
