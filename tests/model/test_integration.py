"""Gauss rules on panels: polynomials, cells, and mass that is narrow, cut or far from all nodes."""

import numpy as np
import pytest
from scipy.stats import norm

from bayesknn.model.integration import (
    find_panels,
    integrate,
    place_cells,
    place_nodes,
)

EDGES = np.linspace(0.0, 4.0, 21)


def test_polynomials_of_a_degree_below_twice_the_nodes_are_exact():
    nodes, weights = place_nodes([0.0, 0.3, 2.0])
    for degree in range(16):
        assert weights @ nodes**degree == pytest.approx(2.0 ** (degree + 1) / (degree + 1))
    # One more is not, on panels that are wide enough to show it.
    assert weights @ nodes**16 != pytest.approx(2.0**17 / 17, rel=1e-13)


def test_every_cell_has_its_node_and_the_width_of_its_weight():
    edges = np.array([[0.0, 0.5, 2.0], [1.0, 1.5, 1.75]])
    nodes, weights = place_nodes(edges)
    cells = place_cells(edges)
    np.testing.assert_allclose(np.diff(cells), weights, atol=1e-15)
    assert np.all(cells[:, :-1] < nodes) and np.all(nodes < cells[:, 1:])
    np.testing.assert_array_equal(cells[:, [0, 8, 16]], edges)


@pytest.mark.parametrize("sd", [1.0, 0.1, 1e-3, 1e-5])
@pytest.mark.parametrize("centre", [0.0, 0.2, 0.2 + 1e-7, 0.202, 1.2345, 3.999])
def test_a_bell_is_found_wherever_it_stands(centre, sd):
    # 0.2 is where two panels meet: what is just beyond is far from every node of the other, and
    # of a bell at 0.202 one panel holds nearly all.
    nodes, log_mass = integrate(lambda x: norm.logpdf(x, centre, sd), find_panels(
        lambda x: norm.logpdf(x, centre, sd), EDGES
    ))  # fmt: skip
    truth = norm.cdf(4.0, centre, sd) - norm.cdf(0.0, centre, sd)
    mass = np.exp(log_mass)
    assert mass.sum() == pytest.approx(truth, rel=1e-7)
    moment = centre * truth + sd**2 * (norm.pdf(0.0, centre, sd) - norm.pdf(4.0, centre, sd))
    assert mass @ nodes == pytest.approx(moment, rel=1e-7)


def test_what_jumps_is_halved_until_the_jump_does_not_matter():
    def log_density(x):
        return np.where(x < 1.234, 0.0, np.where(x < 2.9, -np.inf, 1.0))

    _, log_mass = integrate(log_density, find_panels(log_density, EDGES))
    assert np.exp(log_mass).sum() == pytest.approx(1.234 + 1.1 * np.e, rel=1e-4)
    even = np.exp(integrate(log_density, EDGES)[1]).sum()
    assert abs(even - 1.234 - 1.1 * np.e) > 1e-3


def test_panels_end_where_the_mass_does_and_are_as_many_as_asked_for():
    panels = find_panels(lambda x: norm.logpdf(x, 2.0, 0.01), EDGES, n_panels=30)
    assert len(panels) - 1 >= 30 and np.all(np.diff(panels) > 0)
    assert 1.8 < panels[0] < 1.95 and 2.05 < panels[-1] < 2.2


def test_what_is_not_a_number_counts_for_nothing():
    def log_density(x):
        return np.where(x < 1.0, np.nan, 0.0)

    panels = find_panels(log_density, EDGES)
    assert panels[0] == pytest.approx(1.0) and panels[-1] == 4.0
    # Nor is a density that is zero everywhere an endless search.
    assert len(find_panels(lambda x: np.full(x.shape, -np.inf), EDGES)) == len(EDGES)
