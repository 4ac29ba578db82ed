"""The prior as compiled chains take it (Section 3: uniform unless the user says otherwise).

A uniform prior and one given by an array become a table that compiled code interpolates, exactly
as :class:`bayesknn.model.ArrayPrior` does. Any other prior is a function in Python: its chains
come back for it in every move.
"""

from __future__ import annotations

import math

import numpy as np

from bayesknn._utils.jit import kernel
from bayesknn.model import ArrayPrior, Prior, UniformPrior


def tabulate_prior(prior: Prior) -> np.ndarray | None:
    """Return the density for each k, in equal steps of beta; None where only Python knows it.

    Returns
    -------
    ndarray of shape (k_max, n_betas), or None
        One column where the density does not depend on beta.

    Examples
    --------
    >>> from bayesknn.model import UniformPrior
    >>> from bayesknn.posterior.compiled_prior import tabulate_prior
    >>> tabulate_prior(UniformPrior(k_max=3, beta_max=4.0)).shape
    (3, 1)
    """
    if type(prior) is UniformPrior:
        return np.full((prior.k_max, 1), 1.0 / (prior.k_max * prior.beta_max))
    if type(prior) is ArrayPrior:
        return np.array(prior.values).reshape(prior.k_max, -1)
    return None


@kernel
def _log_prior(table, beta_max, beta, k):
    """Log density at (beta, k), by linear interpolation in beta."""
    row = table[k - 1]
    density = row[0]
    if row.size > 1:
        last = row.size - 1
        place = beta * (last / beta_max)
        column = min(np.int64(place), last - 1)
        share = place - column
        density = row[column] * (1.0 - share) + row[column + 1] * share
    return math.log(density) if density > 0.0 else -math.inf
