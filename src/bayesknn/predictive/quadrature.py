"""A Gauss rule in beta for each k, so that averaging takes a handful of points (eq. trupred).

The nodes of a k are a discrete measure. Lanczos' recursion on it gives its orthogonal
polynomials, and the eigenvalues of their Jacobi matrix are the points of the Gauss rule, which
agrees with the measure on all polynomials of degree below twice their number. A class probability
is a ratio of exponentials in beta and is integrated to about eight digits by six or twelve points.

A replicate of the weights is carried over by interpolating at the same points: the weight of a
point is the replicate's mean of the Lagrange polynomial that is one there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn.predictive.nodes import PosteriorNodes

# Numbers of points tried in turn; where none is enough the nodes are used as they are.
_SIZES = (6, 12, 24)
_TOLERANCE = 1e-8
# The odds of two classes are exp(beta d / k), d the difference of their counts: |d| / k is at most
# 1 for forward neighbours alone, about 2 for both directions, more around a hub.
_STEEPNESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])


class Rule(NamedTuple):
    """Points of (beta, k) to sum over, by k.

    Attributes
    ----------
    k_values : ndarray of shape (n_k,), dtype int64
    starts : ndarray of shape (n_k + 1,), dtype int64
        Points ``starts[t] : starts[t + 1]`` belong to ``k_values[t]``.
    strengths : ndarray of shape (n_points,)
        The values of beta / k.
    weights : ndarray of shape (n_points,)
    replicates : ndarray of shape (n_points, R)
    """

    k_values: np.ndarray
    starts: np.ndarray
    strengths: np.ndarray
    weights: np.ndarray
    replicates: np.ndarray


def lay_out(nodes: PosteriorNodes) -> Rule:
    """Arrange the nodes themselves as a rule.

    Examples
    --------
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.quadrature import lay_out
    >>> rule = lay_out(PosteriorNodes([2, 2, 4], [1.0, 2.0, 2.0], [0.25, 0.25, 0.5]))
    >>> rule.k_values.tolist(), rule.starts.tolist(), rule.strengths.tolist()
    ([2, 4], [0, 2, 3], [0.5, 1.0, 0.5])
    """
    k_values, first = np.unique(nodes.k, return_index=True)
    starts = np.append(first, nodes.n_nodes).astype(np.int64)
    replicates = np.ascontiguousarray(nodes.replicates.T)
    return Rule(k_values, starts, nodes.beta / nodes.k, nodes.weight, replicates)


def condense(nodes: PosteriorNodes, steepness: float = 1.0) -> Rule:
    """Replace the nodes of each k by the points of a Gauss rule.

    Parameters
    ----------
    nodes : PosteriorNodes
    steepness : float
        Largest class weight: how much faster than without weights the odds change with beta.

    Returns
    -------
    Rule
        Its means of ``1 / (1 + exp(-beta t))``, t up to four times ``steepness``, agree with
        those over the nodes to 1e-8 in each k.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.quadrature import condense
    >>> beta = np.linspace(1.0, 2.0, 100)
    >>> rule = condense(PosteriorNodes(np.full(100, 8), beta, np.full(100, 0.01)))
    >>> rule.strengths.size, round(float(rule.weights @ rule.strengths), 9)
    (6, 0.1875)
    """
    full = lay_out(nodes)
    sizes = np.diff(full.starts)
    # One row for each k, filled up with points of no weight.
    column = np.arange(nodes.n_nodes) - np.repeat(full.starts[:-1], sizes)
    row = np.repeat(np.arange(sizes.size), sizes)
    beta = np.repeat(nodes.beta[full.starts[:-1], None], sizes.max(), axis=1)
    beta[row, column] = nodes.beta
    weights = np.zeros((sizes.size, sizes.max(), 1 + full.replicates.shape[1]))
    weights[row, column, 0] = full.weights
    weights[row, column, 1:] = full.replicates
    chosen = {t: (beta[t, :size], weights[t, :size]) for t, size in enumerate(sizes)}
    for size in _SIZES:
        tried = np.flatnonzero(sizes > size)
        if tried.size == 0:
            break
        points, shares = _gauss_rules(beta[tried], weights[tried], size)
        wrong = _error(beta[tried], weights[tried], points, shares, steepness)
        for at in np.flatnonzero(wrong <= _TOLERANCE):
            chosen[tried[at]] = points[at], shares[at]
        sizes[tried[wrong <= _TOLERANCE]] = 0
    parts = [chosen[t] for t in range(sizes.size)]
    starts = np.append(0, np.cumsum([part[0].size for part in parts])).astype(np.int64)
    strengths = np.concatenate([p[0] / k for p, k in zip(parts, full.k_values, strict=True)])
    columns = np.concatenate([part[1] for part in parts])
    return Rule(
        full.k_values, starts, strengths,
        np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1:]),
    )  # fmt: skip


def _gauss_rules(beta: np.ndarray, weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of shape (n_k, size) and weights of shape (n_k, size, 1 + R)."""
    total = weights[..., 0].sum(axis=1, keepdims=True)
    root = np.sqrt(weights[..., 0] / total)
    mean = (root**2 * beta).sum(axis=1, keepdims=True)
    spread = np.sqrt((root**2 * (beta - mean) ** 2).sum(axis=1, keepdims=True))
    spread[spread == 0] = 1.0
    z = (beta - mean) / spread
    # basis[p] is the orthonormal polynomial of degree p times the root of the weight.
    basis = np.zeros((size, *z.shape))
    basis[0] = root
    jacobi = np.zeros((z.shape[0], size, size))
    for p in range(size):
        vector = z * basis[p]
        jacobi[:, p, p] = (vector * basis[p]).sum(axis=1)
        if p + 1 == size:
            break
        # Twice, since once leaves what rounding made of the first pass.
        for _ in range(2):
            overlap = np.einsum("pki,ki->pk", basis[: p + 1], vector)
            vector = vector - np.einsum("pk,pki->ki", overlap, basis[: p + 1])
        norm = np.sqrt((vector**2).sum(axis=1))
        # Fewer points than asked for end the recursion: what is left has no weight.
        norm[norm < 1e-12] = 0.0
        basis[p + 1] = np.divide(vector, norm[:, None], where=norm[:, None] > 0, out=0.0 * vector)
        jacobi[:, p, p + 1] = jacobi[:, p + 1, p] = norm
    points, vectors = np.linalg.eigh(jacobi)
    # Column 0 holds the weights themselves: theirs are the Gauss weights, known to be positive.
    shares = (total * vectors[:, 0] ** 2)[:, :, None]
    if weights.shape[2] > 1:
        polynomials = np.divide(basis, root, where=root > 0, out=np.zeros_like(basis))
        lagrange = np.swapaxes(vectors * vectors[:, :1], 1, 2) @ np.swapaxes(polynomials, 0, 1)
        shares = np.concatenate([shares, lagrange @ weights[..., 1:]], axis=2)
    points = np.clip(mean + spread * points, beta.min(axis=1)[:, None], beta.max(axis=1)[:, None])
    return points, shares


def _error(beta, weights, points, shares, steepness) -> np.ndarray:
    """Return the largest error of a rule on the logistic functions, for each k."""
    slopes = steepness * _STEEPNESS
    total = weights[..., 0].sum(axis=1)
    exact = np.einsum("ki,kis->ks", weights[..., 0], _logistic(beta, slopes))
    found = np.einsum("ki,kis->ks", shares[..., 0], _logistic(points, slopes))
    return np.abs(exact - found).max(axis=1) / total


def _logistic(beta, slopes):
    return 1.0 / (1.0 + np.exp(-beta[..., None] * slopes))
