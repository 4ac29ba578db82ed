"""log Z at the far end of a path, where most components of the graph have one class.

Call a labelling plain if every connected component of the graph of k has one class throughout.
The plain labellings weigh ``W(beta) = prod over components c of sum over g of exp(beta a_g n_c)``
together, so ``log Z = log W - log P(plain)`` at every beta, with no limit taken. Given the
clusters of a Swendsen-Wang sweep the colours are independent, and the probability that the
labelling is plain is known: ``G ** (components - clusters)`` without class weights. Its average
is an estimate of P(plain) that is precise once there are only a few clusters too many. The path
can therefore stop there: no tail is cut off.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from bayesknn.log_z.chains import N_CHAINS, ChainPair
from bayesknn.log_z.resampling import N_REPLICATES, join
from bayesknn.model import BoltzmannModel


def log_plain_weight(model: BoltzmannModel, components: np.ndarray, beta: float) -> float:
    """Return log W(beta), the total weight of the plain labellings."""
    sizes = np.bincount(components)
    return float(logsumexp(beta * np.outer(sizes, model.weights), axis=1).sum())


def clusters_too_many(pair: ChainPair) -> float:
    """Return about log(1 + relative variance) of a record of P(plain).

    It comes from the mean number of clusters too many, as if that were Poisson: where a few
    records dominate the others, their own variance does not show it.
    """
    return float(pair.plain[:, :, 1].mean() * (1 - 1 / pair.model.n_classes) ** 2)


def log_z_from_plain(pair: ChainPair) -> np.ndarray:
    """Return log Z at a pair that records P(plain), in every replicate."""
    chance = pair.plain[:, :, 0]
    averages = pair.resample(chance)
    rng = np.random.default_rng([int(pair.keys[-1]), 1])
    unseen = rng.normal(size=N_REPLICATES - 1) / (N_CHAINS * pair.n_records)
    averages[1:] += averages[0] * unseen
    weight = log_plain_weight(pair.model, pair.components, pair.beta)
    # The log of a mean is on average too low by half the mean's relative variance.
    batches = join(pair.batch(chance))
    bias = batches.var(ddof=1) / len(batches) / averages[0] ** 2 / 2
    return weight - np.log(np.maximum(averages, averages[0] / 20)) - bias
