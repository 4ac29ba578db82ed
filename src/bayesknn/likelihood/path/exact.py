"""log Z of the small k, by variable elimination where that is cheaper than simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.path.curve import N_REPLICATES, Curve
from bayesknn.model import (
    agreement_variance_at_zero,
    expected_agreement_exact,
    log_normalizer_exact,
    plan_elimination,
)

# Terms that elimination may add up for each point at one beta.
_MAX_ENTRIES_PER_POINT = 2000
N_STEPS = 32


def is_cheap(graph: NeighborGraph, k: int, n_classes: int) -> bool:
    """Tell whether elimination at k takes less time than simulation.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.likelihood.path.exact import is_cheap
    >>> graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(99, 3)), 20)
    >>> is_cheap(graph, 1, 2), is_cheap(graph, 20, 2)
    (True, False)
    """
    try:
        plan = plan_elimination(graph, k, n_classes)
    except ValueError:
        return False
    return plan.n_entries <= _MAX_ENTRIES_PER_POINT * graph.n_points


def eliminate(
    graph: NeighborGraph, k: int, n_classes: int, class_weight: Any, beta_max: float
) -> Curve:
    """Compute log Z and its derivatives exactly on an even grid.

    The second derivative at a node is that of the quintic through its neighbours; it misses
    ``step**4 / 360`` of the sixth, which counts for nothing in between.
    """
    step = beta_max / N_STEPS
    betas = step * np.arange(N_STEPS + 2)
    values = np.asarray(log_normalizer_exact(graph, betas, k, n_classes, class_weight))
    means = np.asarray(expected_agreement_exact(graph, betas, k, n_classes, class_weight)) / k
    slopes = np.empty(N_STEPS + 1)
    slopes[0] = agreement_variance_at_zero(graph, k, n_classes, class_weight) / k**2
    slopes[1:] = 2 * (values[2:] - 2 * values[1:-1] + values[:-2]) / step**2
    slopes[1:] -= (means[2:] - means[:-2]) / (2 * step)
    rows = (values[:-1], means[:-1], slopes)
    return Curve(betas[:-1], *(np.tile(row, (N_REPLICATES, 1)) for row in rows))
