"""The rule for beta_max on exact, synthetic and noisy curves."""

import numpy as np
import pytest

from bayesknn.labels import find_beta_max
from bayesknn.labels.beta_max import locate_beta_max
from bayesknn.model import expected_agreement_exact
from tests.model.graphs import complete, ring, ripley_graph


def ring_share(beta, n_classes):
    """Edges of a long ring agree independently of one another."""
    return 1 / (1 + (n_classes - 1) * np.exp(-beta))


def ring_crossing(n_classes, threshold):
    return np.log(n_classes / (1 - threshold) - n_classes + 1)


def exact_shares(graph, n_classes):
    def simulate(beta, k):
        total = expected_agreement_exact(graph, beta, k, n_classes)
        return total / (graph.n_points * k), 0.0

    return simulate


def test_ripley():
    """Pin what the rule gives where the curves are exact; its 98 % was set with this in view."""
    curve = locate_beta_max(exact_shares(ripley_graph(), 2), [1, 2, 3, 5, 8], n_classes=2)
    assert curve.beta_max == 4.7
    assert np.argmax(curve.crossings) == 1
    np.testing.assert_allclose(curve.crossings[:3], [3.65, 4.63, 3.73], atol=0.03)
    # Beyond beta_max at most one edge in a hundred disagrees, for every k; just below, not so.
    simulate = exact_shares(ripley_graph(), 2)
    for k in (1, 2, 3, 5, 8):
        assert simulate(4.7, k)[0] >= 0.99
    assert simulate(4.6, 2)[0] < 0.99


@pytest.mark.parametrize("n_classes", [2, 3, 6, 50])
@pytest.mark.parametrize("threshold", [0.9, 0.98, 0.999])
def test_any_number_of_classes(n_classes, threshold):
    def simulate(beta, k):
        return ring_share(beta, n_classes), 0.0

    curve = locate_beta_max(simulate, [1], n_classes, threshold=threshold)
    crossing = ring_crossing(n_classes, threshold)
    assert curve.crossings[0] == pytest.approx(crossing, abs=0.01)
    assert crossing - 0.01 <= curve.beta_max <= 1.1 * crossing


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.3, 5.0, 100.0])
def test_any_scale_of_beta(scale):
    """Class weights stretch or shrink the range of beta."""

    def simulate(beta, k):
        return ring_share(beta / scale, 2), 0.0

    curve = locate_beta_max(simulate, [1], 2)
    crossing = scale * ring_crossing(2, 0.98)
    assert curve.crossings[0] == pytest.approx(crossing, rel=0.01)
    assert 0.99 * crossing <= curve.beta_max <= 1.1 * crossing


def test_the_slowest_k_decides():
    def simulate(beta, k):
        return ring_share(beta * (2 if k != 7 else 0.5), 2), 0.0

    curve = locate_beta_max(simulate, [7, 1, 20], 2)
    assert np.argmax(curve.crossings) == 1
    assert curve.k_values.tolist() == [1, 7, 20]
    assert curve.beta_max == pytest.approx(2 * ring_crossing(2, 0.98), abs=0.1)


def test_a_jump_is_found():
    """A first-order transition: the share leaps from 1/G to nearly 1."""

    def simulate(beta, k):
        return (0.2 if beta < 2.345 else 1.0), 0.0

    curve = locate_beta_max(simulate, [1], 6)
    assert 2.2 <= curve.beta_max <= 2.6


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_borne(seed):
    """The crossing has a standard error of about .02 here, so .2 is far outside chance."""
    rng = np.random.default_rng(seed)
    error = 3e-4

    def simulate(beta, k):
        noisy = ring_share(beta, 2) + error * rng.standard_normal()
        return np.clip(noisy, 0, 1), error

    curve = locate_beta_max(simulate, [1], 2)
    crossing = ring_crossing(2, 0.98)
    assert curve.crossings[0] == pytest.approx(crossing, abs=0.2)


@pytest.mark.parametrize(
    ("k_max", "k_values"), [(1, [1]), (2, [1, 2]), (4, [1, 2, 3, 4]), (68, [1, 2, 3, 14, 68])]
)
def test_a_few_k_stand_for_all(k_max, k_values):
    assert find_beta_max(complete(k_max + 1), 2, random_state=0).k_values.tolist() == k_values


def test_labels_that_never_agree():
    with pytest.raises(ValueError, match="do not become equal"):
        locate_beta_max(lambda beta, k: (0.5, 0.0), [1], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k_values": []}, "k_values is empty"),
        ({"k_values": [0]}, "k must be an integer in 1..1"),
        ({"n_classes": 1}, "n_classes must be an integer >= 2"),
        ({"threshold": 1.0}, "threshold must lie between 0 and 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_beta_max(ring(5), **({"n_classes": 2} | arguments))
