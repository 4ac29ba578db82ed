"""The mesh under strain: priors far from it, many neighbours, long tails."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesknn.datasets import load_ripley
from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.log_z import chains
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.estimate import step_between
from bayesknn.log_z.records import Setting
from bayesknn.log_z.simulation import Simulation
from bayesknn.model import BoltzmannModel, FunctionPrior, UniformPrior
from bayesknn.posterior import grid_posterior
from bayesknn.posterior.quadrature.log_posterior import LogPosterior
from bayesknn.posterior.quadrature.mesh import Mesh, _add_nodes, judge
from bayesknn.posterior.quadrature.which_k import (
    CandidateSearch,
    _fill_in,
    log_deficits,
)
from tests.model.graphs import ripley_graph
from tests.posterior.test_grid import small_data
from tests.posterior.toy import simulated_posterior
from tests.statistical import check, p_value_of_z

BETA_MAX = 4.0


def on_interval(low, high, k_max=4):
    """Return the prior that is flat between two beta and zero elsewhere."""
    return FunctionPrior(lambda beta, k: 1.0 * ((beta >= low) & (beta <= high)), k_max, BETA_MAX)


@pytest.mark.parametrize(
    ("low", "high"),
    [(2.5, 4.0), (3.0, 3.2), (0.0, 0.2), (1.02, 1.04), (0.3, 0.31)],
    ids=["far above the modes", "far and narrow", "below it", "between grid points", "narrow"],
)
def test_a_prior_that_keeps_off_the_ridge_agrees_with_exact_log_z(low, high):
    data = small_data(2)
    betas = np.linspace(low, high, 2001)
    table = ExactLikelihood(*data).log_density_grid(betas)
    table[:, [0, -1]] -= np.log(2)
    weights = np.exp(table - logsumexp(table))
    share = weights.sum(axis=1)
    k_mean = share @ np.arange(1, 5)
    k_sd = np.sqrt(share @ (np.arange(1, 5) - k_mean) ** 2)
    beta_mean = (weights @ betas).sum()
    beta_sd = np.sqrt((weights @ (betas - beta_mean) ** 2).sum())

    def p_value(n_seeds, seed):
        runs = [
            simulated_posterior(
                CoherentLikelihood(*data),
                on_interval(low, high),
                evidence=False,
                random_state=np.random.SeedSequence([seed, s]),
            )
            for s in range(n_seeds)
        ]
        z = []
        for name, exact, sd in (("beta_mean", beta_mean, beta_sd), ("k_mean", k_mean, k_sd)):
            values = np.array([getattr(run, name) for run in runs])
            error = np.sqrt(np.mean([getattr(run, f"{name}_error") ** 2 for run in runs]) / n_seeds)
            # A fiftieth of a posterior standard deviation is left to the rules of integration.
            z.append(max(0.0, abs(values.mean() - exact) - 0.02 * sd) / error)
        return p_value_of_z(z)

    check(p_value, 8)


def test_data_sets_do_not_share_random_numbers(monkeypatch):
    seen = []

    def candidate(self, model, seeds, *rest):
        seen.append(tuple(seeds.generate_state(2)))
        raise KeyboardInterrupt

    monkeypatch.setattr(Simulation, "__init__", candidate)
    for seed in (2, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            simulated_posterior(CoherentLikelihood(*small_data(seed)), beta_max=4.0, random_state=0)
    assert seen[0] == seen[1] != seen[2]


def test_a_smooth_prior_far_from_the_ridge():
    data = small_data(2)
    prior = FunctionPrior(lambda beta, k: np.exp(-(((beta - 3.0) / 0.1) ** 2) / 2), 4, BETA_MAX)
    exact = grid_posterior(ExactLikelihood(*data), prior)
    found = simulated_posterior(CoherentLikelihood(*data), prior, random_state=0)
    # Six errors, and a little for the rules of integration.
    allowed = 6 * found.k_probabilities_error + 0.02
    assert np.all(np.abs(found.k_probabilities - exact.k_probabilities) < allowed)
    assert abs(found.beta_mean - exact.beta_mean) < 6 * found.beta_mean_error + 0.02 * exact.beta_sd


def test_many_neighbours_leave_enough_records_for_an_error():
    # A record reads k edges a point, so that records are far apart at large k.
    n = 320
    labels = np.arange(n) % 2
    points = np.random.default_rng(0).normal(size=(n, 2)) + 1.5 * labels[:, None]
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=300), labels)
    posterior = simulated_posterior(likelihood, UniformPrior(300, BETA_MAX), tolerance=0.2)
    assert np.isfinite(posterior.weights).all() and np.isfinite(posterior.replicates).all()
    assert np.isclose(posterior.weights.sum(), 1)
    assert 0 < posterior.k_mean_error < 1


def test_a_long_tail_that_moves_the_mean_is_worked_on():
    # Ten k hold nine tenths of the posterior, a hundred others the rest, with an error in common.
    ks = np.arange(1, 111)
    share = np.where(ks <= 10, 0.09, 0.001)
    noise = np.random.default_rng(0).normal(size=64)
    noise[0] = 0.0
    score = np.log(share) + 0.2 * np.outer(noise, ks > 10)
    assert judge(ks, score, tolerance=0.05) > 1
    # The same error on k that are together does not move it.
    assert judge(ks, np.log(share) + 0.2 * np.outer(noise, ks == 110), tolerance=0.05) < 1


def test_a_k_in_doubt_is_kept():
    score = np.tile([0.0, -20.0, -20.0], (3, 1))
    assert log_deficits(score, np.array([1.0, 1.0, 15.0])).tolist() == [0.0, 20.0, 6.0]


def test_a_step_from_k_to_k_is_the_trapezium_rule_with_end_correction():
    # A ring, where log Z is known; from beta = 0 to 2 the correction is 29, and 2.8 are left.
    n = 600
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(n), -1)])
    model, steps = BoltzmannModel(ring, 2), []
    for seed in range(4):
        seeds = np.random.SeedSequence(seed).spawn(2)
        pairs = [
            ChainPair(model, Setting.at(beta, 1), [1], own, length=4)
            for beta, own in zip((0.0, 2.0), seeds, strict=True)
        ]
        for pair in pairs:
            pair.advance(2000)
        steps.append(step_between(*pairs))
    exact = n * np.log((1 + np.exp(2.0)) / 2)
    error = np.mean([growth[1:].std() for growth, _ in steps])
    assert abs(np.mean([growth[0] for growth, _ in steps]) - exact) < 5 * error / 2 + 2.8
    # The discretisation error is as large as the correction, not smaller than what it is off by.
    assert all(15 < discretisation_error < 30 for _, discretisation_error in steps)


@pytest.mark.parametrize(
    "prior",
    [UniformPrior(4, BETA_MAX), on_interval(2.0, 2.01), on_interval(0.1, 0.11)],
    ids=["flat", "above", "below"],
)
def test_a_step_leads_to_the_top(prior):
    exact = ExactLikelihood(*small_data(2))
    target = LogPosterior(CoherentLikelihood(*small_data(2)), prior)
    betas = np.linspace(*target.limits[3], 2001)
    top = betas[np.argmax(exact.log_density(betas, 3))]
    # From near the top, where a parabola is what log Z is.
    beta, h = top + 0.02, 1e-3
    log_f = np.array([exact.log_density(beta + at, 3) for at in (-h, 0.0, h)])
    mean = target.observed[2] / 3 - (log_f[2] - log_f[0]) / (2 * h)
    variance = -(log_f[2] - 2 * log_f[1] + log_f[0]) / h**2
    assert beta + target.newton_step(3, beta, mean, variance) == pytest.approx(top, abs=4e-3)


def run(prior, likelihood=None, tolerance=0.2):
    """Return the mesh of Ripley's data, or of others, after it was run."""
    likelihood = likelihood or CoherentLikelihood(ripley_graph(), load_ripley().y_train)
    target = LogPosterior(likelihood, prior)
    with Simulation(likelihood.model, np.random.SeedSequence(0)) as simulation:
        search = CandidateSearch(simulation, target)
        mesh = Mesh(simulation, target, search.run(), tolerance, np.inf, search.division)
        simulation.run(mesh)
    return mesh


