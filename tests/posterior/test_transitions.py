"""First-order transitions, small separated data, and errors that mean what they say."""

import functools

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.datasets import make_blobs

from bayesknn import BayesianKNeighborsClassifier, PhaseTransitionWarning
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood, path_table
from bayesknn.log_z import simulation
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.mbar import combine
from bayesknn.log_z.records import Setting, Window
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model import BoltzmannModel, FunctionPrior, UniformPrior, log_normalizer_exact
from bayesknn.posterior import GridPosterior, grid_posterior
from bayesknn.posterior.quadrature import mesh
from bayesknn.posterior.quadrature.log_posterior import LogPosterior
from bayesknn.posterior.quadrature.which_k import CandidateSearch, Division, bound_posterior
from tests.model.enumeration import exact_law
from tests.posterior.toy import simulated_posterior
from tests.statistical import check, rejects

# An independent exchange chain: P(k = 4..8), to .01.
RANDOM_LABELS = (
    "44444442452444441644641464664344444444446444742404340464434346452544343147456705146653742463"
    "75442232"
)
OF_RANDOM_LABELS = [0.013, 0.424, 0.362, 0.090, 0.111]


def random_labels():
    points = np.random.default_rng(21).normal(size=(100, 30))
    labels = np.array([int(digit) for digit in RANDOM_LABELS])
    return CoherentLikelihood(NeighborGraph.from_points(points, 8), labels, 8)


def small_separated():
    rng = np.random.default_rng(1036)
    n, k_max = int(rng.integers(12, 23)), int(rng.integers(3, 11))
    group = np.arange(n) % 2
    rng.shuffle(group)
    points = rng.normal(size=(n, 3)) * 0.5 + 3 * np.eye(4)[group][:, :3]
    labels = np.empty(n, int)
    labels[np.lexsort((np.arange(n), points[:, 0]))] = np.arange(n) * 2 // n
    return NeighborGraph.from_points(points, k_max), labels


def assert_random_labels_come_out(seed):
    posterior = simulated_posterior(random_labels(), beta_max=4.0, random_state=seed)
    allowed = 4 * posterior.k_probabilities_error[3:] + 0.015
    assert np.all(np.abs(posterior.k_probabilities[3:] - OF_RANDOM_LABELS) < allowed)
    assert posterior.k_probabilities_error.max() < 0.03


@pytest.mark.parametrize("seed", [0, 1])
def test_many_classes_with_random_labels(seed):
    assert_random_labels_come_out(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 20))
def test_many_classes_with_random_labels_for_more_seeds(seed):
    assert_random_labels_come_out(seed)


def test_a_transition_that_sweeps_do_not_settle_is_told(monkeypatch):
    monkeypatch.setattr("bayesknn.posterior.quadrature.grid._MAX_SWEEPS", 1000)
    rng, labels = np.random.default_rng(1), np.arange(200) % 10
    points = rng.normal(size=(200, 5)) + 1.2 * rng.normal(size=(10, 5))[labels]
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, 40), labels)
    with pytest.warns(PhaseTransitionWarning, match="first-order transition .* what was asked"):
        posterior = simulated_posterior(likelihood, beta_max=6.0, random_state=0)
    # Of the transition, of the search, and of the errors.
    assert len(posterior.info["warnings"]) == 3
    # The errors are those of few sweeps, not of replicates that left where logarithms live.
    assert posterior.log_evidence_error < 100


@pytest.mark.parametrize("seed", range(3))
def test_small_separated_data(seed):
    posterior = simulated_posterior(
        CoherentLikelihood(*small_separated()), beta_max=3.7, random_state=seed
    )
    error = posterior.k_probabilities_error[0]
    assert abs(posterior.k_probabilities[0] - 0.0297) < 5 * error
    assert error < 0.004


def test_the_two_phases_add_up_to_log_z(monkeypatch):
    # Chains are divided by force on a graph small enough for elimination.
    monkeypatch.setattr(Pilot, "is_split", property(lambda self: 0.9 < self.pair.beta < 1.6))
    graph = NeighborGraph.from_points(np.random.default_rng(3).normal(size=(40, 2)), 3)
    table = path_table(graph, 4, exact=False, random_state=1)
    # At a transition nothing is left to compare the far end with.
    assert np.isnan(table.closure[2])
    betas = np.array([0.5, 1.5, 2.0, 2.5, 3.5])
    off = np.abs(table.log_normalizer(betas, 3) - log_normalizer_exact(graph, betas, 3, 4))
    assert np.all(off < 5 * table.error(betas, 3) + 0.02)


