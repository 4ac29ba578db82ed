"""All draws together: against exact log Z, a slow twin, and the errors that are claimed."""

import functools
import warnings

import numpy as np
import pymbar
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.mbar import combine, guess, solve
from bayesknn.log_z.records import Setting
from bayesknn.model import BoltzmannModel, log_normalizer_exact

KS = [1, 2, 3, 4]


@functools.cache
def small_model(at):
    """Return a model of a few dozen points, with two to four classes, with and without weights."""
    rng = np.random.default_rng([3, at])
    n_classes = 2 + at % 3
    weights = None if at % 4 else rng.uniform(0.7, 1.3, size=n_classes)
    graph = NeighborGraph.from_points(rng.normal(size=(int(rng.integers(16, 40)), 2)), k_max=4)
    return BoltzmannModel(graph, n_classes, weights)


def make_chains(model, settings, seed, n_records=400):
    pairs = [
        ChainPair(model, setting, KS, seeds, length=20)
        for setting, seeds in zip(
            settings, np.random.SeedSequence(seed).spawn(len(settings)), strict=True
        )
    ]
    for pair in pairs:
        pair.advance(n_records)
        pair.time = max(pair.autocorrelation_time(), 2.0)
    return pairs


# Two k, one between them and one beyond, at beta between the chains' and a little beyond.
SETTINGS = [Setting.at(beta, k) for k in (2, 4) for beta in (0.9, 1.3)]
TARGETS = [Setting.at(beta, k) for k in (2, 3, 4) for beta in (0.8, 1.1, 1.4)]


@functools.cache
def find_exact(at):
    """Return exact log Z at the targets less that at the first chains."""
    model = small_model(at)
    values = [
        log_normalizer_exact(
            model.graph, each.beta, each.ks[0], model.n_classes, model.class_weight
        )
        for each in (SETTINGS[0], *TARGETS)
    ]
    return np.array(values[1:]) - values[0]


def find_scores(at, seed):
    """Return standard scores of log Z at the targets less that at the first chains."""
    found = combine(make_chains(small_model(at), SETTINGS, [at, seed]), TARGETS)
    assert found.n_effective.min() > 20
    differences = found.of_targets - found.of_pairs[:, :1]
    return (differences[0] - find_exact(at)) / differences[1:].std(axis=0)


