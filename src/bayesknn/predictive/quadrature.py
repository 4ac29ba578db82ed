"""A Gauss rule in beta for each k, so that averaging takes a handful of points (eq. trupred).

The nodes of a k are a discrete measure. Lanczos' recursion on it gives its orthogonal
polynomials, and the eigenvalues of their Jacobi matrix are the points of the Gauss rule, which
agrees with the measure on all polynomials of degree below twice their number. A class probability
is a ratio of exponentials in beta and is integrated to about eight digits by six or twelve points.

A replicate of the weights is carried over by interpolating at the same points: the weight of a
point is the replicate's mean of the Lagrange polynomial that is one there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.predictive.nodes import PosteriorNodes

# Numbers of points tried in turn; where none is enough the nodes are used as they are.
_SIZES = (6, 12, 24)
# The odds of two classes are exp(beta d / k), d the difference of their counts: |d| / k is at most
# 1 for forward neighbours alone, about 2 for both directions, more around a hub. Leave-one-out
# averages the odds themselves.
_STEEPNESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])


def condense(nodes: PosteriorNodes, steepness: float = 1.0) -> PosteriorNodes:
    """Replace the nodes of each k by the points of a Gauss rule.

    Parameters
    ----------
    nodes : PosteriorNodes
    steepness : float
        Largest class weight: how much faster than without weights the odds change with beta.

    Returns
    -------
    PosteriorNodes
        Its means of ``1 / (1 + exp(-beta t))``, t up to four times ``steepness``, agree with
        those over the nodes to 1e-8 in each k, and those of ``exp(beta t)``, t up to twice
        ``steepness``, to 1e-5 of themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.predictive import PosteriorNodes
    >>> from bayesknn.predictive.quadrature import condense
    >>> beta = np.linspace(1.0, 2.0, 100)
    >>> rule = condense(PosteriorNodes(np.full(100, 8), beta, np.full(100, 0.01)))
    >>> rule.n_nodes, round(float(rule.weight @ rule.beta), 9)
    (6, 1.5)
    """
    starts = nodes.starts
    sizes = np.diff(starts)
    # One row for each k, filled up with points of no weight.
    column = np.arange(nodes.n_nodes) - np.repeat(starts[:-1], sizes)
    row = np.repeat(np.arange(sizes.size), sizes)
    beta = np.repeat(nodes.beta[starts[:-1], None], sizes.max(), axis=1)
    beta[row, column] = nodes.beta
    weights = np.zeros((sizes.size, sizes.max(), 1 + len(nodes.replicates)))
    weights[row, column, 0] = nodes.weight
    weights[row, column, 1:] = nodes.replicates.T
    chosen = {t: (beta[t, :size], weights[t, :size]) for t, size in enumerate(sizes)}
    for size in _SIZES:
        tried = np.flatnonzero(sizes > size)
        if tried.size == 0:
            break
        points, shares = _gauss_rules(beta[tried], weights[tried], size)
        wrong = _error(beta[tried], weights[tried], points, shares, steepness)
        for at in np.flatnonzero(wrong <= 1.0):
            chosen[tried[at]] = points[at], shares[at]
        sizes[tried[wrong <= 1.0]] = 0
    parts = [chosen[t] for t in range(sizes.size)]
    k = np.repeat(nodes.k_values, [part[0].size for part in parts])
    columns = np.concatenate([part[1] for part in parts])
    points = np.concatenate([part[0] for part in parts])
    return PosteriorNodes(k, points, columns[:, 0], columns[:, 1:].T)


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


def _error(beta: Any, weights: Any, points: Any, shares: Any, steepness: Any) -> np.ndarray:
    """Return the largest error of a rule for each k, in units of what is tolerated."""
    error = np.zeros(len(beta))
    for function, slopes, tolerance in _TESTS:
        exact = np.einsum("ki,kis->ks", weights[..., 0], function(beta, steepness * slopes))
        found = np.einsum("ki,kis->ks", shares[..., 0], function(points, steepness * slopes))
        scale = exact if function is _odds else weights[..., 0].sum(axis=1, keepdims=True)
        error = np.maximum(error, (np.abs(exact - found) / scale).max(axis=1) / tolerance)
    return error


def _logistic(beta: Any, slopes: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-beta[..., None] * slopes))


def _odds(beta: Any, slopes: Any) -> Any:
    # At most e^600, however large the prior lets beta be.
    return np.exp(np.minimum(beta[..., None] * slopes, 600.0))


_TESTS = ((_logistic, _STEEPNESS, 1e-8), (_odds, _STEEPNESS[:4], 1e-5))
