"""Perfect sampling: the paper's for two classes, and the package's for four (Section 3.4).

The Gibbs sampler for two classes is monotone: the probability of class 1 increases with the number
of neighbours in class 1, with any positive class weights. Two chains start from all labels 0 and
all labels 1, "the saturated situations", and use the same random numbers, so that their order is
preserved. They are started further and further in the past until they have coalesced at time zero;
their common state is then an exact draw. No random numbers are stored: the number of a site is a
function of (key, draw, sweep, site).

The number of sweeps explodes at large beta, where nearly all labels are 0 or nearly all are 1.
Coupling the bonds of the random-cluster representation (:func:`bayesknn.labels.perfect_labels`)
avoids this and works for any number of classes, which the paper leaves as an open question.
"""

from __future__ import annotations

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import key_of_sweep, spawn_keys
from bayesknn.datasets import load_glass
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels import perfect_labels
from bayesknn.labels.gibbs import list_edges, sweep_two, threshold_table
from bayesknn.model import BoltzmannModel, expected_agreement_exact, log_normalizer_exact
from bayesknn.paper.comparison import Result, item
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots.style import COLOURS, INK, new_figure

_K = 3
_BETAS = np.arange(0.5, 4.1, 0.5)
# Largest number of sweeps of the coupled Gibbs chains. More would extend the curve of the figure to
# larger beta, at a cost that doubles with each factor of two.
_MAX_SWEEPS = 2**12


def perfect_labels_by_sites(
    model: BoltzmannModel,
    beta: float,
    k: int,
    *,
    key: np.uint64,
    n_draws: int = 1,
    max_sweeps: int = 2**16,
) -> tuple[np.ndarray, np.ndarray]:
    """Return exact draws of the labels of two classes by coupled Gibbs sweeps.

    Parameters
    ----------
    model : BoltzmannModel
        Model with two classes, with equal or unequal class weights.
    beta : float
    k : int
    key : numpy.uint64
        Key of the random numbers. Draw d depends on the key and d only.
    n_draws : int
    max_sweeps : int
        Largest number of sweeps before time zero at which chains are started.

    Returns
    -------
    labels : ndarray of shape (n_draws, n), dtype uint8
    n_sweeps : ndarray of shape (n_draws,), dtype int64
        Number of sweeps from the start of the coalescing chains to time zero, a power of 2.

    Raises
    ------
    CoalescenceError
        If the chains of any draw have not coalesced after ``max_sweeps`` sweeps.
    """
    assert model.n_classes == 2
    edges, is_weighted = list_edges(model.graph, k), model.class_weight is not None
    table, bases = threshold_table(beta / k, model.weights, edges.degrees, is_weighted)
    labels, n_sweeps = np.empty((n_draws, model.n_points), np.uint8), np.ones(n_draws, np.int64)
    for d, lower in enumerate(labels):
        stream = np.uint64(d) << np.uint64(32)
        while n_apart := _run_both(edges, table, bases, key, stream, n_sweeps[d], lower):
            if n_sweeps[d] == max_sweeps:
                message = f"{n_apart} labels still differ after {max_sweeps} coupled sweeps"
                raise CoalescenceError(message, max_sweeps, n_apart)
            n_sweeps[d] = min(2 * n_sweeps[d], max_sweeps)
    return labels, n_sweeps


@kernel
def _run_both(edges, table, bases, key, stream, n_sweeps, lower):
    """Run the coupled chains from all 0 and all 1 to time zero; return the number of unequal sites.

    ``table[bases[i] + m]`` is the threshold of site i with m neighbours in class 1: the site gets
    class 1 if its 64 random bits are below it. The state of the chain from all 0 at time zero is
    written to ``lower``.
    """
    upper = np.ones_like(lower)
    lower[:] = 0
    lower_slots = bases.astype(np.uint32)
    upper_slots = (bases + edges.degrees).astype(np.uint32)
    for back in range(n_sweeps, 0, -1):
        numbers = key_of_sweep(key, stream | np.uint64(back))
        sweep_two(lower, lower_slots, table, edges, numbers)
        sweep_two(upper, upper_slots, table, edges, numbers)
    return np.count_nonzero(lower != upper)


