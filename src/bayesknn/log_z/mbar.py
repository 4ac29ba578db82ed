"""log Z at any setting from all draws of many: MBAR, as a sample from their mixture (Section 3.3).

Records of chains and targets (beta, k) go in, log Z at the targets comes out, in every replicate.

With ``u_j`` the log weight of a labelling at setting j and ``a_j`` the number of independent draws
of its chains, all records together are a sample from the mixture
``m = sum over j of a_j exp(u_j - f_j)``, f being log Z. So

    ``exp(f_t) = sum over records d of w_d exp(u_t(d)) / m(d)``

at any target t, a record of j weighing ``w = a_j / (records of j)``, and f at the settings
themselves is where the formula gives itself back: the minimum of a convex function of f (Shirts
and Chodera 2008, "Statistically optimal analysis of samples from multiple equilibrium states").
Two settings give Bennett's ratio, one gives importance sampling.

The records of each pair of chains are shifted by what the mean of S given the clusters differs from
their own: that has the same mean and less noise. At a setting far away the shift counts as at one
that is near: what a mean does to log Z further on goes on only as long as S does, and where labels
freeze it is as large as it can be one unit of beta away. Errors are to first order in the change of
every record's weight when batches are resampled, with the changes that this makes to f and to the
shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesknn.log_z.records import N_REPLICATES, Records, Setting

# Where labels freeze, E[S] changes over about one unit of beta: so far a shift of S counts. Longer
# lets its noise grow where they are frozen, shorter leaves the noise of S where they are not.
BETA_SCALE = 1.0
# Variance of the difference of log weights up to which the draws of two settings overlap enough:
# fewer chains against a difference of log Z that rests on few of their draws.
MAX_VARIANCE = 4.0
# Newton's method ends where no f moves by more, which is nothing beside an error; far from there it
# takes some dozens of steps.
_CLOSE, _MAX_STEPS = 1e-6, 100


class Combined(NamedTuple):
    """log Z, up to a constant that is common to all, from all records.

    Attributes
    ----------
    of_pairs : ndarray of shape (n_replicates, n_pairs)
        At the settings of the chains.
    of_targets : ndarray of shape (n_replicates, n_targets)
    n_effective : ndarray of shape (n_targets,)
        Independent draws at each target that its estimate is worth.
    is_settled : bool
        Newton's method converged.
    """

    of_pairs: np.ndarray
    of_targets: np.ndarray
    n_effective: np.ndarray
    is_settled: bool


def combine(pairs: Sequence[Records], targets: Sequence[Setting]) -> Combined:
    """Return log Z at the settings of pairs of chains and at targets, in every replicate.

    Parameters
    ----------
    pairs : sequence of Records
        They hold S at the same k, among them those of all settings.
    targets : sequence of Setting
        Each at one k.
    """
    n_effective = np.array([pair.n_effective for pair in pairs])
    ks, n = pairs[0].columns, len(pairs)
    own_rates = read_rates([pair.setting for pair in pairs], ks)
    columns = np.searchsorted(ks, [target.ks[0] for target in targets]).astype(np.intp)
    rates = np.array([target.rates[0] for target in targets])

    betas = np.append(own_rates @ ks, rates * ks[columns])

    def weigh(s: np.ndarray) -> np.ndarray:
        """Return log weights at all settings, of the chains and of the targets."""
        return np.column_stack([s @ own_rates.T, s[:, columns] * rates])

    def move(shifts: np.ndarray, at: int) -> np.ndarray:
        """Return what shifts of S at some chains do to log weights beside that of their own."""
        moves = weigh(shifts)
        near = BETA_SCALE / np.maximum(np.abs(betas - betas[at]), BETA_SCALE)
        return near * (moves - moves[:, [at]])

    records = [pair.of_labels.reshape(-1, len(ks)) for pair in pairs]
    surplus = [pair.of_clusters - pair.of_labels for pair in pairs]
    shifts = [move(away.mean(axis=(0, 1))[None], at) for at, away in enumerate(surplus)]
    sizes = np.array([len(part) for part in records])
    log_weights = [x @ own_rates.T + shift[:, :n] for x, shift in zip(records, shifts, strict=True)]
    weights = np.repeat(n_effective / sizes, sizes)
    f, is_settled = solve(
        np.concatenate(log_weights), weights, n_effective, guess(log_weights, n_effective)
    )
    log_mixture = [logsumexp(u - f, axis=1, b=n_effective) for u in log_weights]
    # Terms of the targets' sums are taken beside the largest, so that none overflows.
    tops = [
        np.max(x[:, columns] * rates + shift[:, n:] - m[:, None], axis=0)
        for x, shift, m in zip(records, shifts, log_mixture, strict=True)
    ]
    f = np.append(f, np.max(tops, axis=0))

    # exp(u - f) / m of every record, and the sums of it: all are linear in it, so that the targets'
    # are divided by their totals at the end. ``second`` holds the sums of products.
    change, second = np.zeros((N_REPLICATES, len(f))), np.zeros((len(f), n))
    totals, squares = np.zeros(len(f)), np.zeros(len(f))
    parts = zip(pairs, n_effective, records, log_mixture, strict=True)
    for at, (pair, a, x, m) in enumerate(parts):
        p = np.exp(weigh(x) + shifts[at] - f - m[:, None])
        averages = a * pair.resample(p.reshape(*pair.of_labels.shape[:2], -1))
        products = a / len(x) * p.T @ p[:, :n]
        totals += averages[0]
        squares += a / len(x) * np.square(p).sum(axis=0)
        second += products
        change += averages - averages[0]
        # What another shift does to a record's own weight, and to the mixture.
        shift = pair.resample(surplus[at])
        shift = move(shift - shift[0] + np.outer(pair.noise_floor(2), ks), at)
        change += shift * averages[0] - shift[:, :n] * n_effective @ products.T
    totals[:n] = 1.0
    f, change, second = f + np.log(totals), change / totals, second / totals[:, None]
    # How f at the pairs' settings follows; the first of them stays where it is.
    follows = np.zeros((N_REPLICATES, n))
    if n > 1:
        hessian = np.diag(n_effective) - n_effective[:, None] * second[:n] * n_effective
        follows[:, 1:] = np.linalg.lstsq(hessian[1:, 1:], (change[:, 1:n] * n_effective[1:]).T)[0].T
    of_all = f + change + follows * n_effective @ second.T
    return Combined(f[:n] + follows, of_all[:, n:], (totals**2 / squares)[n:], is_settled)


def read_rates(settings: Sequence[Setting], ks: np.ndarray) -> np.ndarray:
    """Return the rate of each S_k at each setting, of shape (n_settings, n_k)."""
    rates = np.zeros((len(settings), len(ks)))
    for row, setting in zip(rates, settings, strict=True):
        np.add.at(row, np.searchsorted(ks, setting.ks), setting.rates)
    return rates


def solve(
    log_weights: np.ndarray, weights: np.ndarray, n_effective: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Find log Z at the settings that were sampled, and say whether it settled.

    That of the first is left at its start.

    Newton's method on ``sum over d of w_d log m(d) + sum over j of a_j f_j``, which is convex. Far
    away, and where a step of it leads up, the formula is put into itself once, which leads down.
    """
    f = np.array(start, dtype=np.float64)
    following, lowest = f, np.array(np.inf)
    for _ in range(_MAX_STEPS):
        terms = log_weights - f
        top = terms.max(axis=1, keepdims=True)
        np.exp(terms - top, out=terms)
        terms *= n_effective
        m = terms.sum(axis=1, keepdims=True)
        value = weights @ (np.log(m) + top)[:, 0] + n_effective @ f
        if value > lowest + 1e-9 * abs(lowest):
            f, lowest = following, np.array(np.inf)
            continue
        terms /= m
        counts = weights @ terms
        moves = np.log(np.maximum(counts, 1e-300) / n_effective)
        following, lowest = f + moves - moves[0], value
        if np.abs(moves).max() > 1.0:
            f = following
            continue
        hessian = np.diag(counts) - (terms * weights[:, None]).T @ terms
        step = np.zeros(len(f))
        step[1:] = np.linalg.lstsq(hessian[1:, 1:], (counts - n_effective)[1:])[0]
        f = f + step
        if np.abs(step).max() < _CLOSE:
            return f, True
    return f, False


def guess(log_weights: list[np.ndarray], n_effective: np.ndarray) -> np.ndarray:
    """Return log Z from each pair to the next by the records of these two alone.

    From there Newton's method has little to do; news of one pair would reach another only slowly.
    """
    f = [0.0]
    for at in range(1, len(log_weights)):
        both = slice(at - 1, at + 1)
        before, after = (part[:, both] for part in log_weights[both])
        # The trapezium rule to begin with.
        step = (np.diff(before.mean(axis=0)) + np.diff(after.mean(axis=0))) / 2
        sizes = [len(before), len(after)]
        weights = np.repeat(n_effective[both] / sizes, sizes)
        start = np.append(0.0, step)
        both_f, _ = solve(np.vstack([before, after]), weights, n_effective[both], start)
        f.append(f[-1] + both_f[1])
    return np.array(f)
