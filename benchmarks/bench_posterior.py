"""Times of chains on (beta, k) that draw labels, with each sampler of the labels."""

import math
import time

import numpy as np

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels.sampling import LabelSampler
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior.mcmc.auxiliary import AuxiliarySampler
from bayesknn.posterior.mcmc.diagnostics import effective_sample_size
from bayesknn.posterior.mcmc.exchange import ExchangeSampler
from bayesknn.posterior.mcmc.proposals import PAPER_R, PAPER_TAU, plan_walk
from bayesknn.posterior.mcmc.runner import run_chains
from benchmarks.harness import Report, interleave

BETA_MAX, K_MAX = 4.0, 125
# Numbers of moves that take about the same time with each sampler.
N_MOVES = {"swendsen-wang": 6000, "perfect": 1000, "gibbs": 300}
N_ITERATIONS = 50_000
START = (math.log(1.45 / (BETA_MAX - 1.45)), 14)


def ripley() -> CoherentLikelihood:
    data = load_ripley()
    graph = NeighborGraph.from_points(data.X_train, k_max=K_MAX)
    return CoherentLikelihood(graph, np.asarray(data.y_train))


def make_sampler(likelihood, label_sampler, scheme, n_warmup, tau=None, r=None, **auxiliary):
    prior = UniformPrior(K_MAX, BETA_MAX)
    walk, tuning = plan_walk(BETA_MAX, K_MAX, scheme, n_warmup, tau, r)
    sampler = LabelSampler(likelihood.model, likelihood.labels, label_sampler)
    cls = AuxiliarySampler if auxiliary else ExchangeSampler
    return cls(prior, walk, tuning, 1, likelihood, sampler, **auxiliary)


def run(report: Report) -> None:
    likelihood = ripley()
    compare_label_samplers(report, likelihood)
    compare_chains(report, likelihood)


def compare_label_samplers(report: Report, likelihood: CoherentLikelihood) -> None:
    report.section(
        "Exchange on Ripley's data, the paper's moves (K = 125, beta_max = 4, tau^2 = .05, r = 3)"
    )
    key = spawn_keys(0, 1)[0]

    def advance(label_sampler):
        sampler = make_sampler(likelihood, label_sampler, "joint", 0, PAPER_TAU, PAPER_R)
        state = sampler.start(*START)
        sampler.advance(state, key, 0, N_MOVES[label_sampler])

    best = interleave({name: lambda name=name: advance(name) for name in N_MOVES}, repeats=5)
    each = {name: seconds / N_MOVES[name] for name, seconds in best.items()}
    against = "the paper's 500 Gibbs sweeps a draw, by the same code"
    for name, at_least in (("swendsen-wang", 10.0), ("perfect", 1.5)):
        report.line(
            f"speed of exchange with {name} draws",
            each["gibbs"] / each[name],
            at_least=at_least,
            against=against,
        )
    for name, seconds in each.items():
        report.line(f"{N_ITERATIONS:,} iterations, {name}", seconds * N_ITERATIONS, "s")


def compare_chains(report: Report, likelihood: CoherentLikelihood) -> None:
    report.section("Effective draws a second on Ripley's data, adapted moves, one core")
    plug_in = {"plug_in": (2.2805, 53), "updates": (150, 300, 600, 1200, 2400), "n_refresh": 3}
    chains = {
        "exchange, swendsen-wang": ("swendsen-wang", 24_000, {}),
        "exchange, perfect": ("perfect", 8000, {}),
        "auxiliary, swendsen-wang": ("swendsen-wang", 24_000, plug_in),
        "auxiliary, perfect": ("perfect", 8000, plug_in),
    }
    for name, (label_sampler, n_draws, auxiliary) in chains.items():
        n_warmup = 4000
        sampler = make_sampler(likelihood, label_sampler, "alternating", n_warmup, **auxiliary)
        start = time.perf_counter()
        draws = run_chains(sampler, 2, n_warmup + n_draws, random_state=0).draws
        seconds = (time.perf_counter() - start) * n_draws / (n_draws + n_warmup)
        for parameter in ("beta", "k"):
            ess = effective_sample_size(draws[parameter][:, n_warmup:])
            report.line(f"{name}: {parameter}", ess / seconds, "/s")
