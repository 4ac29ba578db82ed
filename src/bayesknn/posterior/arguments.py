"""The prior as grid and chains are given it (SPEC: uniform unless the user says otherwise)."""

from __future__ import annotations

from typing import Any

from bayesknn.model import Prior, as_prior


def choose_prior(prior: Any, beta_max: float | None, k_max: int) -> Prior:
    """Make a prior of what the user passed, and refuse what contradicts it or the graph.

    Parameters
    ----------
    prior : Prior, array-like, callable or None
        ``None`` is uniform on {1..k_max} x [0, beta_max].
    beta_max : float, optional
        Needed unless ``prior`` is a :class:`~bayesknn.model.Prior`, which knows it.
    k_max : int
        Largest k that the likelihood serves.

    Returns
    -------
    Prior

    Examples
    --------
    >>> from bayesknn.posterior.arguments import choose_prior
    >>> choose_prior(None, beta_max=4.0, k_max=10)
    UniformPrior(k_max=10, beta_max=4.0)
    """
    if not isinstance(prior, Prior):
        if beta_max is None:
            raise ValueError("beta_max must be given unless prior is a Prior that knows it")
        return as_prior(prior, k_max, beta_max)
    if beta_max is not None and beta_max != prior.beta_max:
        raise ValueError(
            f"beta_max={beta_max!r} contradicts the prior, which reaches beta={prior.beta_max:g}; "
            "leave beta_max out"
        )
    if prior.k_max > k_max:
        raise ValueError(
            f"the prior reaches k={prior.k_max} but the likelihood only k={k_max}; "
            "lower k_max of the prior or build the graph with more neighbours"
        )
    return prior