def test_a_window_restricts_the_law():
    graph = NeighborGraph.from_points(np.random.default_rng(5).normal(size=(6, 2)), 2)
    model, beta = BoltzmannModel(graph, 3), 1.5
    states, law = exact_law(graph, beta, 2, 3)
    s = model.agreement(states)
    inside = s[:, 1] < 8
    expected = law[inside] @ s[inside, 1] / law[inside].sum()
    pair = ChainPair(
        model, Setting.at(beta, 2), [2], np.random.SeedSequence(0),
        initial=states[inside][0], window=Window(2, -np.inf, 8.0),
    )  # fmt: skip
    pair.advance(20_000)
    assert pair.series(2).max() < 8
    error = pair.resample(pair.series(2)).std()
    assert abs(pair.series(2).mean() - expected) < 5 * max(error, 0.02)


def test_class_weights_count_in_what_a_split_is():
    # Half the weight is half the largest S: chains that differ by as much are no less apart.
    points = np.random.default_rng(0).normal(size=(600, 10))
    graph = NeighborGraph.from_points(points, k_max=60)
    for unit in (1.0, 0.2):
        model = BoltzmannModel(graph, 10, np.full(10, unit))
        pair = ChainPair(model, Setting.at(2.4 / unit, 60), [60], np.random.SeedSequence(1))
        pair.advance(64)
        assert pair.is_split


@pytest.mark.parametrize("weights", [None, (0.6, 1.0, 1.5)])
def test_the_bound_of_a_k_is_one(weights):
    rng = np.random.default_rng(6)
    graph = NeighborGraph.from_points(rng.normal(size=(30, 2)), 4)
    labels = rng.integers(3, size=30)
    prior = UniformPrior(4, 3.0)
    target = LogPosterior(CoherentLikelihood(graph, labels, 3, weights), prior)
    betas = np.linspace(0, 3.0, 2001)
    exact = ExactLikelihood(graph, labels, 3, weights).log_density_grid(betas)
    for k in range(1, 5):
        mass = np.exp(exact[k - 1] + prior.log_density(betas, k))
        integral = np.log(mass.sum() * betas[1])
        assert integral <= bound_posterior(target, k) + 1e-3


def test_a_prior_on_all_but_a_single_beta():
    graph, labels = small_separated()
    prior = FunctionPrior(lambda beta, k: 1.0 * (abs(beta - 2.0) < 0.001), graph.k_max, 4.0)
    found = simulated_posterior(CoherentLikelihood(graph, labels), prior, random_state=0)
    exact = np.exp(ExactLikelihood(graph, labels).log_density_grid(np.array([2.0]))[:, 0])
    allowed = 5 * found.k_probabilities_error + 0.01
    assert np.all(np.abs(found.k_probabilities - exact / exact.sum()) < allowed)
    assert np.isclose(found.beta_mean, 2.0, atol=1e-4)


def test_a_table_is_precise_where_the_prior_puts_the_posterior():
    # The uniform prior's posterior is near beta = 1, this one's near 3.5.
    rng = np.random.default_rng(2)
    points = rng.normal(size=(60, 2))
    labels = (points[:, 0] + rng.normal(size=60) > 0).astype(int)
    graph = NeighborGraph.from_points(points, 6)
    prior = FunctionPrior(lambda beta, k: 1.0 * (beta > 3.4), 6, 4.0)
    given = {"labels": labels, "tolerance": 0.05, "exact": False, "random_state": 0}
    focused = path_table(graph, 2, prior=prior, **given)
    assert max(focused.error(3.5, k) for k in range(1, 7)) < 0.08


def bridged(seed, factor=1.0):
    """Score of a bridge between two beta against exact log Z."""
    graph = NeighborGraph.from_points(np.random.default_rng(4).normal(size=(60, 2)), k_max=3)
    model, seeds = BoltzmannModel(graph, 2), np.random.SeedSequence(seed).spawn(2)
    settings = Setting.at(1.2, 2), Setting.at(1.3, 3)
    pairs = [
        ChainPair(model, setting, [2, 3], own, length=16)
        for setting, own in zip(settings, seeds, strict=True)
    ]
    for pair in pairs:
        pair.advance(512)
    value = np.diff(combine(pairs, []).of_pairs)[:, 0]
    exact = log_normalizer_exact(graph, 1.3, 3, 2) - log_normalizer_exact(graph, 1.2, 2, 2)
    return (value[0] - exact) / (factor * value[1:].std())


def p_value_of_bridges(factor=1.0):
    def p_value(n_runs, seed):
        z = np.array([bridged([seed, at], factor) for at in range(n_runs)])
        # A spread of scores between .8 and 1.2 is let pass, and a bias of a tenth.
        total = np.sum(z**2)
        wide = stats.chi2.sf(total / 1.2**2, n_runs)
        narrow = stats.chi2.cdf(total / 0.8**2, n_runs)
        bias = stats.norm.sf(max(0.0, abs(z.mean()) - 0.1) * np.sqrt(n_runs) / 1.2)
        return min(1.0, 2 * min(wide, narrow, bias))

    return p_value


