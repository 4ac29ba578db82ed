"""log Z from one k to the next: a path between two settings of the model (KERNELS, 'the ridge').

``log Z(beta1, k1) - log Z(beta0, k0)`` is the integral of E[D] along a path of models, where
``D = beta1 / k1 * S_k1 - beta0 / k0 * S_k0``: the trapezium rule with end correction,
``(E0[D] + E1[D]) / 2 + (V0[D] - V1[D]) / 12``. The variance of D grows with n / k**2. Where it is
large, both the rule's error and the noise of its correction are cut by stations between the two,
models ``exp(a * S_k0 + b * S_k1)`` (:mod:`bayesknn.labels.layers`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesknn.likelihood.nodes import Node

# Above this variance of D the noise of the correction outgrows that of the mean.
_MAX_VARIANCE = 20.0
# The rule's error is about a thirtieth of the defect, and falls with the fourth power of the parts.
_MAX_DEFECT = 0.25
# Of the defect, this part counts as doubt about the value; the correction counts in full.
_DOUBT = 0.125


class Station(NamedTuple):
    """A node on the way from k0 to k1: its model is exp(before * S_k0 + after * S_k1)."""

    node: Node
    before: float
    after: float


class Link(NamedTuple):
    """log Z(after) - log Z(before) in every replicate, and what is left to doubt.

    Attributes
    ----------
    value : ndarray of shape (n_replicates,)
    defect : float
        The largest difference, beyond noise, between the rise of the mean of D over a part of the
        path and the integral of its variance, which should be the same.
    correction : float
        The largest end correction, as a size. Where labels freeze between two nodes it is all that
        tells of it.
    variance : float
        The largest variance of D over a part of the path.
    """

    value: np.ndarray
    defect: float
    correction: float
    variance: float

    @property
    def doubt(self) -> float:
        """By how much the value may be off beyond its noise, as a guess."""
        return max(_DOUBT * self.defect, self.correction)

    @property
    def n_parts(self) -> int:
        """Into how many each part of this path should be cut."""
        wanted = max((self.variance / _MAX_VARIANCE) ** 0.5, (self.defect / _MAX_DEFECT) ** 0.25)
        return max(int(np.ceil(wanted)), 1)


def end_stations(before: Node, after: Node) -> tuple[Station, Station]:
    """Return the two ends of a path; both nodes record S for both values of k."""
    return (
        Station(before, before.beta / before.k, 0.0),
        Station(after, 0.0, after.beta / after.k),
    )


def integrate_link(
    before: Node, after: Node, n_replicates: int, between: list[Station] | None = None
) -> Link:
    """Integrate between the settings of two nodes, by way of the stations between them."""
    first, last = end_stations(before, after)
    path = [first, *(between or []), last]
    value, defects, corrections, variances = np.zeros(n_replicates), [], [], []
    for here, there in pairwise(path):
        means, spreads = [], []
        for station in (here, there):
            weights = np.zeros(len(station.node.columns))
            weights[station.node.column(before.k)] += there.before - here.before
            weights[station.node.column(after.k)] += there.after - here.after
            mean, spread = station.node.combine(weights, n_replicates)
            means.append(mean)
            spreads.append(spread)
        correction = (spreads[0] - spreads[1]) / 12
        value += (means[0] + means[1]) / 2 + correction
        defect = means[1] - means[0] - (spreads[0] + spreads[1]) / 2
        defects.append(max(abs(defect[0]) - 3 * defect.std(), 0.0))
        corrections.append(abs(correction[0]))
        variances.append(max(spreads[0][0], spreads[1][0]))
    return Link(value, float(max(defects)), float(max(corrections)), float(max(variances)))


def place_stations(before: Node, after: Node, n_parts: int, seeds: list) -> list[Station]:
    """Make the stations that cut the path into equal parts, not yet advanced.

    Their chains start where those of ``before`` stand; there is a seed sequence for each.
    """
    first, last = end_stations(before, after)
    ks, stations = np.array([before.k, after.k]), []
    for part in range(1, n_parts):
        rates = np.array([(n_parts - part) * first.before, part * last.after]) / n_parts
        node = Node(
            before.field, float(rates @ ks), after.k, ks, seeds[part], before.labels, (ks, rates)
        )
        stations.append(Station(node, *rates.tolist()))
    return stations
