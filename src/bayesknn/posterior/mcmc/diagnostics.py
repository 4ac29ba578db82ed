"""Did the chains mix? ESS, R-hat and Monte Carlo errors, and warnings in words.

Draws go in, :class:`Diagnostics` come out. The numbers are those of Vehtari et al.
(2021) as arviz-stats computes them: rank-normalised split R-hat (the larger of bulk and folded) and
the bulk effective sample size. k is an integer and may hardly move, where the formulas divide by
zero; the answers then are:

- every draw the same: R-hat 1, as many effective draws as draws, error 0;
- chains, or halves of chains, that stand still at different values: R-hat infinite, and as many
  effective draws as there are chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.extras import require

if TYPE_CHECKING:
    import xarray

# What is warned of: the first two as Vehtari et al. (2021) advise, the third where chains all but
# stand still; of fewer draws than the last nothing can be said.
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
MIN_ACCEPTANCE = 0.02
_MIN_DRAWS = 8


@dataclass(frozen=True)
class Diagnostics:
    """What is known about the quality of a run.

    Attributes
    ----------
    ess, rhat, mcse : dict of str to float
        Of ``beta`` and ``k``: effective sample size, R-hat, Monte Carlo error of the mean.
    acceptance : ndarray of shape (n_chains,)
        Share of moves accepted after warm-up; NaN where the run did not record it.
    messages : list of str
        What is wrong, in words; empty if nothing is.
    """

    ess: dict[str, float]
    rhat: dict[str, float]
    mcse: dict[str, float]
    acceptance: np.ndarray
    messages: list[str]


def diagnose(tree: xarray.DataTree) -> Diagnostics:
    """Judge the chains of a posterior.

    Parameters
    ----------
    tree : xarray.DataTree
        With the groups ``posterior`` and, for acceptance rates, ``sample_stats``.

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior import diagnose
    >>> from bayesknn.posterior.trees import make_tree
    >>> rng = np.random.default_rng(0)
    >>> tree = make_tree({"beta": rng.normal(size=(4, 500)), "k": np.full((4, 500), 7)})
    >>> diagnostics = diagnose(tree)
    >>> diagnostics.rhat["k"], diagnostics.ess["k"], diagnostics.messages
    (1.0, 2000.0, [])
    """
    draws: dict[str, np.ndarray] = {}
    for name in ("posterior", "sample_stats"):
        if name in tree.children:
            draws |= {str(each): of.values for each, of in tree[name].data_vars.items()}
    return diagnose_draws(draws)


def diagnose_draws(draws: Mapping[str, np.ndarray]) -> Diagnostics:
    """Return the diagnostics of draws after warm-up.

    Parameters
    ----------
    draws : mapping of str to ndarray of shape (n_chains, n_draws)
        ``beta``, ``k`` and, for acceptance rates, ``accepted``.

    Returns
    -------
    Diagnostics
    """
    chains = {name: np.asarray(draws[name]) for name in ("beta", "k")}
    n_chains, n_draws = chains["k"].shape
    acceptance = np.asarray(draws.get("accepted", np.full((n_chains, 1), np.nan))).mean(axis=1)
    ess = {name: effective_sample_size(values) for name, values in chains.items()}
    rhat = {name: split_rhat(values) for name, values in chains.items()}
    mcse = {name: mean_error(values) for name, values in chains.items()}
    messages = []
    if n_draws < _MIN_DRAWS:
        messages.append(f"{n_draws} draws a chain are too few to judge mixing")
    else:
        for name, values in chains.items():
            messages += _describe(name, values, ess[name], rhat[name])
    low = np.flatnonzero(acceptance < MIN_ACCEPTANCE)
    if len(low):
        which = ", ".join(f"{100 * acceptance[chain]:.2g} % in chain {chain}" for chain in low)
        messages.append(
            f"few moves were accepted after warm-up ({which}): leave tau and r to be adapted, or "
            "give them smaller values"
        )
    return Diagnostics(ess, rhat, mcse, acceptance, messages)


def effective_sample_size(values: np.ndarray) -> float:
    """Bulk effective sample size of draws of shape (n_chains, n_draws)."""
    values = np.asarray(values, dtype=np.float64)
    if np.ptp(values) == 0:
        return float(values.size)
    if values.shape[1] < _MIN_DRAWS or _halves_stand_still(values):
        return float(len(values))
    return float(_array_stats().ess(values, method="bulk"))


def split_rhat(values: np.ndarray) -> float:
    """Rank-normalised split R-hat of draws of shape (n_chains, n_draws); one chain will do."""
    values = np.asarray(values, dtype=np.float64)
    if np.ptp(values) == 0:
        return 1.0
    if values.shape[1] < _MIN_DRAWS:
        return float("inf")
    # The halves of the halves, for a single chain: arviz-stats asks for two.
    chains = values if len(values) > 1 else _halves(values)
    return max(_guarded_rhat(chains), _guarded_rhat(np.abs(chains - np.median(chains))))


def mean_error(values: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of draws of shape (n_chains, n_draws)."""
    values = np.asarray(values, dtype=np.float64)
    if np.ptp(values) == 0:
        return 0.0
    if values.shape[1] < _MIN_DRAWS or _halves_stand_still(values):
        return float(np.std(values) / np.sqrt(len(values)))
    return float(_array_stats().mcse(values, method="mean"))


def _describe(name: str, values: np.ndarray, ess: float, rhat: float) -> list[str]:
    if np.isinf(rhat):
        places = ", ".join(f"{value:g}" for value in values[:, -1])
        return [
            f"{name} stands still at a different value in each chain (last draws: {places}), so "
            "its distribution is unknown: run a longer warm-up"
        ]
    wanted = MIN_ESS_PER_CHAIN * len(values)
    if rhat <= MAX_RHAT and ess >= wanted:
        return []
    return [
        f"{name} did not mix: R-hat is {rhat:.3g} (at most {MAX_RHAT} wanted) and {values.size} "
        f"draws are worth {ess:.0f} independent ones (at least {wanted} wanted): raise n_draws"
    ]


def _guarded_rhat(values: np.ndarray) -> float:
    if np.ptp(values) == 0:
        return 1.0
    if _halves_stand_still(values):
        return float("inf")
    return float(_array_stats().rhat(values, method="z_scale"))


def _halves_stand_still(values: np.ndarray) -> bool:
    return bool(np.all(np.ptp(_halves(values), axis=1) == 0))


def _halves(values: np.ndarray) -> np.ndarray:
    half = values.shape[1] // 2
    return np.vstack([values[:, :half], values[:, -half:]])


def _array_stats() -> Any:
    # Imported when a chain is judged: arviz-stats takes a second to load.
    return require("arviz_stats.base", "chains need", "posterior", "arviz-stats").array_stats
