"""The auxiliary-variable scheme of Moller, Pettitt, Reeves and Berthelsen (2006) (Section 3.4).

A chain on (beta, k, z) whose law is the posterior of (beta, k) times the plug-in law of the
auxiliary labels, g(z) = f(z | beta_hat, k_hat). With (beta', k') it proposes z' ~ f(. | beta', k'),
so that the constants Z cancel in (SPEC corrects the paper's first factor to Z(beta,k)/Z(beta',k'))

    rho = exp{beta'/k' S_k'(y) - beta/k S_k(y) + beta_hat/k_hat (S_k_hat(z') - S_k_hat(z))
              + beta/k S_k(z) - beta'/k' S_k'(z')}
        * pi(beta', k') Q(k', k) J(theta') / {pi(beta, k) Q(k, k') J(theta)}.

The plug-in starts at the maximum of the pseudo-likelihood and is replaced by an average over the
chain in a first stage (Section 4). Wherever it is, the chain is right, but with g far from
f(. | beta, k) it sticks: a z that g finds likely and f does not is not given up for thousands of
moves. Given (beta, k) the law of z is g itself, so each move here first refreshes z by a few
Swendsen-Wang sweeps at the plug-in, which leave g invariant. That costs little and frees the
chain; without them (``n_refresh=0``) the scheme is the one of the paper.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesknn._jit import kernel
from bayesknn._validation import check_count
from bayesknn.labels.bonds import _bond_rate
from bayesknn.labels.random import _bits
from bayesknn.labels.swendsen_wang import _sweep
from bayesknn.likelihood.coherent import CoherentLikelihood
from bayesknn.model import as_prior
from bayesknn.posterior.auxiliary_labels import plan_label_draws
from bayesknn.posterior.chains import sample_posterior
from bayesknn.posterior.compiled_prior import _log_prior
from bayesknn.posterior.drawer import _agreement_at, _draw_labels
from bayesknn.posterior.exchange import _log_exchange
from bayesknn.posterior.label_chains import DRAW_SLOT, REFRESH_SLOT, LabelChain
from bayesknn.posterior.plug_in import (
    PlugIn,
    _follow,
    check_plug_in,
    first_plug_in,
    plan_updates,
)
from bayesknn.posterior.proposals import (
    Tuning,
    _acceptance,
    _adapt,
    _beta_of,
    _iteration_key,
    _propose,
    plan_walk,
)

if TYPE_CHECKING:
    import xarray

# A chain that stands still for more than this share of its draws, and so many, is stuck.
_LONGEST_STAND, _SHORTEST_STAND = 0.02, 20


class Moves(NamedTuple):
    """Where each move of a block ended, how it went, and the plug-in after it."""

    beta: np.ndarray
    k: np.ndarray
    accepted: np.ndarray
    acceptance: np.ndarray
    plug_in_beta: np.ndarray
    plug_in_k: np.ndarray


class State(NamedTuple):
    """What the next move needs.

    Attributes
    ----------
    theta : float
        logit(beta / beta_max).
    k : int
    log_prior : float
        At (beta, k).
    plug_in : PlugIn
    labels : ndarray of shape (n,)
        The auxiliary labels z, in the order of the sampler's field.
    tuning : Tuning
    """

    theta: float
    k: int
    log_prior: float
    plug_in: PlugIn
    labels: np.ndarray
    tuning: Tuning


@dataclass(frozen=True)
class AuxiliarySampler(LabelChain):
    """The auxiliary-variable scheme; see :class:`bayesknn.posterior.chains.Sampler`.

    Attributes
    ----------
    plug_in : tuple of (float, int)
        The first (beta_hat, k_hat).
    updates : tuple of int
        The numbers of moves after which it is replaced.
    n_refresh : int
    """

    plug_in: tuple[float, int]
    updates: tuple[int, ...]
    n_refresh: int
    name = "auxiliary"

    def start(self, theta: float, k: int, log_prior: float) -> State:
        """Return the state at (theta, k), with the data as the auxiliary labels."""
        counts, beta_sums = np.zeros(self.walk.k_max, np.int64), np.zeros(self.walk.k_max)
        plug_in = PlugIn(*self.plug_in, counts, beta_sums)
        return State(theta, k, log_prior, plug_in, self.label_draws.observed, self.tuning)

    def new_moves(self, size: int) -> Moves:
        """Allocate the record of so many moves."""
        real, whole = np.empty((4, size)), np.empty((2, size), np.int64)
        return Moves(real[0], whole[0], real[1], real[2], real[3], whole[1])

    def run(self, state, key, first, last, problem, given, drawer, moves):
        """Make the moves ``first..last - 1``."""
        # The moves write to these arrays; the state before must stay as it is.
        plug_in = state.plug_in._replace(
            counts=state.plug_in.counts.copy(), beta_sums=state.plug_in.beta_sums.copy()
        )
        state = state._replace(labels=state.labels.copy(), plug_in=plug_in)
        refresh = self.label_draws.swendsen_wang(self.n_refresh)
        updates = np.array(self.updates, np.int64)
        return _run_auxiliary(
            state, key, first, last, problem, given, drawer, refresh, updates, moves
        )

    def doubts(self, tree: xarray.DataTree) -> list[str]:
        """Say what may be wrong with the draws."""
        return _find_stands(tree) + super().doubts(tree)

    def settings(self) -> str:
        """Describe what a checkpoint must agree in."""
        beta, k = self.plug_in
        updates = " ".join(map(str, self.updates))
        return (
            f"{super().settings()}, plug_in=({beta:.9g}, {k}), updates=[{updates}], "
            f"n_refresh={self.n_refresh}"
        )


def auxiliary(
    likelihood: CoherentLikelihood,
    prior: Any = None,
    *,
    beta_max: float | None = None,
    label_sampler: str = "perfect",
    n_sweeps: int | None = None,
    plug_in: tuple[float, int] | None = None,
    n_first_stage: int = 500,
    n_plug_ins: int = 6,
    n_refresh: int = 3,
    scheme: str = "alternating",
    n_chains: int = 4,
    n_draws: int = 5000,
    n_warmup: int = 1000,
    thin: int = 10,
    tau: float | None = None,
    r: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    verbose: int = 0,
) -> xarray.DataTree:
    """Sample (beta, k) by the auxiliary-variable scheme of Moller et al.

    Parameters
    ----------
    likelihood : CoherentLikelihood
        Its table of log Z is not used.
    prior : Prior, array-like, callable, optional
        It sets the range of k and beta. Uniform on {1..k_max} x [0, beta_max] by default.
    beta_max : float, optional
        Needed unless ``prior`` knows it.
    label_sampler : {"perfect", "gibbs", "swendsen-wang"}, default="perfect"
        How labels are drawn in each move. With perfect draws the chain is exact; the others leave
        a bias if ``n_sweeps`` is too small, which is looked for at the end.
    n_sweeps : int, optional
        Sweeps for each draw: the paper's 500 of Gibbs from random labels, or 20 of Swendsen-Wang
        from the data. Perfect draws need no such number.
    plug_in : tuple of (beta, k), optional
        The estimate to plug in; there is no first stage then. By default it is found in the first
        stage, starting from the maximum of the pseudo-likelihood.
    n_first_stage : int, default=500
        Draws, before ``n_warmup``, in which each chain finds its plug-in. They are left out of
        the posterior too.
    n_plug_ins : int, default=6
        How often the plug-in is replaced by the average since it was last replaced: at the end
        of the first stage, half-way, a quarter of the way, and so on. 1 is the paper's way.
    n_refresh : int, default=3
        Swendsen-Wang sweeps at the plug-in that refresh the auxiliary labels before each move.
        0 is the paper's way.
    scheme : {"alternating", "joint"}, default="alternating"
        Moves of beta and of k by turns, or the paper's move of both at once.
    n_chains : int, default=4
    n_draws : int, default=5000
        Draws of each chain, after the first stage and warm-up.
    n_warmup : int, default=1000
        Draws after the first stage that adapt tau and r and are left out of the posterior.
    thin : int, default=10
        Moves from one draw to the next.
    tau : float, optional
        Standard deviation of the walk on logit(beta / beta_max). ``None`` adapts it during
        warm-up; joint moves take the paper's, the square root of .05.
    r : int, optional
        Reach of the walk on k. ``None`` adapts it during warm-up; joint moves take the paper's, 3.
    random_state : None, int, SeedSequence, Generator or RandomState
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    checkpoint : path, optional
        Where to keep what is finished; a run with the same arguments goes on from there.
    verbose : int, default=0
        0 for silence.

    Returns
    -------
    xarray.DataTree
        In ArviZ's layout: ``posterior`` (beta, k over chain and draw), ``sample_stats`` (the share
        of the moves accepted, and the plug-in), ``observed_data``, and the same of warm-up.

    Raises
    ------
    CoalescenceError
        If a perfect draw is not found within a past of 65,536 sweeps.

    Warns
    -----
    MixingWarning
        If the chains did not mix, stood still for long, or the labels were drawn with too few
        sweeps, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood import CoherentLikelihood
    >>> from bayesknn.posterior import auxiliary
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(40) % 2
    >>> points = rng.normal(size=(40, 2)) + 2 * labels[:, None]
    >>> likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max=4), labels)
    >>> tree = auxiliary(likelihood, beta_max=4.0, n_draws=1000, random_state=0)
    >>> dict(tree["posterior"].sizes)
    {'chain': 4, 'draw': 1000}
    """
    label_draws = plan_label_draws(likelihood, label_sampler, n_sweeps)
    prior = as_prior(prior, likelihood.graph.k_max, beta_max)
    thin = check_count(thin, "thin")
    n_refresh = check_count(n_refresh, "n_refresh", low=0)
    n_warmup = check_count(n_warmup, "n_warmup", low=0)
    updates: tuple[int, ...] = ()
    if plug_in is None:
        n_first_stage = check_count(n_first_stage, "n_first_stage")
        updates = plan_updates(n_first_stage * thin, check_count(n_plug_ins, "n_plug_ins"))
        plug_in = first_plug_in(likelihood, prior)
        n_warmup += n_first_stage
    else:
        plug_in = check_plug_in(plug_in, likelihood)
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, scheme, n_warmup, tau, r)
    walk = walk._replace(n_warmup=n_warmup * thin)
    sampler = AuxiliarySampler(
        likelihood, prior, label_draws, walk, tuning, thin, plug_in, updates, n_refresh
    )
    tree = sample_posterior(
        sampler,
        n_chains=n_chains,
        n_draws=n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        verbose=verbose,
        labels=likelihood.labels,
        attrs=sampler.attrs(),
    )
    sampler.warn(tree)
    return tree


def _find_stands(tree: xarray.DataTree) -> list[str]:
    """Say which chains stood still for long, which short runs and R-hat may not show."""
    sentences = []
    betas, ks = (np.asarray(tree["posterior"][name].values) for name in ("beta", "k"))
    for chain, (beta, k) in enumerate(zip(betas, ks, strict=True)):
        moved = np.flatnonzero((np.diff(beta) != 0) | (np.diff(k) != 0))
        longest = int(np.diff(np.concatenate([[-1], moved, [len(k) - 1]])).max())
        if longest > max(_LONGEST_STAND * len(k), _SHORTEST_STAND):
            beta_hat, k_hat = (
                np.asarray(tree["sample_stats"][name].values)[chain, -1]
                for name in ("plug_in_beta", "plug_in_k")
            )
            sentences.append(
                f"chain {chain} stood still for {longest} of its {len(k)} draws: its auxiliary "
                f"labels suit the plug-in (beta={beta_hat:.3g}, k={k_hat}) and not "
                "the posterior; raise n_first_stage or n_refresh, pass a better plug_in, or "
                "use exchange, which needs none"
            )
    return sentences


@kernel
def _log_auxiliary(observed, plug_in, beta, k, to_beta, to_k, kept, drawn):
    """Log ratio of the likelihoods, of g and of the proposals of the labels.

    ``kept`` holds S_k and S_k_hat of the present labels, ``drawn`` S_k' and S_k_hat of those
    proposed.
    """
    gain = _bond_rate(to_beta, to_k) * (observed[to_k - 1] - drawn[0])
    loss = _bond_rate(beta, k) * (observed[k - 1] - kept[0])
    return gain - loss + _bond_rate(plug_in.beta, plug_in.k) * (drawn[1] - kept[1])


@kernel
def _refresh(drawer, tools, plug_in, key, labels):
    """Move the auxiliary labels by sweeps that leave g invariant."""
    for sweep in range(np.uint64(tools.n_sweeps)):
        _sweep(
            drawer.neighbors, plug_in.k, plug_in.beta * drawer.unit, drawer.n_classes,
            drawer.class_weight, key, sweep, labels, tools.scratch,
        )  # fmt: skip


@kernel
def _run_auxiliary(state, key, first, last, problem, given, drawer, refresh, updates, moves):
    observed, table, walk = problem
    theta, k, log_prior, plug_in, labels, tuning = state
    beta = _beta_of(theta, walk.beta_max)
    for move in range(first, last):
        stream = _iteration_key(key, move)
        _refresh(drawer, refresh, plug_in, _bits(stream, np.uint64(REFRESH_SLOT)), labels)
        to = _propose(walk, tuning, theta, k, key, move)
        to_log_prior = given[0] if given.size else _log_prior(table, walk.beta_max, to.beta, to.k)
        acceptance, without_plug_in = 0.0, 0.0
        if to_log_prior > -math.inf:
            n_apart = _draw_labels(drawer, to.beta, to.k, _bits(stream, np.uint64(DRAW_SLOT)))
            if n_apart > 0:
                return State(to.theta, to.k, log_prior, plug_in, labels, tuning), n_apart
            kept = _agreement_at(drawer, labels, k, plug_in.k)
            drawn = _agreement_at(drawer, drawer.labels, to.k, plug_in.k)
            log_ratio = _log_auxiliary(observed, plug_in, beta, k, to.beta, to.k, kept, drawn)
            others = to_log_prior - log_prior + to.log_correction
            acceptance = _acceptance(log_ratio + others)
            if move < walk.n_warmup:
                drawn_k = _agreement_at(drawer, drawer.labels, k, k)[0]
                log_ratio = _log_exchange(observed, beta, k, to.beta, to.k, drawn_k, drawn[0])
                without_plug_in = _acceptance(log_ratio + others)
        accepted = to.uniform < acceptance
        if accepted:
            theta, beta, k, log_prior = to.theta, to.beta, to.k, to_log_prior
            labels[:] = drawer.labels
        # Steps are tuned to what the exchange algorithm would have accepted: how often this chain
        # accepts depends on the plug-in, and where that is bad no step would be short enough.
        tuning = _adapt(walk, tuning, theta, k, without_plug_in, move)
        plug_in = _follow(plug_in, beta, k, move + 1, updates)
        at = move - first
        moves.beta[at], moves.k[at] = beta, k
        moves.accepted[at], moves.acceptance[at] = accepted, acceptance
        moves.plug_in_beta[at], moves.plug_in_k[at] = plug_in.beta, plug_in.k
    return State(theta, k, log_prior, plug_in, labels, tuning), 0