def test_a_bridge_is_exact_and_knows_its_error():
    check(p_value_of_bridges(), 100)


@functools.cache
def small_problem(at, overlapping=False):
    """Return data small enough for elimination, of many kinds, and the exact posterior."""
    rng = np.random.default_rng([7, at])
    n, k_max, n_classes = int(rng.integers(14, 40)), int(rng.integers(3, 5)), 2 + at % 3
    labels = np.arange(n) % n_classes
    apart = rng.choice([0.0, 1.5] if overlapping else [0.0, 1.5, 4.0])
    points = rng.normal(size=(n, 2)) + apart * np.eye(4)[labels][:, :2]
    weights = None if at % 4 else rng.uniform(0.6, 1.4, size=n_classes)
    graph = NeighborGraph.from_points(points, k_max)
    exact = grid_posterior(ExactLikelihood(graph, labels, n_classes, weights), beta_max=4.0)
    return CoherentLikelihood(graph, labels, n_classes, weights), exact


def scores(problems, seeds, factor=1.0, overlapping=False):
    """Return standard scores of E beta, E k, P(k) and the evidence against exact answers."""
    z = []
    for at in problems:
        likelihood, exact = small_problem(at, overlapping)
        for seed in seeds:
            found = simulated_posterior(
                likelihood, beta_max=4.0, random_state=np.random.SeedSequence([seed, at])
            )
            for name in ("beta_mean", "k_mean", "log_evidence"):
                error = factor * getattr(found, f"{name}_error")
                z.append((getattr(found, name) - getattr(exact, name)) / error)
            k = int(np.argmax(exact.k_probabilities))
            error = factor * found.k_probabilities_error[k]
            z.append((found.k_probabilities[k] - exact.k_probabilities[k]) / error)
    return np.array(z)


def is_honest(z):
    """Whether scores have the spread they should; those of one run are a quarter as many."""
    n = len(z) / 2
    spread = np.sqrt(np.mean(z**2))
    return 0.85 - 3 / np.sqrt(2 * n) < spread < 1.1 + 3 / np.sqrt(2 * n)


def test_errors_mean_what_they_say():
    z = scores(range(10), range(2))
    assert is_honest(z)


@pytest.mark.slow
def test_errors_mean_what_they_say_on_many_data_sets():
    z = scores(range(40), range(10))
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.1
    assert np.abs(z).max() < 4
    # All replicate errors times .7.
    assert np.sqrt(np.mean((z / 0.7) ** 2)) > 1.1


# What trades work against precision; see there.
CONSTANTS = [
    (mesh, "SWEEPS"),
    (simulation, "_TIMES_PER_BATCH"),
    (mesh, "_ASIDE"),
    (mesh, "_STEP"),
    (mesh, "_FEW_DRAWS"),
]


