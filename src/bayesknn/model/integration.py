"""Integrals over beta: Gauss-Legendre rules on panels that are put where the mass is (Section 3).

A panel has eight nodes. The weights of a Gauss rule cut its panel into as many cells with a node in
each (Chebyshev, Markov and Stieltjes), so a distribution given by weights at nodes is one of masses
in cells too, from which it can be drawn. Panels on which a density is not a polynomial are halved,
and so are those beside them, so that a spike between two nodes is come upon from both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Nodes of a panel: the rule is exact for polynomials of a degree below twice as many.
N_NODES = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(N_NODES)
# The last two coefficients of Legendre's series through the nodes, as a proportion of all mass,
# from which on a panel is halved. The integral of what is smooth is known far better by then, of
# what jumps within a panel about as well.
_ROUGH = 1e-4
_TAIL = (
    np.polynomial.legendre.legvander(_NODES, N_NODES - 1)[:, -2:]
    * _WEIGHTS[:, None]
    * (np.arange(N_NODES - 2, N_NODES) + 0.5)
)
# Panels over a distribution that is kept as weights at nodes: its cells are short beside its width.
N_PANELS = 20


def place_nodes(edges: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of Gauss rules on panels, and their weights.

    Parameters
    ----------
    edges : array-like of shape (..., n_panels + 1)
        Where panels begin and end, rising.

    Returns
    -------
    nodes, weights : ndarray of shape (..., 8 * n_panels)
    """
    edges = np.asarray(edges, dtype=np.float64)
    low, width = edges[..., :-1, None], np.diff(edges)[..., None]
    shape = (*edges.shape[:-1], N_NODES * (edges.shape[-1] - 1))
    nodes = low + width * (_NODES + 1) / 2
    return nodes.reshape(shape), (width * (_WEIGHTS / 2)).reshape(shape)


def place_cells(edges: Any) -> np.ndarray:
    """Return where the cells of the nodes begin and end, of shape (..., 8 * n_panels + 1)."""
    edges = np.asarray(edges, dtype=np.float64)
    below = np.append(0.0, np.cumsum(_WEIGHTS[:-1] / 2))
    inner = edges[..., :-1, None] + np.diff(edges)[..., None] * below
    return np.concatenate([inner.reshape(*edges.shape[:-1], -1), edges[..., -1:]], axis=-1)


def find_panels(
    log_density: Callable[[np.ndarray], np.ndarray], edges: Any, n_panels: int = 1
) -> np.ndarray:
    """Put panels where a density has its mass.

    Parameters
    ----------
    log_density : callable
        Of an array of beta; minus infinity, or not a number, where the density is zero.
    edges : array-like
        Where to look, and all that is known of where the mass is: ends of panels, rising.
    n_panels : int
        The fewest to be returned.

    Returns
    -------
    ndarray
        The edges of the panels. Those at the ends are left out if nothing is in them.
    """
    edges = np.asarray(edges, dtype=np.float64)
    values = _evaluate(log_density, edges[:-1], edges[1:])
    while True:
        masses = _weigh(values, np.diff(edges))[1]
        rough = find_rough(values, edges)
        # As many panels are enough for half a dozen jumps.
        if len(edges) > 128 or not rough.any():
            break
        edges, values = _halve(log_density, edges, values, rough | _beside(edges, rough))
    if not np.isfinite(values.max()):
        return edges
    inside = np.flatnonzero(masses > 1e-12 * masses.sum())
    edges = edges[inside[0] : inside[-1] + 2]
    masses = masses[inside[0] : inside[-1] + 1]
    while len(masses) < n_panels:
        at = int(np.argmax(masses))
        edges = np.insert(edges, at + 1, (edges[at] + edges[at + 1]) / 2)
        masses = np.insert(masses, at, masses[at] / 2)
        masses[at + 1] /= 2
    return edges


def find_rough(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the panels on which a density is too rough, given its log at their nodes."""
    widths = np.diff(edges)
    heights, masses = _weigh(values.reshape(-1, N_NODES), widths)
    rough = np.abs(heights @ _TAIL).sum(axis=1) * widths > _ROUGH * masses.sum()
    return rough & (widths > 1e-9 * edges[-1])


def make_equal(panels: Sequence[np.ndarray]) -> np.ndarray:
    """Halve the widest panels of each row until all rows have as many."""
    size, rows = max(map(len, panels)), []
    for row in panels:
        while len(row) < size:
            at = int(np.argmax(np.diff(row)))
            row = np.insert(row, at + 1, (row[at] + row[at + 1]) / 2)
        rows.append(row)
    return np.array(rows)


def integrate(
    log_density: Callable[[np.ndarray], np.ndarray], edges: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and log masses there, which add up to the integral of a density.

    ``log_density`` may have leading axes at the nodes: an integral of each is taken.
    """
    nodes, weights = place_nodes(edges)
    return nodes, log_density(nodes) + np.log(weights)


def _evaluate(log_density: Callable[..., Any], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the log density at the nodes of panels, (n_panels, 8)."""
    nodes = low[:, None] + (high - low)[:, None] * (_NODES + 1) / 2
    values = np.asarray(log_density(nodes.ravel()), dtype=np.float64).reshape(nodes.shape)
    return np.where(np.isnan(values), -np.inf, values)


def _weigh(values: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return densities beside the largest, and the mass of each panel in the same units."""
    top = values.max()
    heights = np.exp(values - top) if np.isfinite(top) else np.zeros_like(values)
    return heights, heights @ _WEIGHTS * widths / 2


def _beside(edges: np.ndarray, rough: np.ndarray) -> np.ndarray:
    """Say which panels stand beside a rough one and are wider."""
    widths = np.diff(edges)
    beside = np.zeros_like(rough)
    wider = widths[:-1] / widths[1:]
    beside[:-1] |= rough[1:] & (wider > 1.5)
    beside[1:] |= rough[:-1] & (wider < 1 / 1.5)
    return beside


def _halve(
    log_density: Callable[..., Any], edges: np.ndarray, values: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    at = np.flatnonzero(which)
    middles = (edges[at] + edges[at + 1]) / 2
    new = _evaluate(
        log_density,
        np.column_stack([edges[at], middles]).ravel(),
        np.column_stack([middles, edges[at + 1]]).ravel(),
    )
    places = np.repeat(np.arange(len(values)), np.where(which, 2, 1))
    values = values[places]
    values[which[places]] = new
    return np.insert(edges, at + 1, middles), values
