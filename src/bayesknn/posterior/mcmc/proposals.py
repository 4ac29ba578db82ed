"""Moves of (beta, k) (Section 3.1), schedules of them, and their tuning during warm-up.

beta walks on the scale theta = logit(beta / beta_max), and k on {1..K}. A move is a function
``move(walk, tuning, theta, k, stream)`` that returns theta', k' and the log ratio of the
probabilities with which k' and k are proposed from each other. A schedule is a tuple of moves that
are made by turns. The target of a chain has a density in beta, so :func:`propose` adds a Jacobian
and returns one correction to the log acceptance ratio,

    log Q_r(k', k) - log Q_r(k, k') + log J(theta') - log J(theta),   J = dbeta/dtheta.

``"joint"`` is the paper's schedule: both change at once. ``"alternating"`` moves beta in every
other iteration and k in the others, most often along the mode curve of the posterior, and in every
sixth iteration by a leap: it crosses gaps in k, and a sharp mode curve whose slope is not yet
known.

The same compiled functions serve Python loops and compiled chains. Random numbers are a pure
function of (key, iteration, slot); slots below ``FREE_SLOT`` are used here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.checks import check_count, check_positive
from bayesknn._utils.jit import kernel
from bayesknn._utils.random import as_uniform, key_of_sweep, random_bits

# The paper's tuning: tau^2 = .05 and r = 3.
PAPER_TAU, PAPER_R = math.sqrt(0.05), 3

ACCEPT_SLOT, RADIUS_SLOT, ANGLE_SLOT, K_SLOT, STEP_SLOT, FREE_SLOT = 0, 1, 2, 3, 4, 8

# Acceptance that a walk in one continuous coordinate does best with, and one for k: lower, because
# long jumps cross the gaps of a rough posterior and cost no more than short ones.
_BETA_TARGET, _K_TARGET = 0.44, 0.25
# The regression forgets: its memory is about the latter third of the iterations so far. The small
# variance that is added lets the slope return to 0 where k hardly moves, so that no accident of
# the start stays.
_MEMORY, _ADDED_VARIANCE = 3.0, 1e-4


class Walk(NamedTuple):
    """What stays the same for all moves of a run.

    Attributes
    ----------
    beta_max : float
    k_max : int
    schedule : int
        Position of its name in ``SCHEDULES``.
    turns : ndarray of int64
        Its moves, as positions in ``MOVES``.
    n_warmup : int
        The tuning changes in iterations before this one and never after.
    adapts_tau, adapts_r, adapts_slope : bool
    """

    beta_max: float
    k_max: int
    schedule: int
    turns: np.ndarray
    n_warmup: int
    adapts_tau: bool
    adapts_r: bool
    adapts_slope: bool


class Tuning(NamedTuple):
    """What warm-up learns; part of a chain's state.

    Attributes
    ----------
    log_tau, log_r : float
        ``r`` is the nearest integer to ``exp(log_r)`` in 1..K.
    slope : float
        Of the mode curve, theta against log k.
    mean_theta, mean_log_k, variance, covariance : float
        Recent moments: the means, the variance of log k and its covariance with theta.
    """

    log_tau: float
    log_r: float
    slope: float
    mean_theta: float
    mean_log_k: float
    variance: float
    covariance: float


class Proposal(NamedTuple):
    """Where a chain may go.

    Attributes
    ----------
    theta, beta : float
        The same point on two scales.
    k : int
    log_correction : float
        Hastings and Jacobian terms of the log acceptance ratio.
    uniform : float
        To be compared with the acceptance probability.
    """

    theta: float
    beta: float
    k: int
    log_correction: float
    uniform: float


def plan_walk(
    beta_max: float, k_max: int, schedule: str, n_warmup: int, tau: Any = None, r: Any = None
) -> tuple[Walk, Tuning]:
    """Return the settings of a run's moves and the tuning that its chains start from.

    Parameters
    ----------
    beta_max : float
    k_max : int
    schedule : {"alternating", "joint", "hybrid-gibbs"}
        The paper's joint moves take the paper's tau and r where none are given, and keep them.
    n_warmup : int
        Iterations that adapt.
    tau : float, optional
        Standard deviation of the walk on theta. ``None`` adapts it.
    r : int, optional
        Largest step of the walk on k. ``None`` adapts it.

    Returns
    -------
    Walk, Tuning
    """
    if tau is not None:
        tau = check_positive(tau, "tau")
    if r is not None:
        r = check_count(r, "r")
    adapts = schedule != "joint"
    # Where there is one k only, beta moves in every iteration.
    moves = SCHEDULES[schedule] if k_max > 1 else (walk_beta,)
    walk = Walk(
        beta_max=check_positive(beta_max, "beta_max"),
        k_max=k_max,
        schedule=list(SCHEDULES).index(schedule),
        turns=np.array([MOVES.index(move) for move in moves]),
        n_warmup=check_count(n_warmup, "n_warmup", low=0),
        adapts_tau=adapts and tau is None,
        adapts_r=adapts and r is None,
        adapts_slope=adapts,
    )
    # Wide at first, because chains start anywhere.
    first_tau = 0.5 if adapts else PAPER_TAU
    first_r = max(k_max / 4, 1.0) if adapts else PAPER_R
    log_tau = math.log(first_tau if tau is None else tau)
    log_r = math.log(first_r if r is None else r)
    return walk, Tuning(log_tau, log_r, 0.0, 0.0, 0.0, 0.0, 0.0)


def draw_start(walk: Walk, key: np.uint64, attempt: int = 0) -> tuple[float, int]:
    """Draw a start (theta, k) from the uniform distribution on {1..K} x [0, beta_max]."""
    theta, k = _draw_start(walk, np.uint64(key), np.uint64(attempt))
    return theta, int(k)


@kernel
def iteration_key(key, iteration):
    """Stream of one iteration; stream 0 of a chain belongs to its start."""
    return key_of_sweep(key, np.uint64(iteration) + np.uint64(1))


@kernel
def uniform_at(key, iteration, slot):
    """One uniform number of an iteration, for callers in Python."""
    return as_uniform(random_bits(iteration_key(key, iteration), np.uint64(slot)))


@kernel
def _draw_start(walk, key, attempt):
    start_key = key_of_sweep(key, np.uint64(0))
    # Away from 0, so that theta is finite.
    u = as_uniform(random_bits(start_key, attempt * np.uint64(2))) + 2.0**-54
    v = as_uniform(random_bits(start_key, attempt * np.uint64(2) + np.uint64(1)))
    return math.log(u / (1.0 - u)), np.int64(1) + np.int64(v * walk.k_max)


@kernel
def beta_of(theta, beta_max):
    """Beta = beta_max e^theta / (1 + e^theta), without overflow."""
    if theta >= 0.0:
        return beta_max / (1.0 + math.exp(-theta))
    return beta_max * math.exp(theta) / (1.0 + math.exp(theta))


@kernel
def _log_jacobian(theta):
    """Log of dbeta/dtheta, up to the constant beta_max."""
    size = abs(theta)
    return -size - 2.0 * math.log1p(math.exp(-size))


@kernel
def _max_step(log_r, k_max):
    return np.int64(min(max(math.floor(math.exp(log_r) + 0.5), 1.0), float(k_max)))


@kernel
def _count_k_neighbors(k, r, k_max):
    """How many values the k-proposal chooses from: Q_r(k, .) is one over it."""
    return min(k + r, k_max) - max(k - r, 1)


@kernel
def _propose_k(k, r, k_max, u):
    """Draw k' from Q_r(k, .); k itself where there is no other value."""
    n_values = _count_k_neighbors(k, r, k_max)
    if n_values == 0:
        return k
    proposed = max(k - r, 1) + min(np.int64(u * n_values), n_values - 1)
    return proposed if proposed < k else proposed + 1


