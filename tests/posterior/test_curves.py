"""log Z around the ridge at one k: the integral of a cubic, its spans, averages of curves."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from bayesknn.posterior.curves import Curve, Profile

BETAS = np.array([0.5, 1.1, 1.4, 2.3])


def make_curve(n_replicates=3, betas=BETAS, centre=1.1, seed=0):
    rng = np.random.default_rng(seed)
    means = 100 + 40 * betas + rng.normal(size=(n_replicates, len(betas)))
    slopes = rng.uniform(20, 60, size=means.shape)
    return Curve(7, centre, rng.normal(size=n_replicates), betas, means, slopes)


def integrate_slowly(curve, row, beta):
    """Integrate from the centre to beta: a spline between nodes, straight lines beyond."""
    spline = CubicHermiteSpline(curve.betas, curve.means[row], curve.slopes[row])

    def antiderivative(beta):
        inside = np.clip(beta, curve.betas[0], curve.betas[-1])
        end = 0 if beta < curve.betas[0] else -1
        beyond = beta - inside
        outside = beyond * curve.means[row, end] + beyond**2 / 2 * curve.slopes[row, end]
        return spline.antiderivative()(inside) + outside

    return curve.height[row] + antiderivative(beta) - antiderivative(curve.centre)


@pytest.mark.parametrize("betas", [BETAS, BETAS[1:3], BETAS[1:2]])
def test_the_integral_is_that_of_a_spline(betas):
    curve = make_curve(betas=betas)
    points = np.array([0.0, 0.5, 0.9, 1.1, 1.2, 1.4, 2.0, 2.3, 3.0])
    found = curve.log_normalizer(points)
    if len(betas) == 1:
        away = points - 1.1
        wanted = curve.height[:, None] + away * curve.means + away**2 / 2 * curve.slopes
    else:
        wanted = [[integrate_slowly(curve, row, beta) for beta in points] for row in range(3)]
    assert np.allclose(found, wanted)
    assert np.array_equal(curve.log_normalizer(points, n_rows=1), found[:1])
    assert np.allclose(curve.log_normalizer(np.array([1.1]))[:, 0], curve.height)


def test_a_profile_is_the_average_of_its_curves():
    curves = (make_curve(), make_curve(centre=1.4, seed=1))
    profile = Profile(curves, (0.25, 0.75))
    points = np.linspace(0, 3, 7)
    first, second = (curve.log_normalizer(points) for curve in curves)
    assert np.allclose(profile.log_normalizer(points), 0.25 * first + 0.75 * second)


@pytest.mark.parametrize("top", [1.2, 2.95])
def test_the_span_holds_the_posterior_wherever_its_top_is(top):
    # log Z is a parabola, and the observed S and the prior put a narrow top somewhere.
    curve = Curve(7, 1.1, np.zeros(1), BETAS[1:2], np.array([[100.0]]), np.array([[50.0]]))

    def log_weight(beta):
        return 100 * (beta - 1.1) + 25 * (beta - 1.1) ** 2 - ((beta - top) / 0.02) ** 2 / 2

    profile = Profile((curve,))
    low, high = profile.find_span(log_weight, (0.0, 4.0))
    assert low < top - 5 * 0.02 and high > top + 5 * 0.02
    assert high - low < 2.0
    beta, log_mass = profile.weigh(log_weight, (top - 0.12, top + 0.12))
    total = np.exp(log_mass[0]).sum()
    assert np.isclose(total, 0.02 * np.sqrt(2 * np.pi), rtol=1e-6)
    assert len(beta) == log_mass.shape[1] == 161
