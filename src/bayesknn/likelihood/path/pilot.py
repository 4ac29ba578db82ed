"""Where the rungs of a ladder go, and which k get ladders at all, by pilot runs (Section 3.3).

A step between rungs is halved until the rule that integrates over it can be trusted: until S does
not spread over more of it than a cubic follows, and the mean does not jump by more than the
slopes at the ends account for, as it would across a transition that lies between. The paper asks
for just that: "checking that the slope is sufficiently smooth from one value of beta to the next".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bayesknn.likelihood.path.ladder import COARSE, TOP, Ladder
from bayesknn.likelihood.path.rung import Rung

_MAX_SPREAD = 2.5
_MAX_MISFIT = 0.5
_MAX_RUNGS = 200
# How noisy a record of P(plain) may be, as log(1 + relative variance).
_MAX_LOG_SPREAD = 0.7
# Variance of D between ladders, and how far apart they stand at most.
_MAX_DISTANCE = 0.8
_MAX_RATIO = 1.3

Each = Callable[[Callable, Iterable], list]


def look_ahead(k: int, k_max: int) -> int:
    """Return the last k to which a ladder at k may reach.

    Examples
    --------
    >>> from bayesknn.likelihood.path.pilot import look_ahead
    >>> look_ahead(1, 125), look_ahead(10, 125), look_ahead(100, 125)
    (2, 13, 125)
    """
    return min(k_max, max(k + 1, int(_MAX_RATIO * k)))


def find_next(ladder: Ladder) -> int:
    """Return the next k that needs a ladder, given that all pilots of this one have run."""
    inside = [rung for place, rung in ladder.rungs.items() if place <= TOP]
    distances = np.max([rung.pilot_distances() for rung in inside], axis=0)
    is_near = np.minimum.accumulate(distances <= _MAX_DISTANCE)
    return ladder.k + max(1, int(np.count_nonzero(is_near)) - 1)


def place_rungs(ladder: Ladder, each: Each) -> None:
    """Run the pilots of a ladder: an even grid, what lies beyond beta_max, then halving.

    Parameters
    ----------
    ladder : Ladder
    each : callable
        ``each(function, arguments)`` calls a function for each argument, in threads.
    """
    step = TOP // COARSE
    ladder.add(each(ladder.scout, range(step, TOP + 1, step)))
    n_beyond = 0
    while ladder.end_here() > _MAX_LOG_SPREAD:
        ladder.add(each(ladder.scout, [max(ladder.rungs) + step]))
        n_beyond += 1
        step *= 1 + (n_beyond % 2 == 0)
    while len(ladder.rungs) < _MAX_RUNGS:
        places = find_bends(ladder)
        if not places:
            return
        ladder.add(each(ladder.scout, places))


def find_bends(ladder: Ladder) -> list[int]:
    """List the places halfway in steps that are too long."""
    places = [0, *ladder.rungs]
    rungs: list[Rung | None] = [None, *ladder.rungs.values()]
    return [
        (places[at] + places[at + 1]) // 2
        for at in range(len(places) - 1)
        if places[at + 1] - places[at] > 1 and _is_bent(ladder, rungs[at], rungs[at + 1])
    ]


def _is_bent(ladder: Ladder, left: Rung | None, right: Rung | None) -> bool:
    beta0, mean0, variance0, noise0 = _describe(ladder, left)
    beta1, mean1, variance1, noise1 = _describe(ladder, right)
    step = beta1 - beta0
    if step * np.sqrt(max(variance0, variance1)) > _MAX_SPREAD:
        return True
    misfit = abs(mean1 - mean0 - step * (variance0 + variance1) / 2)
    return bool(step * (misfit - 3 * np.sqrt(noise0 + noise1)) > _MAX_MISFIT)


def _describe(ladder: Ladder, rung: Rung | None) -> tuple[float, float, float, float]:
    """Return beta, mean and variance of S_k / k, and the variance of that mean."""
    if rung is None:
        return 0.0, *ladder.at_zero(ladder.k), 0.0
    n_records = 2 * rung.node.n_records
    return rung.beta, rung.pilot_mean(), rung.pilot_variance(), rung.noise / n_records