@pytest.mark.parametrize("n_models", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_log_z_is_exact_within_errors_that_mean_what_they_say(n_models):
    """Scores of one run hang together: nine of them are worth about four."""
    z = np.array([find_scores(at, seed) for at in range(n_models) for seed in range(4)])
    spread, allowed = np.sqrt(np.mean(z**2)), 3 / np.sqrt(2 * 4 * len(z))
    assert 0.85 - allowed < spread < 1.1 + allowed
    assert np.abs(z).max() < 5
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    # Errors times .6 are found out.
    assert spread / 0.6 > 1.1 + allowed


def solve_slowly(log_weights, weights, n_effective):
    """Put the formula into itself until it gives itself back."""
    f = np.zeros(log_weights.shape[1])
    for _ in range(5000):
        log_m = logsumexp(log_weights - f, axis=1, b=n_effective)
        f = logsumexp(log_weights - log_m[:, None], axis=0, b=weights[:, None])
        f -= f[0]
    return f


def test_newton_finds_what_the_formula_gives_back():
    rng = np.random.default_rng(0)
    centres, n_effective = np.array([0.0, 1.0, 2.5, 3.0]), np.array([30.0, 100.0, 60.0, 45.0])
    x = np.concatenate([rng.normal(centre, 1.0, size=80) for centre in centres])
    log_weights = -((x[:, None] - centres) ** 2) / 2 + [0.0, 3.0, -2.0, 40.0]
    weights = np.repeat(n_effective / 80, 80)
    expected = solve_slowly(log_weights, weights, n_effective)
    for start in (np.zeros(4), 30 * rng.normal(size=4)):
        found, is_settled = solve(log_weights, weights, n_effective, start)
        assert is_settled
        assert np.allclose(found - found[0], expected, atol=1e-5)


def test_log_z_that_does_not_settle_is_told(monkeypatch):
    monkeypatch.setattr("bayesknn.log_z.mbar._MAX_STEPS", 2)
    x = np.random.default_rng(0).normal(size=(80, 1)) * [0.0, 1.0]
    assert not solve(x, np.full(80, 0.5), np.array([20.0, 20.0]), np.array([0.0, 50.0]))[1]
    monkeypatch.setattr("bayesknn.log_z.mbar._MAX_STEPS", 0)
    ripley = load_ripley()
    fit = BayesianKNeighborsClassifier(max_neighbors=12, beta_max=3.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit.fit(ripley.X_train, ripley.y_train)
    assert any("did not settle" in sentence for sentence in fit.diagnostics_["warnings"])


@pytest.mark.parametrize("at", range(3))
def test_log_z_is_that_of_pymbar_from_the_same_draws(at):
    pairs = make_chains(small_model(at), SETTINGS, at, n_records=100)
    records = [pair.of_labels.reshape(-1, len(KS)) for pair in pairs]
    s = np.concatenate(records)
    log_weights = np.column_stack([each.rates[0] * s[:, each.ks[0] - 1] for each in SETTINGS])
    counts = np.array([len(part) for part in records])
    theirs = -pymbar.MBAR(-log_weights.T, counts, solver_protocol="robust").f_k
    start = theirs + [0, 1, 2, 3]
    ours, _ = solve(log_weights, np.ones(len(log_weights)), counts.astype(float), start)
    assert np.allclose(ours - ours[0], theirs - theirs[0], atol=1e-6)


def test_many_settings_that_overlap_little_are_solved_from_the_first_guess():
    # Normal laws three deviations apart: log Z is half the square of the mean.
    means, n_effective = 3.0 * np.arange(40), np.full(40, 60.0)
    x = means[:, None] + np.random.default_rng(0).normal(size=(40, 60))
    log_weights = [np.outer(part, means) for part in x]
    start = guess(log_weights, n_effective)
    found, is_settled = solve(np.concatenate(log_weights), np.ones(x.size), n_effective, start)
    assert is_settled
    terms = np.concatenate(log_weights) - found
    shares = np.exp(terms - logsumexp(terms, axis=1, keepdims=True))
    assert np.allclose(shares.sum(axis=0), n_effective, rtol=1e-6)
    # The steps from one to the next are known to .3 each.
    assert np.abs(np.diff(found - means**2 / 2)).max() < 1.5


def test_two_settings_give_bennetts_ratio():
    """Where E0[1 / (1 + exp(c - D))] = E1[1 / (1 + exp(D - c))] for chains worth the same."""
    model = small_model(1)
    pairs = make_chains(model, [Setting.at(1.0, 2), Setting.at(1.2, 3)], 0)
    for pair in pairs:
        pair.time = 2.0
    c = np.diff(combine(pairs, []).of_pairs[0])[0]
    shares = []
    for pair in pairs:
        s = pair.of_labels + (pair.of_clusters - pair.of_labels).mean(axis=(0, 1))
        shares.append(1.2 / 3 * s[..., 2] - 1.0 / 2 * s[..., 1])
    gap = np.mean(1 / (1 + np.exp(c - shares[0]))) - np.mean(1 / (1 + np.exp(shares[1] - c)))
    assert abs(gap) < 1e-6


def test_a_setting_between_two_k_is_one_like_any_other():
    model = small_model(1)
    between = Setting((2, 4), (0.25, 0.15))
    ends = [Setting.at(1.0, 2), Setting.at(1.2, 4)]
    direct = combine(make_chains(model, ends, 0), []).of_pairs
    by_way = combine(make_chains(model, [ends[0], between, ends[1]], 1), []).of_pairs
    difference = np.diff(direct)[:, 0] - (by_way[:, 2] - by_way[:, 0])
    assert abs(difference[0]) < 5 * np.hypot(direct[1:, 1].std(), by_way[1:, 2].std())


def test_errors_do_not_grow_with_beta_where_labels_are_frozen():
    # Twenty tight clusters: at beta = 4 few of them have two classes, further on none.
    rng = np.random.default_rng(0)
    points = np.repeat(100.0 * np.arange(20), 6)[:, None] + rng.normal(size=(120, 2))
    model = BoltzmannModel(NeighborGraph.from_points(points, k_max=4), 2)
    betas = [4.0, 6.0, 20.0]
    exact = [log_normalizer_exact(model.graph, beta, 3, 2) for beta in betas]
    scores = []
    for seed in range(6):
        sampled = make_chains(model, [Setting.at(beta, 3) for beta in (3.5, 4.5)], seed)
        found = combine(sampled, [Setting.at(beta, 3) for beta in betas]).of_targets
        steps = found[:, 1:] - found[:, :1]
        near, far = steps[1:].std(axis=0)
        assert far < 2 * near
        scores.append((steps[0] - np.diff(exact).cumsum()) / [near, far])
    assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 2


def test_few_draws_are_told():
    sampled = make_chains(small_model(1), [Setting.at(1.0, 2)], 0)
    near, far = combine(sampled, [Setting.at(1.0, 2), Setting.at(3.0, 2)]).n_effective
    assert near == pytest.approx(sampled[0].n_effective)
    assert far < near / 20