@kernel
def _log_k_hastings(k, proposed, r, k_max):
    """Return log Q_r(k', k) - log Q_r(k, k'): not 0 near the ends of 1..K."""
    if proposed == k:
        return 0.0
    return math.log(_count_k_neighbors(k, r, k_max) / _count_k_neighbors(proposed, r, k_max))


@kernel
def _walk_k(walk, r, k, stream):
    """Draw k' from Q_r(k, .); also return log Q_r(k', k) - log Q_r(k, k')."""
    to_k = _propose_k(k, r, walk.k_max, as_uniform(random_bits(stream, np.uint64(K_SLOT))))
    return to_k, _log_k_hastings(k, to_k, r, walk.k_max)


@kernel
def _normal_step(tuning, stream):
    """Draw from N(0, tau^2)."""
    angle = as_uniform(random_bits(stream, np.uint64(ANGLE_SLOT)))
    u = as_uniform(random_bits(stream, np.uint64(RADIUS_SLOT)))
    radius = math.sqrt(-2.0 * math.log1p(-u))
    return math.exp(tuning.log_tau) * radius * math.cos(2.0 * math.pi * angle)


@kernel
def walk_beta(_walk, tuning, theta, k, stream):
    """Move beta alone: theta' ~ N(theta, tau^2)."""
    return theta + _normal_step(tuning, stream), k, 0.0


@kernel
def walk_both(walk, tuning, theta, k, stream):
    """Move both at once, as the paper does: theta' ~ N(theta, tau^2) and k' from Q_r."""
    to_k, log_ratio = _walk_k(walk, _max_step(tuning.log_r, walk.k_max), k, stream)
    return theta + _normal_step(tuning, stream), to_k, log_ratio