@item("extra:perfect-four", classes=lambda n: n.value <= 2)
def perfect_four(setting: Setting) -> Result:
    """Compare E[S] of perfect draws of four classes with its exact value, and count the sweeps."""
    graph, n_draws = Study(load_glass(0)).graph, setting.budget.n_perfect
    keys = spawn_keys(setting.seeds("perfect-four"), 2 * len(_BETAS))
    exact = np.asarray(expected_agreement_exact(graph, _BETAS, _K, 4)) / _K
    rows = []
    for beta, key, other in zip(_BETAS.tolist(), keys[::2], keys[1::2], strict=True):
        _, info = perfect_labels(
            BoltzmannModel(graph, 4), beta, _K, key=key, n_draws=n_draws, n_jobs=setting.n_jobs
        )
        error = info.agreement.std(ddof=1) / _K / n_draws**0.5
        n_sweeps = _sweeps_of_labels(BoltzmannModel(graph, 2), beta, other, min(n_draws, 20))
        rows.append((info.agreement.mean() / _K, error, np.median(info.n_sweeps), n_sweeps))
    means, errors, four, two = np.transpose(rows)
    estimates = {
        "classes": 4,
        "score": np.abs((means - exact) / errors).max(),
        "sweeps": four.max(),
        "labels": f"more than {_MAX_SWEEPS}" if np.isnan(two[-1]) else two[-1],
    }
    figure, ((left, right),) = new_figure(1, 2, 9.0, 3.6)
    left.plot(_BETAS, exact, color=INK, linewidth=1, label="exact, by elimination")
    left.errorbar(
        _BETAS, means, 3 * errors, fmt="o", color=COLOURS[0], markersize=4, capsize=2,
        label="perfect draws, 3 standard errors",
    )  # fmt: skip
    left.set(xlabel="β", ylabel="E[S]  (S divided by k)")
    left.set_title(f"four classes, glass graph, k = {_K}")
    left.legend(loc="lower right")
    right.semilogy(_BETAS, four, "o-", color=COLOURS[0], label="bonds, G = 4")
    name = f"labels, G = 2 (the paper's),\nwhere {_MAX_SWEEPS} sweeps suffice"
    right.semilogy(_BETAS, two, "^--", color=COLOURS[1], label=name)
    right.set(xlabel="β", ylabel="median sweeps to coalescence", title="cost of a draw")
    right.legend(loc="center right")
    return Result(estimates, (figure,))


def _sweeps_of_labels(model: BoltzmannModel, beta: float, key: np.uint64, n_draws: int) -> float:
    """Return the median sweeps to coalescence of coupled Gibbs chains, NaN above the maximum."""
    try:
        _, n_sweeps = perfect_labels_by_sites(
            model, beta, _K, key=key, n_draws=n_draws, max_sweeps=_MAX_SWEEPS
        )
    except CoalescenceError:
        return float("nan")
    return float(np.median(n_sweeps))


@item("num:accept-reject", accepted=lambda log_p: log_p.value > np.log(0.01))
def accept_from_below(setting: Setting) -> Result:
    """Compute the acceptance rate of rejection sampling from labels drawn at a smaller beta.

    Labels z drawn at b < beta are accepted with probability ``exp((beta - b) (S(z) / k - n))``,
    where n is the largest possible S / k. The mean of this probability is
    ``Z(beta) / Z(b) exp(-(beta - b) n)``.
    """
    graph, betas = setting.ripley.graph, np.array([2.0, 4.0])
    log_z = np.asarray(log_normalizer_exact(graph, betas, _K, 2))
    return Result({"accepted": np.diff(log_z - betas * graph.n_points)[0]})
