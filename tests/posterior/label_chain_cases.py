"""Small graphs on which the posterior is known, and a test of chains that draw labels there."""

from functools import cache

import numpy as np
from scipy import stats

from bayesknn._utils.random import seeds_for, spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.labels.sampling import LabelSampler
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior.mcmc.auxiliary import AuxiliarySampler
from bayesknn.posterior.mcmc.exchange import ExchangeSampler
from bayesknn.posterior.mcmc.proposals import plan_walk
from bayesknn.posterior.mcmc.runner import run_chains
from tests.posterior.toy import exact_moments, standard_scores
from tests.statistical import p_value_of_z

K_MAX, BETA_MAX, N_WARMUP = 4, 2.5, 200
PRIOR = UniformPrior(K_MAX, BETA_MAX)
WEIGHTS = {2: [0.7, 1.6], 3: [0.6, 1.0, 1.7]}
# Every sampler, two and three classes, and class weights wherever the sampler allows them. Each
# chain has some of the combinations, since each takes seconds to compile.
EXCHANGE_CASES = [
    ("swendsen-wang", 2, False),
    ("swendsen-wang", 3, False),
    ("perfect", 2, False),
    ("perfect", 3, False),
    ("perfect", 2, True),
    ("gibbs", 3, True),
]
AUXILIARY_CASES = [
    ("swendsen-wang", 3, True),
    ("perfect", 2, False),
    ("perfect", 3, False),
    ("gibbs", 2, False),
    ("gibbs", 3, False),
]


@cache
def make_likelihood(
    cls=CoherentLikelihood, n_classes=2, weighted=False, n_points=9, seed=3, apart=0.8
):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, n_classes, n_points))
    labels[0], labels[-1] = 0, n_classes - 1
    points = rng.normal(size=(n_points, 2)) + apart * labels[:, None]
    graph = NeighborGraph.from_points(points, K_MAX)
    return cls(graph, labels, n_classes, WEIGHTS[n_classes] if weighted else None)


def make_sampler(
    likelihood=None, label_sampler="perfect", prior=PRIOR, scheme="alternating", thin=4, tau=None,
    r=None, n_sweeps=None, n_warmup=N_WARMUP, **auxiliary,
):  # fmt: skip
    """Make an exchange sampler, or with a plug-in an auxiliary one."""
    likelihood = likelihood or make_likelihood()
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup, tau, r)
    walk = walk._replace(n_warmup=n_warmup * thin)
    sampler = LabelSampler(likelihood.model, likelihood.labels, label_sampler, n_sweeps)
    parts = (prior, walk, tuning, thin, likelihood, sampler)
    if not auxiliary:
        return ExchangeSampler(*parts)
    settings = {"updates": (), "n_refresh": 2, **auxiliary}
    return AuxiliarySampler(*parts, **settings)


def first_key(sampler, seed):
    """Return the key of the first chain of a run with this random_state."""
    return spawn_keys(seeds_for(seed, sampler.name, sampler.describe_data()), 1)[0]


@cache
def exact_likelihood(like):
    return ExactLikelihood(like.graph, like.labels, like.n_classes, like.class_weight)


@cache
def exact_posterior(likelihood, prior):
    return exact_moments(exact_likelihood(likelihood), prior)


def p_value_of(sampler, run=None):
    """Return a test of the sampler, or of ``run(key, n_moves)``, against the exact posterior."""
    exact = exact_posterior(sampler.likelihood, sampler.prior)

    def p_value(n_draws, seed):
        n_iterations = sampler.n_warmup + n_draws
        if run is None:
            draws = run_chains(sampler, 4, n_iterations, random_state=seed).draws
        else:
            kept = slice(sampler.thin - 1, None, sampler.thin)
            paths = [run(key, n_iterations * sampler.thin) for key in spawn_keys(seed, 4)]
            draws = {
                name: np.array([path[at][kept] for path in paths])
                for at, name in enumerate(("beta", "k"))
            }
        return p_value_of_z(standard_scores(draws, sampler.n_warmup, exact))

    return p_value


def p_value_of_means(sampler, n_chains=64):
    """Return a test by the means of many chains, for those that stand still for long.

    The errors that such chains find for themselves are too small: they have seen few long stands.
    """
    exact = exact_posterior(sampler.likelihood, sampler.prior)

    def p_value(n_draws, seed):
        chains = run_chains(sampler, n_chains, sampler.n_warmup + n_draws, random_state=seed)
        beta, k = (chains.draws[name][:, sampler.n_warmup :] for name in ("beta", "k"))
        values = [beta, *(k == one for one in range(1, sampler.walk.k_max))]
        exact_means = exact[[0, *range(2, 1 + sampler.walk.k_max)]]
        means = np.array([one.mean(axis=1) for one in values])
        p_values = stats.ttest_1samp(means, exact_means[:, None], axis=1).pvalue
        return min(len(values) * p_values.min(), 1.0)

    return p_value


def assert_same_chains(one, other):
    assert one.draws.keys() == other.draws.keys()
    for name in one.draws:
        np.testing.assert_array_equal(one.draws[name], other.draws[name])
    for a, b in zip(one.states, other.states, strict=True):
        for mine, its in zip(a, b, strict=True):
            np.testing.assert_equal(mine, its)
