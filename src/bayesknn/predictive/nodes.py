"""The posterior of (beta, k) as weighted points: what eqs. trupred and MCpred average over.

Draws that share k differ in beta alone, and the predictive rule is smooth in beta. So the draws
of a k are cut into bins, short ones in the tails, and each bin becomes the two points of beta
that have its weight, mean, variance and third moment. A mean over them differs from the plain
average over the draws by the fourth moment within a bin, far below the Monte Carlo error, and
what follows costs the same however many draws there were. Values from a grid are treated alike.

Means need even fewer points. The nodes of a k are a discrete measure; Lanczos' recursion gives its
orthogonal polynomials, and the eigenvalues of their Jacobi matrix are the points of the Gauss rule.
A class probability is a ratio of exponentials in beta and is integrated to about eight digits by
six or twelve points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn.model.boltzmann import check_betas

if TYPE_CHECKING:
    from bayesknn.posterior.quadrature.grid import GridPosterior


@dataclass(frozen=True)
class PosteriorNodes:
    """The posterior of (beta, k) in weighted points, sorted by k.

    Build one with :meth:`from_draws` or :meth:`from_grid`.

    Attributes
    ----------
    k : ndarray of shape (N,), dtype int64
    beta : ndarray of shape (N,)
    weight : ndarray of shape (N,)
        They sum to one.

    Examples
    --------
    >>> from bayesknn.predictive import PosteriorNodes
    >>> nodes = PosteriorNodes([2, 1], [0.5, 1.5], [0.25, 0.75])
    >>> nodes.k.tolist(), nodes.beta.tolist()
    ([1, 2], [1.5, 0.5])
    """

    k: np.ndarray
    beta: np.ndarray
    weight: np.ndarray

    def __post_init__(self) -> None:
        k, beta = _check_k(self.k), check_betas(self.beta)
        weight = np.asarray(self.weight, dtype=np.float64)
        n = k.size
        if n == 0 or not k.shape == beta.shape == weight.shape == (n,):
            raise ValueError(
                "k, beta and weight must be three vectors of one length, got shapes "
                f"{k.shape}, {beta.shape} and {weight.shape}"
            )
        if not (np.all(weight >= 0) and np.isclose(weight.sum(), 1.0)):
            raise ValueError(f"weight must not be negative and sum to one, not {weight.sum()}")
        order = np.argsort(k, kind="stable")
        for name, values in (("k", k), ("beta", beta), ("weight", weight)):
            object.__setattr__(self, name, values[order])

    @classmethod
    def from_draws(cls, beta: Any, k: Any) -> PosteriorNodes:
        """Collapse draws of (beta, k), from chains or otherwise.

        Parameters
        ----------
        beta, k : array-like of one shape
            The draws, such as ``posterior/beta`` and ``posterior/k`` over (chain, draw).

        Returns
        -------
        PosteriorNodes
            A k that was not drawn has no node. Few distinct draws of a k are kept as they are.

        Examples
        --------
        >>> from bayesknn.predictive import PosteriorNodes
        >>> nodes = PosteriorNodes.from_draws([[1.0, 1.5], [1.0, 2.0]], [[3, 3], [3, 7]])
        >>> nodes.k.tolist(), nodes.beta.tolist(), nodes.weight.tolist()
        ([3, 3, 7], [1.0, 1.5, 2.0], [0.5, 0.25, 0.25])
        """
        beta, k = check_betas(beta), _check_k(k)
        if beta.shape != k.shape:
            raise ValueError(f"beta and k must have one shape, got {beta.shape} and {k.shape}")
        if beta.size == 0:
            raise ValueError("there are no draws")
        beta, k = beta.ravel(), k.ravel()
        order = np.lexsort((beta, k))
        beta, k = beta[order], k[order]
        # A chain that rejects stays where it is: equal draws are one point.
        is_new = np.append(True, (np.diff(k) != 0) | (np.diff(beta) != 0))
        first = np.flatnonzero(is_new)
        counts = np.diff(np.append(first, beta.size))
        return cls(*_collapse(k[first], beta[first], counts / beta.size))

    @classmethod
    def from_grid(cls, posterior: GridPosterior) -> PosteriorNodes:
        """Take the weights of a grid.

        Grid points that together hold less than 1e-9 are left out, which changes no probability
        by more. A k of little weight is binned as draws are.

        Parameters
        ----------
        posterior : GridPosterior

        Returns
        -------
        PosteriorNodes

        Examples
        --------
        >>> import numpy as np
        >>> from bayesknn.posterior import GridPosterior
        >>> from bayesknn.predictive import PosteriorNodes
        >>> weights = np.array([[0.25, 0.5, 0.25]])
        >>> grid = GridPosterior(np.array([4]), np.array([[1.0, 1.5, 2.0]]), weights,
        ...                      np.empty((0, 1, 3)), k_max=9)
        >>> PosteriorNodes.from_grid(grid).beta.tolist()
        [1.0, 1.5, 2.0]
        """
        weights = posterior.weights.ravel()
        lightest = np.argsort(weights, kind="stable")
        n_left_out = np.searchsorted(np.cumsum(weights[lightest]), 1e-9)
        kept = np.sort(lightest[n_left_out:])
        k = np.repeat(posterior.k_values, posterior.betas.shape[1])[kept]
        weights = weights[kept] / weights[kept].sum()
        return cls(*_collapse(k, posterior.betas.ravel()[kept], weights))

    @property
    def n_nodes(self) -> int:
        """Number of points, N."""
        return self.k.size

    @property
    def k_values(self) -> np.ndarray:
        """The distinct k, rising."""
        return np.unique(self.k)

    @property
    def starts(self) -> np.ndarray:
        """Nodes ``starts[t] : starts[t + 1]`` belong to ``k_values[t]``."""
        first = np.unique(self.k, return_index=True)[1]
        return np.append(first, self.n_nodes).astype(np.int64)

    @property
    def k_mean(self) -> float:
        """Mean of k."""
        return float(self.weight @ self.k)

    @property
    def votes_by_rank(self) -> np.ndarray:
        """What the neighbour at each rank counts: the mean of beta / k over the k that reach it."""
        at_k = np.bincount(self.k, self.weight * self.strengths)
        return np.cumsum(at_k[::-1])[::-1][1:]

    @property
    def strengths(self) -> np.ndarray:
        """The values of beta / k."""
        return self.beta / self.k


def _check_k(k: Any) -> np.ndarray:
    values = np.asarray(k)
    if values.dtype.kind == "f" and np.all(values == np.floor(values)):
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu" or (values.size and values.min() < 1):
        raise ValueError("k must hold integers of at least 1")
    return values.astype(np.int64)


def _collapse(
    k: np.ndarray, beta: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace the points of each k, sorted by beta and distinct, by few."""
    starts = _bin(k, weights)
    of = np.repeat(np.arange(starts.size), np.diff(np.append(starts, k.size)))
    weight = np.add.reduceat(weights, starts)
    mean = np.add.reduceat(weights * beta, starts) / weight
    away = beta - mean[of]
    spread = np.sqrt(np.add.reduceat(weights * away**2, starts) / weight)
    is_pair = spread > 1e-9 * (1.0 + mean)
    scale = np.where(is_pair, spread, 1.0)
    skew = np.add.reduceat(weights * (away / scale[of]) ** 3, starts) / weight
    # The Gauss rule of two points: mean 0, variance 1 and third moment skew.
    half = np.sqrt(1.0 + skew**2 / 4)
    ends = np.append(starts[1:], k.size) - 1
    low = np.maximum(mean + scale * (skew / 2 - half), beta[starts])
    high = np.minimum(mean + scale * (skew / 2 + half), beta[ends])
    gap = np.where(is_pair, high - low, 1.0)
    to_high = np.where(is_pair[of], (beta - low[of]) / gap[of], 0.0)
    upper = np.add.reduceat(weights * to_high, starts)
    lower = np.add.reduceat(weights, starts) - upper
    exists = np.stack([np.ones_like(is_pair), is_pair], axis=1)
    points = np.stack([np.where(is_pair, low, mean), high], axis=1)[exists]
    shares = np.maximum(np.stack([lower, upper], axis=1)[exists], 0.0)
    number = np.stack([k[starts], k[starts]], axis=1)[exists]
    return number, points, shares / shares.sum()


