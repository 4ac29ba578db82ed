"""Pictures of a table of log Z: on the complete graph of two points, where all is known."""

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import path_table
from bayesknn.plots import ExpectedAgreementDisplay, LogNormalizerDisplay


class PairTable:
    """Ten pairs of points, mutual neighbours: Z = (2 e^{2 beta} + 2)^10 for every k."""

    k_max, beta_max, n_points, n_classes = 3, 4.0, 20, 2

    def log_normalizer(self, beta, k):
        return 10 * np.log(2 * np.exp(2 * beta) + 2)

    def expected_agreement(self, beta, k):
        return 20 / (1 + np.exp(-2 * beta))

    def error(self, beta, k):
        return 0.01 * k * beta

    def replicates(self, beta, k):
        # As estimated, and tilted either way: the slopes spread by exactly k.
        tilts = np.array([0.0, k, -k])
        return self.log_normalizer(beta, k) + tilts[:, None] * beta


def test_expected_agreement_draws_the_table(ax):
    display = ExpectedAgreementDisplay.from_table(PairTable(), [1, 3], n_betas=9, ax=ax)
    low, high, *curves = ax.lines
    assert (low.get_ydata()[0], high.get_ydata()[0]) == (10, 20)
    for line in curves:
        np.testing.assert_array_equal(line.get_xdata(), np.linspace(0, 4, 9))
        np.testing.assert_array_equal(line.get_ydata(), 20 / (1 + np.exp(-2 * display.betas)))
    assert [line.get_label() for line in curves] == ["k = 1", "k = 3"]
    assert curves[0].get_linestyle() != curves[1].get_linestyle()


def test_the_band_is_two_errors_of_the_slope_either_side(ax):
    display = ExpectedAgreementDisplay.from_table(PairTable(), [1, 3], n_betas=9, ax=ax)
    np.testing.assert_allclose(display.errors, np.outer([1, 3], np.ones(9)))
    outline = ax.collections[1].get_paths()[0].vertices
    at_zero = outline[outline[:, 0] == 0.0, 1]
    np.testing.assert_allclose([at_zero.min(), at_zero.max()], [10 - 6, 10 + 6])


def test_a_table_without_replicates_has_no_band(ax):
    class Bare:
        k_max, beta_max = 100, 2.0
        expected_agreement = PairTable.expected_agreement

    display = ExpectedAgreementDisplay.from_table(Bare(), ax=ax)
    assert display.errors is None and display.limits is None and not ax.collections
    assert display.k_values.tolist() == [1, 3, 10, 32, 100]


def test_log_normalizer_draws_the_table(ax):
    display = LogNormalizerDisplay.from_table(PairTable(), n_betas=11, ax=ax)
    expected = np.tile(10 * np.log(2 * np.exp(2 * display.betas) + 2), (3, 1))
    np.testing.assert_array_equal(ax.collections[0].get_array(), expected)
    assert display.k_values.tolist() == [1, 2, 3]
    assert display.colorbar_.ax.get_ylabel() == "log Z"
    mesh, lines = ax.collections
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        if len(path.vertices):
            beta = np.interp(level, expected[0], display.betas)
            np.testing.assert_allclose(path.vertices[:, 0], beta)


def test_the_error_of_log_normalizer_has_no_contours(ax):
    display = LogNormalizerDisplay.from_table(PairTable(), n_betas=11, kind="error", ax=ax)
    (mesh,) = ax.collections
    np.testing.assert_allclose(mesh.get_array(), 0.01 * np.outer([1, 2, 3], display.betas))
    assert display.colorbar_.ax.get_ylabel() == "Monte Carlo error of log Z"


def test_one_k_is_a_row_without_contours(ax):
    LogNormalizerDisplay.from_table(PairTable(), [2], ax=ax)
    assert len(ax.collections) == 1


def test_a_computed_table_is_drawn(ax):
    rng = np.random.default_rng(0)
    graph = NeighborGraph.from_points(rng.normal(size=(12, 2)), k_max=2)
    table = path_table(graph, 2, beta_max=2.0, random_state=0)
    display = ExpectedAgreementDisplay.from_table(table, n_betas=41, ax=ax)
    np.testing.assert_allclose(display.values[:, 0], 6.0, atol=1e-6)
    assert display.limits == (6.0, 12)
    surface = LogNormalizerDisplay.from_table(table, n_betas=41)
    np.testing.assert_allclose(surface.log_normalizers[:, 0], 12 * np.log(2))
    slopes = np.gradient(surface.log_normalizers, surface.betas, axis=1)
    np.testing.assert_allclose(slopes[:, 1:-1], display.values[:, 1:-1], atol=0.02)


def test_bad_input_is_refused():
    table = PairTable()
    for display in (ExpectedAgreementDisplay, LogNormalizerDisplay):
        with pytest.raises(ValueError, match=r"integers in 1\.\.3, got 4"):
            display.from_table(table, [1, 4])
        with pytest.raises(ValueError, match=r"integers in 1\.\.3, got 1.5"):
            display.from_table(table, [1.5])
        with pytest.raises(ValueError, match="n_betas must be at least 2, got 1"):
            display.from_table(table, n_betas=1)
        with pytest.raises(ValueError, match=r"a column for each beta, \(1, 2\); got shape \(2,\)"):
            display([0, 1], [1], [1, 2])
        with pytest.raises(ValueError, match="errors must have a row for each k"):
            display([0, 1], [1], [[1, 2]], [[1]])
    bare = LogNormalizerDisplay([0, 1], [1], [[1, 2]])
    with pytest.raises(ValueError, match="no errors to draw"):
        bare.plot(kind="error")
    with pytest.raises(ValueError, match="kind must be 'value' or 'error', got 'z'"):
        bare.plot(kind="z")