def test_chains_stand_at_some_k_and_speak_for_those_between():
    mesh = run(UniformPrior(125, BETA_MAX))
    own = sorted({pair.k for pair in mesh.phases[0]})
    ks = [profile.k for profile in mesh.estimate.profiles]
    assert len(own) < len(ks)
    assert np.array_equal(np.diff(ks), np.ones(len(ks) - 1))
    assert own[0] <= ks[0] and ks[-1] <= own[-1]


def test_chains_stand_at_every_k_where_the_prior_of_beta_differs():
    # The mode of a k moves with its prior, so that neighbours may be far apart.
    def density(beta, k):
        return np.exp(-(((beta - 1.4 - 0.1 * (k % 2)) / 0.3) ** 2) / 2)

    mesh = run(FunctionPrior(density, 20, BETA_MAX))
    own = sorted({pair.k for pair in mesh.phases[0]})
    assert np.array_equal(np.diff(own), np.ones(len(own) - 1))


def test_chains_stand_between_k_that_do_not_overlap():
    # Strips of points: with one neighbour they are pairs, with three whole strips.
    n = 6000
    points = np.column_stack([np.repeat(np.arange(n // 2), 2), np.tile([0.0, 0.1], n // 2)])
    graph = NeighborGraph.from_points(points, k_max=3)
    labels = np.random.default_rng(0).integers(2, size=n)
    mesh = run(UniformPrior(3, BETA_MAX), CoherentLikelihood(graph, labels))
    assert len(mesh.estimate.profiles) >= 1 and np.isfinite(mesh.excess)


def test_a_curve_has_nodes_where_its_curvature_asks_for_them():
    nodes, matters = np.linspace(1.0, 2.0, 6), np.ones(6, bool)
    # A standard deviation is a half: the nodes are near enough, and the next are .35 away.
    goes_on = np.array([True, False])
    more = _add_nodes(nodes, 2 * nodes**2, matters, goes_on, np.array([0.0, BETA_MAX]), 1.5)
    assert np.allclose(more, [0.0, 0.3, 0.65, *nodes])
    assert np.allclose(
        _add_nodes(nodes, 2 * nodes**2, matters, ~matters[:2], np.array([1.0, 2.0]), 1.5), nodes
    )
    # It is a tenth: all are too far apart, but where it does not matter.
    matters[3:] = False
    more = _add_nodes(
        nodes, 50 * nodes**2, matters, ~goes_on & goes_on, np.array([0.0, BETA_MAX]), 1.5
    )
    assert np.allclose(more, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0])
    # Where labels are frozen steps grow with the way from the top, to the end of the prior.
    nodes = np.array([1.0, 1.5, 2.0, 3.0, 6.0, 12.0])
    more = _add_nodes(nodes, nodes, np.ones(6, bool), ~goes_on, np.array([0.0, 1e3]), 0.0)
    assert np.all(np.diff(more[more >= 12]) > 2.0) and np.isclose(more[-1], 1e3)


def test_limits_are_the_ends_of_the_support():
    likelihood = CoherentLikelihood(*small_data(2))
    limits = LogPosterior(likelihood, on_interval(1.02, 1.04, k_max=2)).limits
    assert list(limits) == [1, 2]
    assert np.allclose(limits[1], (1.02, 1.04), atol=1e-9)
    whole = LogPosterior(likelihood, UniformPrior(3, 2.0)).limits
    assert whole == dict.fromkeys((1, 2, 3), (0.0, 2.0))


def test_a_prior_that_is_zero_everywhere_is_refused():
    class Nowhere:
        k_max, beta_max = 4, BETA_MAX

        def log_density(self, beta, k):
            return np.full(np.broadcast(beta, k).shape, -np.inf)

    with pytest.raises(ValueError, match="the prior is zero or not a number wherever it was"):
        simulated_posterior(CoherentLikelihood(*small_data(2)), Nowhere())


def test_no_k_are_added_where_labels_are_frozen():
    every = np.arange(1, 20)
    assert _fill_in(np.array([3, 5, 7]), [0.0, 40.0], every, 2.0).tolist() == [3, 5, 6, 7]
    assert _fill_in(np.array([3, 9]), [1.9], every, 2.0).tolist() == [3, 9]
    assert _fill_in(np.array([3, 9]), [1.9], every, 0.0).tolist() == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("distance", [8.0, 20.0])
@pytest.mark.parametrize("seeds", [(0,), pytest.param(range(1, 8), marks=pytest.mark.slow)])
def test_separated_blobs_of_any_seed(distance, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(200, 2)) + distance * (np.arange(200) % 2)[:, None]
        likelihood = CoherentLikelihood(
            NeighborGraph.from_points(points, k_max=100), np.arange(200) % 2
        )
        posterior = simulated_posterior(likelihood, beta_max=4.6, random_state=seed, evidence=False)
        assert np.isclose(posterior.k_probabilities.sum(), 1)
        # Where k reaches most of a blob the model is two cliques, and nothing tells k apart.
        assert posterior.k_sd > 15
        assert posterior.k_mean_error < 1


def test_mass_that_only_later_nodes_show_is_found():
    # All labels equal: the likelihood rises to a plateau, and the posterior reaches beta_max.
    graph = NeighborGraph.from_points(np.random.default_rng(1).normal(size=(40, 2)), k_max=6)
    labels = np.zeros(40, np.int64)
    exact = grid_posterior(ExactLikelihood(graph, labels, n_classes=2), beta_max=30.0)
    for seed in range(3):
        found = simulated_posterior(
            CoherentLikelihood(graph, labels, n_classes=2), beta_max=30.0, random_state=seed
        )
        assert found.cells.max() == 30.0
        assert abs(found.beta_mean - exact.beta_mean) < 6 * found.beta_mean_error + 0.1
        allowed = 6 * found.k_probabilities_error + 0.005
        assert np.all(np.abs(found.k_probabilities - exact.k_probabilities) < allowed)


def clusters(n_classes=2, n_flipped=0, distance=100.0, k_max=4):
    """Eight points of each class, with so many labels of the first changed to the second's."""
    labels = np.repeat(np.arange(n_classes), 8)
    points = np.random.default_rng(0).normal(size=(len(labels), 2)) + distance * labels[:, None]
    labels[:n_flipped] = 1
    return NeighborGraph.from_points(points, k_max), labels


# Beta is bounded by the prior alone, at some k only, or by the labels.
SEPARATED = {
    "separated": clusters(),
    "three classes": clusters(3),
    "nearly": clusters(distance=3.5, k_max=7),
    "one label off": clusters(n_flipped=1),
}


@pytest.mark.parametrize("beta_max", [10.0, 40.0, 100.0, 1000.0])
@pytest.mark.parametrize("shape", SEPARATED)
def test_a_wide_prior_on_separated_classes_agrees_with_exact_log_z(shape, beta_max):
    """Nodes went on for 28 units of beta at most: E beta 17.5 under any prior that was wider."""
    exact = grid_posterior(ExactLikelihood(*SEPARATED[shape]), beta_max=beta_max)
    found = simulated_posterior(
        CoherentLikelihood(*SEPARATED[shape]), beta_max=beta_max, random_state=0
    )
    assert found.info["warnings"] == []
    # Six errors, and for the means a little for the rules of integration.
    assert abs(found.log_evidence - exact.log_evidence) < 6 * found.log_evidence_error
    allowed = 6 * found.beta_mean_error + 0.02 * exact.beta_sd
    assert abs(found.beta_mean - exact.beta_mean) < allowed
    assert abs(found.k_mean - exact.k_mean) < 6 * found.k_mean_error + 0.02 * exact.k_sd


def test_a_posterior_that_is_not_followed_to_its_end_is_told(monkeypatch):
    monkeypatch.setattr("bayesknn.posterior.quadrature.mesh._MAX_TURNS", 1)
    found = simulated_posterior(CoherentLikelihood(*clusters()), beta_max=1e3, random_state=0)
    assert "a smaller beta_max" in found.info["warnings"][0]


@pytest.mark.parametrize("seeds", [(0,), pytest.param(range(1, 8), marks=pytest.mark.slow)])
def test_an_early_lead_over_a_doubtful_link_does_not_decide(seeds):
    # Sixty tight clusters: between k = 1 and k = 2 labels freeze, and the first step of that
    # link may be off by a hundred.
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 1e3, size=(60, 2))
    points = np.repeat(centres, 12, axis=0) + rng.normal(size=(720, 2)) * 0.1
    labels = np.repeat(rng.integers(2, size=60), 12)
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=36), labels)
    for seed in seeds:
        posterior = simulated_posterior(
            likelihood, beta_max=20.0, random_state=seed, evidence=False
        )
        assert 6.0 < posterior.k_mean < 8.5
        assert posterior.k_probabilities[0] < 1e-3
        # Frozen labels need few sweeps, as far as beta may go.
        assert posterior.info["n_sweeps"] < 160_000


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_sweep_is_counted(monkeypatch, n_jobs):
    """Those of first candidates, of searches and of warm-up too."""
    made = []
    advance = chains._advance

    def count(model_at, weight, key, sweeps, window, labels, workspace, records):
        made.append(sweeps.n_warmup + len(records.of_labels) * sweeps.thin)
        advance(model_at, weight, key, sweeps, window, labels, workspace, records)

    monkeypatch.setattr(chains, "_advance", count)
    likelihood = CoherentLikelihood(*small_data(2))
    posterior = simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=0, n_jobs=n_jobs)
    assert posterior.info["n_sweeps"] == sum(made)