@kernel
def follow_curve(walk, tuning, theta, k, stream):
    """Move along the mode curve: k' from Q_r and theta' = theta + slope * log(k'/k).

    For a given slope the move back undoes the shift, so that it needs no correction of its own.
    """
    to_k, log_ratio = _walk_k(walk, _max_step(tuning.log_r, walk.k_max), k, stream)
    return theta + tuning.slope * math.log(to_k / k), to_k, log_ratio


@kernel
def leap(walk, tuning, theta, k, stream):
    """Move far: theta' = theta + tau * Cauchy, and k' from Q_r with r log-uniform on 1..K."""
    u = as_uniform(random_bits(stream, np.uint64(STEP_SLOT)))
    to_k, log_ratio = _walk_k(walk, np.int64(math.exp(u * math.log(walk.k_max + 1.0))), k, stream)
    angle = as_uniform(random_bits(stream, np.uint64(ANGLE_SLOT)))
    shift = math.exp(tuning.log_tau) * math.tan(math.pi * (angle - 0.5))
    return theta + shift, to_k, log_ratio


# Compiled code knows a move by its position here: numba does not cache a function that takes other
# functions.
MOVES = (walk_beta, walk_both, follow_curve, leap)
SCHEDULES = {
    "alternating": (walk_beta, follow_curve, walk_beta, follow_curve, walk_beta, leap),
    "joint": (walk_both,),
    "hybrid-gibbs": (walk_beta,),
}
_BETA, _BOTH, _CURVE = 0, 1, 2


@kernel
def _turn(walk, iteration):
    """Return the position in ``MOVES`` of the move of one iteration."""
    return walk.turns[iteration % walk.turns.size]


@kernel
def propose(walk, tuning, theta, k, key, iteration):
    """Propose the move of one iteration."""
    turn, stream = _turn(walk, iteration), iteration_key(key, iteration)
    if turn == _BETA:
        to_theta, to_k, log_ratio = walk_beta(walk, tuning, theta, k, stream)
    elif turn == _BOTH:
        to_theta, to_k, log_ratio = walk_both(walk, tuning, theta, k, stream)
    elif turn == _CURVE:
        to_theta, to_k, log_ratio = follow_curve(walk, tuning, theta, k, stream)
    else:
        to_theta, to_k, log_ratio = leap(walk, tuning, theta, k, stream)
    log_correction = log_ratio + _log_jacobian(to_theta) - _log_jacobian(theta)
    uniform = as_uniform(random_bits(stream, np.uint64(ACCEPT_SLOT)))
    return Proposal(to_theta, beta_of(to_theta, walk.beta_max), to_k, log_correction, uniform)


@kernel
def acceptance_probability(log_ratio):
    """Turn a log ratio into a probability; one that is not a number is never accepted."""
    if log_ratio >= 0.0:
        return 1.0
    if log_ratio < 0.0:
        return math.exp(log_ratio)
    return 0.0


@kernel
def accept_and_adapt(walk, tuning, theta, k, to, acceptance, tuned, iteration):
    """Accept or refuse a proposal, and adapt.

    ``tuned`` is the acceptance probability that the step sizes are tuned by, as a rule that of the
    move. Returns whether it was accepted, and theta, k and the tuning after it.
    """
    accepted = to.uniform < acceptance
    if accepted:
        theta, k = to.theta, to.k
    return accepted, theta, k, _adapt(walk, tuning, theta, k, tuned, iteration)


@kernel
def _adapt(walk, tuning, theta, k, acceptance, iteration):
    """Tuning after an iteration that ended at (theta, k); unchanged once warm-up is over."""
    if iteration >= walk.n_warmup or not walk.adapts_slope:
        return tuning
    # Robbins-Monro: the gain sums to infinity, its square does not.
    gain = (iteration + 1.0) ** -0.6
    log_tau, log_r = tuning.log_tau, tuning.log_r
    turn = _turn(walk, iteration)
    if walk.adapts_tau and turn == _BETA:
        log_tau += gain * (acceptance - _BETA_TARGET)
    if walk.adapts_r and turn == _CURVE:
        log_r += gain * (acceptance - _K_TARGET)
        log_r = min(max(log_r, 0.0), math.log(float(walk.k_max)))
    weight = _MEMORY / (iteration + _MEMORY)
    log_k = math.log(float(k))
    theta_gap, log_k_gap = theta - tuning.mean_theta, log_k - tuning.mean_log_k
    variance = (1.0 - weight) * (tuning.variance + weight * log_k_gap * log_k_gap)
    covariance = (1.0 - weight) * (tuning.covariance + weight * log_k_gap * theta_gap)
    return Tuning(
        log_tau,
        log_r,
        covariance / (variance + _ADDED_VARIANCE),
        tuning.mean_theta + weight * theta_gap,
        tuning.mean_log_k + weight * log_k_gap,
        variance,
        covariance,
    )