def _bin(k: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return where the bins start."""
    _, first, group, size = np.unique(k, return_index=True, return_inverse=True, return_counts=True)
    share = np.add.reduceat(weight, first)
    # A k is given a node for each of 2,048 parts of the posterior weight that it holds, within
    # bounds: intervals are cut from the weights of single nodes.
    allowed = np.clip(np.ceil(2048 * share), 16, 256)
    n_bins = allowed // 2
    position = np.arange(k.size) - first[group]
    up_to = np.cumsum(weight)
    before = np.append(0.0, up_to)[first]
    quantile = np.clip((up_to - weight / 2 - before[group]) / share[group], 0.0, 1.0)
    # Even steps of the angle make the bins light in the tails, where they are wide.
    angle = np.arccos(1 - 2 * quantile) / np.pi
    binned = np.minimum(np.floor(n_bins[group] * angle), n_bins[group] - 1)
    place = np.where(size[group] <= allowed[group], position, binned)
    return np.flatnonzero(np.append(True, (np.diff(place) != 0) | (np.diff(k) != 0)))


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
    """
    starts = nodes.starts
    sizes = np.diff(starts)
    # One row for each k, filled up with points of no weight.
    column = np.arange(nodes.n_nodes) - np.repeat(starts[:-1], sizes)
    row = np.repeat(np.arange(sizes.size), sizes)
    beta = np.repeat(nodes.beta[starts[:-1], None], sizes.max(), axis=1)
    beta[row, column] = nodes.beta
    weights = np.zeros(beta.shape)
    weights[row, column] = nodes.weight
    chosen = {t: (beta[t, :size], weights[t, :size]) for t, size in enumerate(sizes)}
    # Numbers of points that are tried in turn; where none is enough the nodes stay as they are.
    for size in (6, 12, 24):
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
    points, shares = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PosteriorNodes(k, points, shares)


def _gauss_rules(beta: np.ndarray, weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of shape (n_k, size)."""
    total = weights.sum(axis=1, keepdims=True)
    root = np.sqrt(weights / total)
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
    points = np.clip(mean + spread * points, beta.min(axis=1)[:, None], beta.max(axis=1)[:, None])
    return points, total * vectors[:, 0] ** 2


def _error(beta: Any, weights: Any, points: Any, shares: Any, steepness: Any) -> np.ndarray:
    """Return the largest error of a rule for each k, in units of what is tolerated.

    The odds of two classes are exp(beta d / k), d the difference of their counts: |d| / k is at
    most 1 for forward neighbours alone, about 2 for both directions, more around a hub.
    Leave-one-out averages the odds themselves.
    """
    slopes = steepness * np.array([0.25, 0.5, 1.0, 2.0, 4.0])

    def means(function: Any, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        exact = np.einsum("ki,kis->ks", weights, function(beta[..., None] * slopes))
        return exact, np.einsum("ki,kis->ks", shares, function(points[..., None] * slopes))

    exact, by_rule = means(lambda x: 1.0 / (1.0 + np.exp(-x)), slopes)
    logistic = np.abs(exact - by_rule).max(axis=1) / weights.sum(axis=1)
    # At most e^600, however large the prior lets beta be.
    exact, by_rule = means(lambda x: np.exp(np.minimum(x, 600.0)), slopes[:4])
    odds = np.abs(by_rule / exact - 1.0).max(axis=1)
    return np.maximum(logistic / 1e-8, odds / 1e-5)
