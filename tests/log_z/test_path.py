"""log Z on the way from beta = 0 when there is little time or chains are slow: exact values."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from bayesknn.graph import NeighborGraph
from bayesknn.log_z.along_beta import Path, log_z_at
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model import BoltzmannModel, log_normalizer_exact

N, N_CLASSES, BETA, TOLERANCE = 3000, 3, 2.0, 0.4
N_SEEDS = 10


def test_the_first_pairs_alone_tell_log_z_within_its_error():
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(N), -1)])
    exact = N * np.log(np.exp(BETA) + N_CLASSES - 1)
    model, scores = BoltzmannModel(ring, N_CLASSES), []
    for seed in range(N_SEEDS):
        with Simulation(model, np.random.SeedSequence(seed)) as simulation:
            found = log_z_at(simulation, 1, BETA, TOLERANCE, 0.0)
        error = found[1:].std()
        # It gave up before it was precise, and is still of use.
        assert TOLERANCE < error < 1e-3 * exact
        scores.append((found[0] - exact) / error)
    low, high = chi2(N_SEEDS).ppf([1e-4, 1 - 1e-4])
    assert low < np.sum(np.square(scores)) < high


def test_where_the_curve_has_a_kink_the_error_says_so():
    # All points are neighbours of all, and S depends on how many have the first class.
    n, beta, tolerance = 600, 3.0, 0.4
    graph = NeighborGraph.from_neighbors((np.arange(n) + np.arange(1, n)[:, None]) % n)
    first = np.arange(n + 1.0)
    log_counts = gammaln(n + 1) - gammaln(first + 1) - gammaln(n - first + 1)
    s = first * (first - 1) + (n - first) * (n - first - 1)
    exact = logsumexp(log_counts + beta / (n - 1) * s)
    model, errors, scores = BoltzmannModel(graph, 2), [], []
    for seed in range(4):
        with Simulation(model, np.random.SeedSequence(seed)) as simulation:
            found = log_z_at(simulation, n - 1, beta, tolerance, 1e5)
        errors.append(found[1:].std())
        scores.append((found[0] - exact) / errors[-1])
    assert np.mean(errors) < 4 * tolerance
    assert np.sum(np.square(scores)) < chi2(len(scores)).ppf(1 - 1e-3)


@pytest.mark.slow
def test_few_sweeps_on_many_points_leave_an_honest_error():
    # Three classes in ten dimensions: E[S] bends at beta = 1.33. From chains of 300 to 600 sweeps
    # at 64 values of beta, log Z at beta = 3.5 is 35102, to 1.5.
    rng = np.random.default_rng(7)
    centres, labels = 1.5 * rng.normal(size=(3, 10)), rng.integers(3, size=10_000)
    points = centres[labels] + rng.normal(size=(10_000, 10))
    model, scores = BoltzmannModel(NeighborGraph.from_points(points, k_max=6), 3), []
    for seed in range(4):
        with Simulation(model, np.random.SeedSequence(seed)) as simulation:
            found = log_z_at(simulation, 6, 3.5, 0.4, 4e3)
        assert simulation.n_sweeps < 2e4
        scores.append((found[0] - 35102) / np.hypot(found[1:].std(), 1.5))
    assert np.sum(np.square(scores)) < chi2(len(scores)).ppf(1 - 1e-3)


def test_past_slow_chains_log_z_comes_from_both_ends(monkeypatch):
    # Every chain is called slow, so that the labels are divided in two.
    monkeypatch.setattr(Pilot, "is_slow", property(lambda self: True))
    graph = NeighborGraph.from_points(np.random.default_rng(3).normal(size=(24, 2)), 3)
    model = BoltzmannModel(graph, 4)
    exact, scores = log_normalizer_exact(graph, 2.2, 3, 4), []
    for seed in range(3):
        with Simulation(model, np.random.SeedSequence(seed)) as simulation:
            found = log_z_at(simulation, 3, 2.2, 0.2, 5e3)
        assert found[1:].std() < 0.5
        scores.append((found[0] - exact) / np.hypot(found[1:].std(), 0.02))
    assert np.abs(scores).max() < 5
    assert np.mean(np.square(scores)) < 4


def test_a_path_runs_nothing_before_it_is_asked_to_plan():
    model = BoltzmannModel(NeighborGraph.from_neighbors([np.roll(np.arange(60), -1)]), 2)
    with Simulation(model, np.random.SeedSequence(0)) as simulation:
        path = Path(simulation, 1, 2.0, tolerance=0.2, max_sweeps=1e5, to_far_end=False)
        assert simulation.n_sweeps == 0 and not path.pilots
        first = path.plan()
        # The first plan is made from pilots alone, none of whose records are kept.
        pilots = [pilot.pair for pilot in path.pilots]
        assert simulation.n_sweeps == 2 * sum(pair.sweeps_per_chain for pair in pilots)
        assert all(pair.n_records == 0 and n > 0 and pair not in pilots for pair, n in first)
        assert [pair.beta for pair, _ in first] == [pair.beta for pair in pilots]
