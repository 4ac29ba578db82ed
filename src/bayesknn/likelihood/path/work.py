"""How many more records each rung needs (KERNELS, 'allocate work adaptively').

log Z at a rung is known from the left, through the rungs before it, and from the right, through
those after it and the end; the variance of both together is ``L * R / (L + R)``. For a given cost
it is least if records are proportional to the noise of a record divided by the square root of
what it costs. Where only part of the path matters, one side of it may do.
"""

from __future__ import annotations

import numpy as np

from bayesknn.likelihood.path.ladder import Ladder

# No count grows by more than this at once, since noise may not be known well yet.
_MAX_GROWTH = 8.0
_MAX_RECORDS = 200_000
# Share of the allowed error that the step from a ladder to the k between may take.
_LINK_SHARE = 0.6
_LEAST_GROWTH = 1.05


def plan_more(ladder: Ladder, allowed: np.ndarray) -> list[tuple[int, int]]:
    """Plan what brings the errors along a ladder down to what is allowed.

    Parameters
    ----------
    ladder : Ladder
    allowed : ndarray of shape (n_rungs,)
        The error allowed at every rung; infinite where it does not matter.

    Returns
    -------
    list of (int, int)
        Which rung (the end comes last) is to have how many records; empty if all is well.
    """
    counts = ladder.counts
    wanted = np.maximum(
        _wanted_by_path(ladder, allowed), np.append(_wanted_by_links(ladder, allowed), 0)
    )
    wanted = np.minimum(wanted, np.minimum(_MAX_GROWTH * counts, _MAX_RECORDS))
    return [(int(at), int(np.ceil(wanted[at]))) for at in np.flatnonzero(wanted > counts)]


def _wanted_by_path(ladder: Ladder, allowed: np.ndarray) -> np.ndarray:
    counts = ladder.counts
    noise = ladder.measure_noise()
    found = (ladder.curve(ladder.k).error()[1:] / allowed) ** 2
    excess = float(found.max())
    if excess <= 1.0:
        return counts
    # What the replicates say is right, what is computed here only guides.
    expected = float(np.max(_variances(noise / counts) / allowed**2))
    noise = noise * excess / max(expected, excess / 9)
    shape = np.sqrt(noise / ladder.cost) * _cheaper_side(ladder, noise, allowed)
    runs = shape > 0
    low, high = 0.0, 2 * _MAX_GROWTH * float(np.max(counts[runs] / shape[runs]))
    for _ in range(40):
        middle = (low + high) / 2
        grown = np.maximum(counts, middle * shape)
        if np.max(_variances(noise / grown) / allowed**2) > 1.0:
            low = middle
        else:
            high = middle
    return np.maximum(counts * np.where(runs, _LEAST_GROWTH, 1.0), high * shape)


def _variances(variance: np.ndarray) -> np.ndarray:
    """Return the variance of log Z at every rung, from what each rung and the end contribute."""
    of_rungs, of_end = variance[:-1], variance[-1]
    left = np.cumsum(of_rungs) - of_rungs / 2
    right = of_rungs.sum() - left + of_end
    return left * right / (left + right)


def _cheaper_side(ladder: Ladder, noise: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Tell which rungs to run on: all, or those on one side of where the error matters."""
    matters = np.flatnonzero(np.isfinite(allowed))
    index = np.arange(len(noise))
    left, right = index <= matters[-1], index >= matters[0]
    effort = np.sqrt(noise * ladder.cost)
    # Both sides halve the error together, if the whole path matters.
    sides = {"both": effort.sum() / 2, "left": effort[left].sum(), "right": effort[right].sum()}
    best = min(sides, key=lambda side: sides[side])
    return {"both": np.ones(len(noise), bool), "left": left, "right": right}[best]


def _wanted_by_links(ladder: Ladder, allowed: np.ndarray) -> np.ndarray:
    wanted = []
    for rung, limit in zip(ladder.rungs.values(), allowed, strict=True):
        others = [k for k in rung.columns.tolist() if k != rung.k]
        variance = max((rung.moments(k).log_ratio[1:].var() for k in others), default=0.0)
        wanted.append(rung.n_records * variance / (_LINK_SHARE * limit) ** 2)
    return np.array(wanted)