@pytest.mark.parametrize("n_problems", [2, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize(("module", "name"), CONSTANTS)
def test_half_or_twice_a_constant_changes_no_answer(monkeypatch, module, name, factor, n_problems):
    value = getattr(module, name)
    monkeypatch.setattr(module, name, type(value)(factor * value))
    z = scores(range(1, 1 + n_problems), range(2))
    assert is_honest(z)
    assert np.abs(z).max() < 5


def check_two_phases_by_force(monkeypatch, problems, seeds):
    # Every chain is called slow, so that all labels are divided in two at every k. Transitions
    # are where the observed labels are between order and disorder: not those of separate classes.
    monkeypatch.setattr(Pilot, "is_slow", property(lambda self: True))
    posterior = simulated_posterior(
        small_problem(problems[0], True)[0], beta_max=4.0, random_state=0
    )
    assert posterior.info["warnings"][0].startswith("a first-order transition")
    z = scores(problems, seeds, overlapping=True)
    assert is_honest(z)
    assert np.abs(z).max() < 5
    assert len(z) < 100 or np.sqrt(np.mean(z**2)) < 1.2
    # A tie between the phases that is off is seen.
    true = Division.log_z
    monkeypatch.setattr(Division, "log_z", lambda *given: true(*given) + [[0.0], [1.0]])
    assert not is_honest(scores(problems, seeds, overlapping=True))


@pytest.mark.filterwarnings("ignore::bayesknn.PhaseTransitionWarning")
@pytest.mark.parametrize("n_problems", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_two_phases_by_force_give_the_exact_posterior(monkeypatch, n_problems):
    check_two_phases_by_force(monkeypatch, range(1, 1 + n_problems), [0])


@pytest.mark.filterwarnings("ignore::bayesknn.PhaseTransitionWarning")
def test_in_two_phases_beta_varies_as_in_both_together(monkeypatch):
    # Far from where both weigh something, chains that may not leave a phase stand at its wall.
    monkeypatch.setattr(Pilot, "is_slow", property(lambda self: True))
    points, labels = np.random.default_rng(8).normal(size=(30, 2)), np.arange(30) % 3
    graph = NeighborGraph.from_points(points, 4)
    exact, betas = ExactLikelihood(graph, labels, 3), np.linspace(0, 4, 2001)
    target = LogPosterior(CoherentLikelihood(graph, labels, 3), UniformPrior(4, 4.0))
    with Simulation(target.model, np.random.SeedSequence(0)) as simulation:
        search = CandidateSearch(simulation, target)
        candidates = search.run()
    assert search.division is not None
    for candidate in candidates:
        masses = softmax(exact.log_density(betas, candidate.k))
        sd = np.sqrt(masses @ (betas - masses @ betas) ** 2)
        assert candidate.sd == pytest.approx(sd, rel=0.3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesknn.PhaseTransitionWarning")
def test_two_phases_by_force_give_the_exact_posterior_of_many(monkeypatch):
    check_two_phases_by_force(monkeypatch, range(20), [0, 1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesknn.PhaseTransitionWarning")
def test_five_overlapping_classes_on_many_points():
    points, labels = make_blobs(5000, centers=5, cluster_std=3.0, random_state=2)
    fits = []
    for seed in range(2):
        fitted = BayesianKNeighborsClassifier(max_neighbors=100, beta_max=6.2, random_state=seed)
        fits.append(fitted.fit(points, labels))
        assert fits[-1].diagnostics_["warnings"][0].startswith("a first-order transition")
    first, second = (fitted.k_probabilities_ for fitted in fits)
    error = np.hypot(*(fitted.k_probabilities_error_ for fitted in fits))
    assert np.all(np.abs(first - second) < 4 * error + 1e-3)
    assert error.max() < 0.05
    # A ladder of its own at k = 32, under the same prior: to .5.
    for fitted in fits:
        at_32 = fitted.log_evidence_ + np.log(fitted.k_probabilities_[31])
        assert abs(at_32 - (-5189.3 + np.log(1000 / 100))) < 4


@pytest.mark.parametrize(
    ("factor", "n_runs"), [(0.5, 60), pytest.param(0.7, 250, marks=pytest.mark.slow)]
)
def test_errors_that_are_too_small_are_rejected(factor, n_runs):
    assert rejects(p_value_of_bridges(factor), n_runs)


def test_the_errors_of_beta_and_k_are_not_swapped(monkeypatch):
    monkeypatch.setattr(GridPosterior, "beta_mean_error", 0.125)
    monkeypatch.setattr(GridPosterior, "k_mean_error", 0.5)
    points = np.random.default_rng(0).normal(size=(40, 2))
    fitted = BayesianKNeighborsClassifier(max_neighbors=4, beta_max=3.0, random_state=0)
    fitted.fit(points, points[:, 0] > 0)
    assert fitted.diagnostics_["mcse"] == {"beta": 0.125, "k": 0.5}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesknn.PhaseTransitionWarning")
@pytest.mark.parametrize("seed", range(3))
def test_phases_that_are_far_apart_on_many_points(seed):
    # Of 5,000 points 27 % of the neighbours agree in one phase and 62 % in the other. Log ratios
    # of P(k) by plain Swendsen-Wang in each phase, integrated from k to k in the rates of both:
    # -3.8 +- .2 from 47 to 40 and -2.1 +- .2 from 47 to 54.
    points, labels = make_blobs(5000, centers=5, cluster_std=3.0, random_state=2)
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, 100), labels)
    posterior = simulated_posterior(likelihood, beta_max=6.2, random_state=seed)
    p, error = posterior.k_probabilities, posterior.k_probabilities_error
    for k, ratio, sd in ((40, -3.8, 0.2), (54, -2.1, 0.2)):
        found = np.log(p[k - 1] / p[46])
        errors = [error[at] / p[at] for at in (k - 1, 46)]
        assert abs(found - ratio) < 4 * np.hypot(sd, np.hypot(*errors))


@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.PhaseTransitionWarning")
def test_the_budget_of_sweeps_is_one(monkeypatch):
    """Pilots, paths and first runs did not count: 8e5 sweeps were made for an allowed 3e5."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 20
    points = 1.5 * rng.normal(size=(20, 5))[labels] + rng.normal(size=(200, 5))
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=10), labels)
    monkeypatch.setattr("bayesknn.posterior.quadrature.grid._MAX_SWEEPS", 3e5)
    posterior = simulated_posterior(likelihood, beta_max=6.0, random_state=0)
    # One round more than allowed, at most.
    assert posterior.info["n_sweeps"] < 1.3 * 3e5
    assert any("ended before it was sure" in words for words in posterior.info["warnings"])