def test_by_default_there_is_an_end_to_the_work(monkeypatch):
    likelihood = CoherentLikelihood(ripley_graph(), load_ripley().y_train)
    usual = simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=0, tolerance=0.02)
    assert usual.info["warnings"] == []
    monkeypatch.setattr("bayesknn.posterior.quadrature.grid._MAX_SWEEPS", 1.0)
    monkeypatch.setattr("bayesknn.posterior.quadrature.grid._TOLERANCE", 0.02)
    with pytest.warns(MixingWarning, match="ended before it was sure"):
        short = simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=0)
    assert short.info["n_sweeps"] < usual.info["n_sweeps"] / 2
    assert "ended before it was sure" in short.info["warnings"][0]
    assert "times what was asked for" in short.info["warnings"][-1]
    # A number that was asked for is met.
    full = simulated_posterior(likelihood, beta_max=BETA_MAX, random_state=0, tolerance=0.02)
    assert full.info["n_sweeps"] == usual.info["n_sweeps"]


def test_labels_that_have_nothing_to_do_with_the_points():
    # The mode is at beta = 0 for many k.
    rng = np.random.default_rng(3)
    graph = NeighborGraph.from_points(rng.normal(size=(150, 1)), k_max=40)
    likelihood = CoherentLikelihood(graph, rng.integers(2, size=150))
    posterior = simulated_posterior(likelihood, beta_max=4.0, random_state=0)
    assert posterior.betas.min() >= 0 and np.isfinite(posterior.log_evidence)
