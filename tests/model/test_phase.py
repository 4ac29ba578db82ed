"""The rule for beta_max on exact, synthetic and noisy curves."""

import numpy as np
import pytest

from bayesknn.model import (
    PhaseCurve,
    choose_k_values,
    expected_agreement_exact,
    locate_beta_max,
)
from tests.model.graphs import ripley_graph


def ring_share(betas, n_classes):
    """Edges of a long ring agree independently of one another."""
    return 1 / (1 + (n_classes - 1) * np.exp(-betas))


def ring_crossing(n_classes, threshold):
    return np.log(n_classes / (1 - threshold) - n_classes + 1)


def exact_shares(graph, n_classes):
    def simulate(betas, k):
        total = expected_agreement_exact(graph, betas, k, n_classes)
        return total / (graph.n_points * k), np.zeros(len(betas))

    return simulate


def test_ripley():
    """Pin what the rule gives where the curves are exact; its 98 % was set with this in view."""
    curve = locate_beta_max(exact_shares(ripley_graph(), 2), [1, 2, 3, 5, 8], n_classes=2)
    assert curve.beta_max == 4.7
    assert curve.decisive_k == 2
    np.testing.assert_allclose(curve.crossings[:3], [3.65, 4.63, 3.73], atol=0.03)
    # Beyond beta_max at most one edge in a hundred disagrees, for every k; just below, not so.
    simulate = exact_shares(ripley_graph(), 2)
    for k in (1, 2, 3, 5, 8):
        assert simulate(np.array([4.7]), k)[0] >= 0.99
    assert simulate(np.array([4.6]), 2)[0] < 0.99


@pytest.mark.parametrize("n_classes", [2, 3, 6, 50])
@pytest.mark.parametrize("threshold", [0.9, 0.98, 0.999])
def test_any_number_of_classes(n_classes, threshold):
    def simulate(betas, k):
        return ring_share(betas, n_classes), np.zeros(len(betas))

    curve = locate_beta_max(simulate, [1], n_classes, threshold=threshold)
    crossing = ring_crossing(n_classes, threshold)
    assert curve.crossings[0] == pytest.approx(crossing, abs=0.01)
    assert crossing - 0.01 <= curve.beta_max <= 1.1 * crossing
    assert curve.agreement_threshold == pytest.approx(ring_share(crossing, n_classes))


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.3, 5.0, 100.0])
def test_any_scale_of_beta(scale):
    """Class weights stretch or shrink the range of beta."""

    def simulate(betas, k):
        return ring_share(betas / scale, 2), np.zeros(len(betas))

    curve = locate_beta_max(simulate, [1], 2)
    crossing = scale * ring_crossing(2, 0.98)
    assert curve.crossings[0] == pytest.approx(crossing, rel=0.01)
    assert 0.99 * crossing <= curve.beta_max <= 1.1 * crossing


def test_the_slowest_k_decides():
    def simulate(betas, k):
        return ring_share(betas * (2 if k != 7 else 0.5), 2), np.zeros(len(betas))

    curve = locate_beta_max(simulate, [7, 1, 20], 2)
    assert curve.decisive_k == 7
    assert curve.k_values.tolist() == [1, 7, 20]
    assert curve.beta_max == pytest.approx(2 * ring_crossing(2, 0.98), abs=0.1)


def test_a_jump_is_found():
    """A first-order transition: the share leaps from 1/G to nearly 1."""

    def simulate(betas, k):
        return np.where(betas < 2.345, 0.2, 1.0), np.zeros(len(betas))

    curve = locate_beta_max(simulate, [1], 6)
    assert 2.2 <= curve.beta_max <= 2.6


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_borne_and_reported(seed):
    """The crossing has a standard error of about .02 here, so .2 is far outside chance."""
    rng = np.random.default_rng(seed)
    error = 3e-4

    def simulate(betas, k):
        noisy = ring_share(betas, 2) + error * rng.standard_normal(len(betas))
        return np.clip(noisy, 0, 1), np.full(len(betas), error)

    curve = locate_beta_max(simulate, [1], 2)
    crossing = ring_crossing(2, 0.98)
    assert curve.crossings[0] == pytest.approx(crossing, abs=0.2)
    assert 0.01 < curve.crossing_errors[0] < 0.1


def test_the_curve_is_kept_for_plotting():
    curve = locate_beta_max(exact_shares(ripley_graph(), 2), [1, 3], 2, n_betas=9)
    assert isinstance(curve, PhaseCurve)
    for k in (1, 3):
        beta, agreement, error = curve.curve(k)
        assert len(beta) == len(agreement) == len(error) >= 9
        assert np.all(np.diff(beta) >= 0)
        assert np.all(np.diff(agreement) >= -1e-12)
        assert beta[0] < 0.2 * curve.beta_max
        assert beta[-1] > curve.beta_max
    with pytest.raises(ValueError, match=r"k=2 was not simulated, only k in \[1, 3\]"):
        curve.curve(2)


def test_choose_k_values():
    assert choose_k_values(1).tolist() == [1]
    assert choose_k_values(2).tolist() == [1, 2]
    assert choose_k_values(4).tolist() == [1, 2, 3, 4]
    assert choose_k_values(68).tolist() == [1, 2, 3, 14, 68]
    with pytest.raises(ValueError, match="k_max must be an integer >= 1"):
        choose_k_values(0)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda betas: (betas[:0], betas), "a mean and an error for each of 1 betas"),
        (lambda betas: (0 * betas + np.nan, 0 * betas), r"in \[0, 1\], got nan"),
        (lambda betas: (250 + betas, 0 * betas), r"in \[0, 1\], got 254"),
        (lambda betas: (0.5 + 0 * betas, 0 * betas), "does not become black or white"),
    ],
)
def test_bad_simulations(result, message):
    with pytest.raises(ValueError, match=message):
        locate_beta_max(lambda betas, k: result(betas), [1], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k_values": []}, "k_values is empty"),
        ({"k_values": [0]}, "k_values must be an integer >= 1"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2"),
        ({"threshold": 1.0}, "threshold must lie strictly between 0 and 1"),
        ({"n_betas": -1}, "n_betas must be an integer >= 0"),
    ],
)
def test_bad_arguments(arguments, message):
    good = {"k_values": [1], "n_classes": 2}
    with pytest.raises(ValueError, match=message):
        locate_beta_max(lambda betas, k: (0 * betas + 1, 0 * betas), **(good | arguments))
