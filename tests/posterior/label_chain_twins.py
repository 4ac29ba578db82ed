"""The exchange and auxiliary-variable chains, one move at a time in Python.

Ratios are those of the reference; proposals and random numbers those of the kernels.
Each takes its log acceptance ratio as an argument, so that a mutant is a twin with another one.
"""

import numpy as np
from scipy.special import expit, log_expit

from bayesknn import reference
from bayesknn._utils.random import key_of_sweep, random_bits
from bayesknn.labels.sampling import draw_labels
from bayesknn.labels.swendsen_wang import sweep_clusters
from bayesknn.posterior.mcmc.proposals import propose
from tests.model.enumeration import as_reference
from tests.posterior.test_proposals import slow_adapt

# Of the random numbers of a move those of proposals come first, up to 8.
DRAW_SLOT, REFRESH_SLOT = 8, 9


def beta_of(theta, beta_max):
    return beta_max * float(expit(theta))


def log_jacobian(theta):
    return float(log_expit(theta) + log_expit(-theta))


def acceptance_probability(log_ratio):
    return float(np.exp(min(log_ratio, 0.0)))


class Model:
    """S_k of any labels, and labels drawn at (beta, k) with the numbers of a move."""

    def __init__(self, sampler):
        self.sampler, self.likelihood = sampler, sampler.likelihood
        like = sampler.likelihood
        self.lists = as_reference(like.graph, like.n_classes, like.class_weight)
        self.drawer = sampler.label_sampler.compiled()

    def agreement(self, labels, k):
        return float(reference.agreement(*self.lists, labels, int(k)))

    def potential(self, labels, beta, k):
        return reference.potential(*self.lists, labels, beta, int(k))

    def key(self, key, move, slot):
        stream = np.uint64(key_of_sweep(np.uint64(key), np.uint64(move + 1)))
        return np.uint64(random_bits(stream, np.uint64(slot)))

    def draw(self, beta, k, key, move):
        assert draw_labels(self.drawer, beta, int(k), self.key(key, move, DRAW_SLOT)) == 0
        return self.drawer.labels.copy()

    def refresh(self, labels, beta, k, key, move, n_sweeps):
        labels = labels.copy()
        scratch = self.sampler.label_sampler.new_workspace()
        key = self.key(key, move, REFRESH_SLOT)
        d = self.drawer
        for sweep in range(n_sweeps):
            sweep_clusters(
                d.neighbors, int(k), float(beta) * d.unit, d.n_classes, d.class_weight, key,
                np.uint64(sweep), labels, scratch,
            )  # fmt: skip
        return labels

    def log_prior(self, beta, k):
        return float(self.sampler.prior.log_density(beta, k))


def log_exchange(model, beta, k, to, z):
    at, labels = (beta, k), model.likelihood.labels
    return reference.log_exchange_ratio(model.potential, labels, z, at, (to.beta, to.k))


def run_exchange_twin(
    sampler, key, n_moves, log_ratio=log_exchange, hastings=True, draws_at_proposal=True
):
    """Return beta and k after each move."""
    model, walk = Model(sampler), sampler.walk
    theta, k, _, tuning = sampler.init(key)
    betas, ks = np.empty(n_moves), np.empty(n_moves, int)
    for move in range(n_moves):
        beta = beta_of(theta, walk.beta_max)
        to = propose(walk, tuning, theta, k, key, move)
        acceptance = 0.0
        log_prior = model.log_prior(to.beta, to.k)
        if log_prior > -np.inf:
            at = (to.beta, to.k) if draws_at_proposal else (beta, k)
            z = model.draw(*at, key, move)
            correction = to.log_correction
            if not hastings:
                correction = log_jacobian(to.theta) - log_jacobian(theta)
            acceptance = acceptance_probability(
                log_ratio(model, beta, k, to, z)
                + log_prior - model.log_prior(beta, k) + correction
            )  # fmt: skip
        if to.uniform < acceptance:
            theta, k = to.theta, int(to.k)
        tuning = slow_adapt(walk, tuning, theta, k, acceptance, move)
        betas[move], ks[move] = beta_of(theta, walk.beta_max), k
    return betas, ks


def log_auxiliary(model, plug_in, beta, k, to, z, drawn):
    at, labels = (beta, k), model.likelihood.labels
    return reference.log_auxiliary_ratio(
        model.potential, labels, z, drawn, at, (to.beta, to.k), plug_in
    )


def run_auxiliary_twin(
    sampler, key, n_moves, log_ratio=log_auxiliary, keeps_labels=True, refreshes_at_plug_in=True
):
    """Return beta, k and the plug-in after each move."""
    model, walk = Model(sampler), sampler.walk
    theta, k, _, tuning, _, z = sampler.init(key)
    beta_hat, k_hat = sampler.plug_in
    betas, ks, plug_ins, since = [], [], [], []
    for move in range(n_moves):
        beta = beta_of(theta, walk.beta_max)
        at = (beta_hat, k_hat) if refreshes_at_plug_in else (beta, k)
        z = model.refresh(z, *at, key, move, sampler.n_refresh)
        to = propose(walk, tuning, theta, k, key, move)
        acceptance, tuned = 0.0, 0.0
        log_prior = model.log_prior(to.beta, to.k)
        if log_prior > -np.inf:
            drawn = model.draw(to.beta, to.k, key, move)
            others = log_prior - model.log_prior(beta, k) + to.log_correction
            log_rho = log_ratio(model, (beta_hat, k_hat), beta, k, to, z, drawn)
            acceptance = acceptance_probability(log_rho + others)
            tuned = acceptance_probability(log_exchange(model, beta, k, to, drawn) + others)
        if to.uniform < acceptance:
            theta, k = to.theta, int(to.k)
            z = drawn if keeps_labels else z
        if move < walk.n_warmup:
            tuning = slow_adapt(walk, tuning, theta, k, tuned, move)
        beta = beta_of(theta, walk.beta_max)
        since.append((k, beta))
        if move + 1 in sampler.updates:
            values = sorted(one for one, _ in since)
            k_hat = values[(len(values) - 1) // 2]
            beta_hat = np.mean([one for at_k, one in since if at_k == k_hat])
            since = []
        betas.append(beta)
        ks.append(k)
        plug_ins.append((beta_hat, k_hat))
    return np.array(betas), np.array(ks), plug_ins
