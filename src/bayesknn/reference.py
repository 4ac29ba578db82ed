"""Reference implementation of the paper in plain NumPy, in the order of its sections.

It is meant to be read from top to bottom next to *A Bayesian reassessment of nearest-neighbour
classification* (Cucala, Marin, Robert and Titterington 2009). The functions are slow and do not
check their arguments. This module and the rest of the package do not import each other, so that the
tests can compare the fast code with an independent implementation, on the same data and with the
same random numbers. Labels such as eq:knn are those of the paper's LaTeX source.

=========  ======================================================================================
``X``      points, shape (n, p)
``y``      labels of the points in 0..G-1 (in the paper 1..G); ``z``: labels drawn from the model
``D``      distances, shape (n, n); ``d``: distances from a new point to the n training points
``near``   row i lists the other points, nearest first: ``near[i, :k]`` is the set N_k(i)
``a``      class weights, shape (G,), all equal to 1 except under unbalanced sampling
``beta``   strength of the dependence of a label on the labels of its neighbours
``u``      random numbers, uniform on [0, 1), given as an argument where a chain must be replayed
``rng``    NumPy random generator, used where a chain need not be replayed
=========  ======================================================================================

Errors of the paper are corrected (S is divided by k once; the integral of path sampling runs
upwards; E[S] / k is n / G at beta = 0); ``docs/equations.md`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy import ndarray
from numpy.random import Generator

# Types of arguments: a value of (beta, k); the potential h(y, beta, k); a function that draws
# labels at (beta, k); a function that returns a proposed (beta, k) and its log Hastings correction;
# a function that returns the random numbers of time -t.
At = tuple[float, int]
Potential = Callable[[ndarray, float, int], ndarray]
DrawLabels = Callable[[float, int], ndarray]
Walk = Callable[[At, Generator], tuple[At, float]]
Replay = Callable[[int], ndarray]

# Six points on a line for the examples. Points 2 and 5 are nearest neighbour of no other point.
TOY_X = np.array([[0.0], [1.0], [2.6], [5.0], [6.0], [7.3]])
TOY_Y = np.array([0, 0, 1, 1, 1, 0])


# Section 1.2: the original k-nearest-neighbour method


def distances(x: ndarray, X: ndarray) -> ndarray:
    """Return the Euclidean distances d(x_q, x_i) of the m rows of x to the n rows of X, (m, n)."""
    return np.sqrt(sum((x[:, None, f] - X[None, :, f]) ** 2 for f in range(X.shape[1])))


def key(row: int) -> int:
    """Return the key that orders neighbours at equal distance: splitmix64 of the row's index.

    The neighbour with the smaller key comes first. Because the keys are pseudo-random, this order
    favours no class, even if a file is sorted by class. Of the paper's data only the glass data
    have equal distances, and only a few.
    """
    bits = (row + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def rank(D: ndarray) -> ndarray:
    """Return the column indices of each row of D in the order of (distance, key)."""
    keys = np.array([key(i) for i in range(D.shape[1])], np.uint64)
    return np.array([np.lexsort((keys, row)) for row in D])


def neighbours(D: ndarray) -> ndarray:
    """Return the other training points in order of distance from each point, shape (n, n - 1).

    >>> neighbours(distances(TOY_X, TOY_X))[:, :2]
    array([[1, 2], [0, 2], [1, 3], [4, 5], [3, 5], [4, 3]])
    """
    return np.array([order[order != i] for i, order in enumerate(rank(D))])


def vote(labels: ndarray, k: int) -> int:
    """Return the most common of the first k labels; a tie is resolved by decreasing k.

    >>> vote(np.array([1, 0, 0, 1]), 4)
    0
    """
    counts = np.bincount(labels[:k])
    winners = np.flatnonzero(counts == counts.max())
    return int(winners[0]) if len(winners) == 1 else vote(labels, k - 1)


def classify(near: ndarray, y: ndarray, k: int) -> ndarray:
    """Return the class that the k nearest training points vote for, one for each row of near."""
    return np.array([vote(y[row], k) for row in near])


def leave_one_out_error(near: ndarray, y: ndarray, k: int) -> float:
    """Return the proportion of training points whose neighbours vote for a class not their own.

    >>> leave_one_out_error(neighbours(distances(TOY_X, TOY_X)), TOY_Y, 1) == 2 / 6
    True
    """
    return float(np.mean(classify(near, y, k) != y))


# Section 2.1: Markov random field modelling, and Holmes and Adams' product


def adjacency(near: ndarray, k: int) -> ndarray:
    """Return the matrix with A[i, l] = 1 if l is one of the k nearest neighbours of i, else 0."""
    A = np.zeros((len(near), len(near)), int)
    np.put_along_axis(A, near[:, :k], 1, axis=1)
    return A


def count_classes(A: ndarray, y: ndarray, G: int) -> ndarray:
    """Return sum_l A[i, l] delta_g(y_l) for every point i and class g, shape (n, G)."""
    return A @ (y[:, None] == np.arange(G))


def softmax(logs: ndarray) -> ndarray:
    """Return exp(logs), normalised to sum to 1 along the last axis."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def one_sided_conditional(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """Return the conditionals eq:knn-intuit, which count forward neighbours only, shape (n, G).

    f(y_i = g | y_-i) is proportional to exp(beta / k a_g sum_{l ~_k i} delta_g(y_l)). In general
    there is no joint distribution of the labels with these conditionals, because l may be a
    neighbour of i while i is not a neighbour of l.
    """
    return softmax(beta / k * a * count_classes(adjacency(near, k), y, len(a)))


def log_holmes_adams(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> float:
    """Return the log of eq:jointHA, the product over i of eq:knn-intuit at y_i.

    The product is not normalised. In the paper's example, n = 2 and k = 1, its sum over all y is
    not 1:

    >>> near, a, beta = np.array([[1], [0]]), np.ones(2), 1.0
    >>> total = sum(np.exp(log_holmes_adams(near, a, y, beta, 1)) for y in labellings(2, 2))
    >>> float(total.round(3)), round(2 * (1 + np.e**2) / (1 + np.e) ** 2, 3)
    (1.214, 1.214)
    """
    return log_product(one_sided_conditional(near, a, y, beta, k), y)


def log_product(p: ndarray, y: ndarray) -> float:
    """Return the sum over i of log p[i, y_i]."""
    return float(np.log(p[np.arange(len(y)), y]).sum())


# Section 2.2: a symmetrised Boltzmann modelling


def agreement(near: ndarray, a: ndarray, y: ndarray, k: int) -> ndarray:
    """Return S_k(y) = sum_i a_{y_i} sum_{l ~_k i} delta_{y_i}(y_l), the weighted agreeing edges.

    The last axis of y is that of the points; further axes hold several labellings.

    >>> near = neighbours(distances(TOY_X, TOY_X))
    >>> [float(agreement(near, np.ones(2), TOY_Y, k)) for k in (1, 2)]
    [4.0, 5.0]
    """
    return sum((a[y] * (y[..., near[:, r]] == y)).sum(axis=-1) for r in range(k))


def potential(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """Return beta / k S_k(y), the log of eq:knn without the normalising constant.

    eq:knn is f(y | beta, k) = exp(beta / k S_k(y)) / Z(beta, k).
    """
    return beta / k * agreement(near, a, y, k)


def conditional(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """Return eq:knn-cond, the full conditionals of eq:knn for every point and class, (n, G).

    f(y_i = g | y_-i) is proportional to
    exp(beta / k a_g (sum_{l ~_k i} delta_g(y_l) + sum_{i ~_k l} delta_g(y_l))).
    The first sum is over the neighbours of i, the second over the points of which i is a neighbour.
    A point in both sums counts twice.
    """
    A = adjacency(near, k)
    return softmax(beta / k * a * count_classes(A + A.T, y, len(a)))


def class_weights(y: ndarray, p: ndarray) -> ndarray:
    """Return a_g = p_g n / n_g for classes whose probabilities p_g differ from n_g / n."""
    return p * len(y) / np.bincount(y, minlength=len(p))


def labellings(n: int, G: int) -> ndarray:
    """Return all y in {0..G-1}^n, one per row, with the last label changing fastest."""
    return np.indices((G,) * n).reshape(n, -1).T


def log_normalizer(near: ndarray, a: ndarray, beta: float, k: int) -> float:
    """Return log Z(beta, k) = log sum_y exp(beta / k S_k(y)), by enumeration of all y.

    On a ring, where the neighbour of each point is the next point, log Z has a closed form:

    >>> n, G, beta = 5, 3, 0.7
    >>> ring, e = (np.arange(n)[:, None] + 1) % n, np.exp(beta)
    >>> Z = (e + G - 1) ** n + (G - 1) * (e - 1) ** n
    >>> bool(np.isclose(log_normalizer(ring, np.ones(G), beta, 1), np.log(Z)))
    True
    """
    every = labellings(len(near), len(a))
    return float(np.logaddexp.reduce(potential(near, a, every, beta, k)))


def log_likelihood(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> float:
    """Return log f(y | beta, k) of eq:knn, with the exact normalising constant."""
    return float(potential(near, a, y, beta, k)) - log_normalizer(near, a, beta, k)


def distribution(near: ndarray, a: ndarray, beta: float, k: int) -> tuple[ndarray, ndarray]:
    """Return all labellings, (G^n, n), and their probabilities under eq:knn, (G^n,)."""
    every = labellings(len(near), len(a))
    return every, softmax(potential(near, a, every, beta, k))


def mean_agreement(near: ndarray, a: ndarray, beta: float, k: int) -> float:
    """Return E[S_k] under eq:knn, by enumeration."""
    every, p = distribution(near, a, beta, k)
    return float(p @ agreement(near, a, every, k))


# Section 2.3: the predictive perspective


def count_new(D: ndarray, d: ndarray, y: ndarray, G: int, k: int) -> tuple[ndarray, ndarray]:
    """Return class counts of a new point's forward and reverse neighbours, each of shape (G,).

    The forward neighbours are its k nearest training points. The reverse neighbours are the
    training points l that are nearer to it than to their own k-th training neighbour.
    """
    forward = rank(d[None])[0, :k]
    kth = np.sort(D, axis=1)[:, k]  # Entry 0 of a sorted row is the point itself.
    return np.bincount(y[forward], minlength=G), np.bincount(y[d < kth], minlength=G)


def predictive(D: ndarray, d: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """Return eq:knn-pred, P(y_{n+1} = g | x_{n+1}, y, beta, k) for all classes g, shape (G,).

    It has the form of eq:knn-cond, with the new point in place of i.

    >>> D, d = distances(TOY_X, TOY_X), distances(np.array([[0.4]]), TOY_X)[0]
    >>> count_new(D, d, TOY_Y, 2, k=2)
    (array([2, 0]), array([2, 1]))
    >>> predictive(D, d, np.ones(2), TOY_Y, 1.0, 2).round(3)
    array([0.818, 0.182])
    """
    forward, reverse = count_new(D, d, y, len(a), k)
    return softmax(beta / k * a * (forward + reverse))


# Section 3: Bayesian inference


def grid_posterior(
    log_f: Callable[[float, int], float], beta_max: float, K: int, n_betas: int = 200
) -> tuple[ndarray, ndarray, ndarray]:
    """Return pi(beta, k | y) under a uniform prior on {1..K} x [0, beta_max], on a grid.

    There are only two parameters, so that the posterior is computed on a grid once log f is known.
    ``log_f(beta, k)`` is one of the log-likelihoods. Returns the values of beta (midpoints of
    n_betas equal intervals), the values of k, and the probabilities, shape (K, n_betas).

    >>> near = neighbours(distances(TOY_X, TOY_X))
    >>> betas, ks, weights = grid_posterior(
    ...     lambda beta, k: log_likelihood(near, np.ones(2), TOY_Y, beta, k), 4.0, 3)
    >>> weights.sum(axis=1).round(2), round(float(weights.sum(axis=0) @ betas), 2)
    (array([0.54, 0.23, 0.23]), 0.73)
    """
    betas, ks = (np.arange(n_betas) + 0.5) * beta_max / n_betas, np.arange(1, K + 1)
    logs = np.array([[log_f(beta, int(k)) for beta in betas] for k in ks])
    return betas, ks, softmax(logs.ravel()).reshape(logs.shape)


def average(
    p: Callable[[float, int], ndarray], betas: ndarray, ks: ndarray, weights: ndarray
) -> ndarray:
    """Return eq:trupred, the sum over k and beta of p(beta, k) pi(beta, k | y), shape (G,).

    For the draws of a Markov chain, eq:MCpred replaces it by the mean of p over the draws.
    """
    return sum(
        weights[r, b] * p(beta, int(k)) for r, k in enumerate(ks) for b, beta in enumerate(betas)
    )


# Section 3.1: MCMC steps


def decide(p: ndarray) -> tuple[int, float]:
    """Return the most probable class g, the Bayes rule under 0-1 loss, and its loss 1 - p[g]."""
    return int(p.argmax()), float(1 - p.max())


def steps(k: int, K: int, r: int) -> list[int]:
    """Return the values other than k in {k - r, ..., k + r} and {1..K}; [k] if there are none."""
    return [j for j in range(max(1, k - r), min(K, k + r) + 1) if j != k] or [k]


def propose(
    at: At, beta_max: float, K: int, tau: float, r: int, rng: Generator
) -> tuple[At, float]:
    """Return a random-walk proposal (beta', k') and the log of its Hastings correction.

    The walk moves theta, where beta = beta_max exp(theta) / (1 + exp(theta)), by a normal step with
    standard deviation tau, and draws k' uniformly from ``steps(k, K, r)``, with probability
    Q_r(k, k'). The correction is Q_r(k', k) / Q_r(k, k') times the ratio of the Jacobians
    d beta / d theta, which are proportional to beta (beta_max - beta).
    """
    beta, k = at
    theta = np.log(beta / (beta_max - beta)) + tau * rng.normal()
    to = float(beta_max / (1 + np.exp(-theta))), int(rng.choice(steps(k, K, r)))
    log_q = np.log(len(steps(k, K, r)) / len(steps(to[1], K, r)))
    return to, float(log_q + np.log(to[0] * (beta_max - to[0]) / (beta * (beta_max - beta))))


def accept(at: At, to: At, log_rho: float, rng: Generator) -> At:
    """Return the proposal with probability min(1, rho), otherwise the current value."""
    return to if np.log(rng.random()) < log_rho else at


def metropolis_move(at: At, log_f: Callable[[float, int], float], walk: Walk, rng: Generator) -> At:
    """Return the next (beta, k) of a Metropolis-Hastings chain on the likelihood f.

    The acceptance ratio is rho = f(y | beta', k') / f(y | beta, k) times the Hastings correction.
    ``walk(at, rng)`` is ``propose`` with its other arguments fixed.

    >>> rng, near = np.random.default_rng(0), neighbours(distances(TOY_X, TOY_X))
    >>> at, ks = (1.0, 1), []
    >>> for _ in range(500):
    ...     at = metropolis_move(
    ...         at,
    ...         lambda beta, k: log_likelihood(near, np.ones(2), TOY_Y, beta, k),
    ...         lambda at, rng: propose(at, 4.0, 3, 2.0, 2, rng), rng)
    ...     ks.append(at[1])
    >>> bool(0.4 < np.mean(np.array(ks) == 1) < 0.7)  # 0.54, as the grid says
    True
    """
    to, log_correction = walk(at, rng)
    return accept(at, to, log_f(*to) - log_f(*at) + log_correction, rng)


# Section 3.2: pseudo-likelihood approximation


def log_pseudo_likelihood(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> float:
    """Return the log of eq:psudoL, the product over i of the conditionals eq:knn-cond at y_i."""
    return log_product(conditional(near, a, y, beta, k), y)


# Section 3.3: path sampling, with Gibbs and with Swendsen-Wang sweeps


def path_sampling(mean: Callable[[float], float], n: int, G: int, betas: ndarray) -> ndarray:
    """Return log Z(beta, k) = n log G + integral from 0 to beta of E_u[S_k] / k du at each beta.

    ``mean(beta)`` is E[S_k] / k, exact or estimated from draws. The first of the betas must be 0.
    The integral is computed by the trapezium rule.

    >>> near, a = neighbours(distances(TOY_X, TOY_X)), np.ones(2)
    >>> betas = np.linspace(0, 2, 50)
    >>> path = path_sampling(lambda beta: mean_agreement(near, a, beta, 2) / 2, 6, 2, betas)
    >>> bool(np.isclose(path[-1], log_normalizer(near, a, 2.0, 2), atol=1e-3))
    True
    """
    means = np.array([mean(beta) for beta in betas])
    areas = np.diff(betas) * (means[1:] + means[:-1]) / 2
    return n * np.log(G) + np.append(0.0, np.cumsum(areas))


def choose(p: ndarray, u: float) -> int:
    """Return the class at which the cumulative sum of the probabilities p first exceeds u."""
    return min(int(np.searchsorted(np.cumsum(p), u, side="right")), len(p) - 1)


def gibbs_sweep(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, u: ndarray) -> ndarray:
    """Draw the labels in turn, each from its full conditional eq:knn-cond by inversion of u_i."""
    y, A = y.copy(), adjacency(near, k)
    for i, w in enumerate(A + A.T):
        y[i] = choose(softmax(beta / k * a * count_classes(w, y, len(a))), u[i])
    return y


def draw_bonds(
    near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, rng: Generator
) -> ndarray:
    """Draw the number of bonds on each edge i -> l given the labels, shape (n, k).

    An edge whose two labels agree has Poisson(beta / k a_{y_i}) bonds; other edges have none.
    Derivation: an agreeing edge contributes the factor exp(beta a / k) = sum_m (beta a / k)^m / m!
    to eq:knn. The number of bonds m is introduced as an auxiliary variable. The marginal
    distribution of the labels, summed over the bonds, is then eq:knn.
    """
    same = y[near[:, :k]] == y[:, None]
    return rng.poisson(beta / k * a[y][:, None] * same)


def find_clusters(n: int, edges: ndarray) -> ndarray:
    """Return the smallest index in the connected component of each point, given the edges (i, l).

    >>> find_clusters(5, np.array([(3, 1), (4, 3)]))
    array([0, 1, 2, 1, 1])
    """
    root, (i, j) = np.arange(n), edges.T
    while np.any(root[i] != root[j]):
        np.minimum.at(root, i, root[j])
        np.minimum.at(root, j, root[i])
    return root


def colour_clusters(near: ndarray, a: ndarray, bonds: ndarray, u: ndarray) -> ndarray:
    """Draw one class for each connected component: g with probability proportional to a_g^m.

    m is the number of bonds in the component; the draw inverts u at its smallest index.
    """
    i, r = np.nonzero(bonds)
    root = find_clusters(len(near), np.column_stack([i, near[i, r]]))
    m = np.bincount(root[i], bonds[i, r], minlength=len(near))
    colour = {s: choose(softmax(m[s] * np.log(a)), u[s]) for s in set(root.tolist())}
    return np.array([colour[s] for s in root.tolist()])


def swendsen_wang_sweep(
    near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, rng: Generator
) -> ndarray:
    """Draw bonds given labels, then labels given bonds, so that whole components change class.

    This sampler is not in the paper. It mixes at large beta, where the Gibbs sampler does not.
    """
    return colour_clusters(near, a, draw_bonds(near, a, y, beta, k, rng), rng.random(len(y)))


# Section 3.4: perfect sampling, the auxiliary variable, and the exchange that followed it


def replayable(seed: int, size: int) -> Replay:
    """Return a function u(t) that gives the same random numbers, (size,), at every call for t."""
    return lambda t: np.random.default_rng([seed, t]).random(size)


def couple_from_the_past(
    sweep: Callable[[ndarray, int], ndarray], lower: ndarray, upper: ndarray
) -> ndarray:
    """Return an exact draw by coupling from the past (Propp and Wilson).

    ``sweep(state, t)`` is monotone in the state and uses the random numbers of time -t. Two chains
    start from the smallest and the largest state at time -1, -2, -4, ..., until they coalesce at
    time 0. A chain started from any other state stays between the two. So the common state at time
    0 is that of a stationary chain started in the infinite past, which has the target distribution.
    Restarts must reuse the random numbers of each time; new ones would bias the draw.
    """
    for n_sweeps in (2**power for power in count()):
        low, high = lower, upper
        for t in range(n_sweeps, 0, -1):
            low, high = sweep(low, t), sweep(high, t)
            assert np.all(low <= high), "a sweep is not monotone"
        if np.array_equal(low, high):
            return low
    raise AssertionError


def perfect_labels_of_two_classes(
    near: ndarray, a: ndarray, beta: float, k: int, u: Replay
) -> ndarray:
    """Return an exact draw from eq:knn for G = 2 by the paper's method.

    Coupled Gibbs sweeps start from all labels 0 and from all labels 1. They are monotone: the
    probability of label 0 decreases with the number of neighbours that have label 1.

    >>> near = neighbours(distances(TOY_X, TOY_X))
    >>> perfect_labels_of_two_classes(near, np.ones(2), 1.0, 2, replayable(1, 6))
    array([0, 0, 0, 0, 0, 0])
    """
    assert len(a) == 2
    zeros = np.zeros(len(near), int)
    return couple_from_the_past(
        lambda y, t: gibbs_sweep(near, a, y, beta, k, u(t)), zeros, zeros + 1
    )


def is_connected(i: int, j: int, edges: ndarray) -> bool:
    """Return whether a path of edges connects i and j."""
    reached = {i}
    while more := {b for c, d in edges for a, b in ((c, d), (d, c)) if a in reached} - reached:
        reached |= more
    return j in reached


def bond_sweep(edges: ndarray, p: ndarray, G: int, is_open: ndarray, u: ndarray) -> ndarray:
    """Draw each bond, open or closed, in turn given the other bonds, in the random-cluster model.

    This is the distribution of the bonds with the labels summed out: P(bonds) is proportional to
    G^(number of connected components) times the product of p over the open bonds and of 1 - p over
    the closed ones. So bond b is open with probability p if other open bonds connect its end
    points, and with probability p / (p + (1 - p) G) if not. Additional open bonds can only connect
    more points, so a sweep is monotone for every G.
    """
    is_open = is_open.copy()
    for b, (i, j) in enumerate(edges):
        is_open[b] = False
        if u[b] < p[b]:
            opens_anyway = u[b] < p[b] / (p[b] + (1 - p[b]) * G)
            is_open[b] = opens_anyway or is_connected(i, j, edges[is_open])
    return is_open


def perfect_bonds(edges: ndarray, p: ndarray, G: int, u: Replay) -> ndarray:
    """Return an exact draw from the random-cluster model: whether each bond is open, (n_edges,)."""
    closed = np.zeros(len(edges), bool)
    return couple_from_the_past(
        lambda is_open, t: bond_sweep(edges, p, G, is_open, u(t)), closed, ~closed
    )


def perfect_labels(near: ndarray, a: ndarray, beta: float, k: int, u: Replay) -> ndarray:
    """Return an exact draw from eq:knn for any G, which the paper calls not yet achieved.

    The bonds are drawn first, one for each edge i -> l, with p = 1 - exp(-beta / k a_0); then one
    class for each connected component, by inversion of u(0). The class weights must be equal.
    ``u(t)`` must return at least n numbers and at least one for each edge.

    >>> near = neighbours(distances(TOY_X, TOY_X))
    >>> perfect_labels(near, np.ones(3), 1.0, 2, replayable(1, 12))
    array([1, 2, 2, 2, 2, 1])
    """
    assert np.all(a == a[0])
    n, edges = len(near), np.argwhere(adjacency(near, k))
    p = np.full(len(edges), 1 - np.exp(-beta / k * a[0]))
    root = find_clusters(n, edges[perfect_bonds(edges, p, len(a), u)])
    return np.array([choose(np.ones(len(a)) / len(a), u(0)[s]) for s in root])


def log_auxiliary_ratio(
    h: Potential, y: ndarray, z: ndarray, z_to: ndarray, at: At, to: At, plug_in: At
) -> float:
    """Return the log acceptance ratio of Moller et al., in which the normalising constants cancel.

    ``h(y, beta, k)`` is the potential beta / k S_k(y). The auxiliary labels ``z`` are part of the
    chain's state, and ``z_to`` was drawn at the proposal (beta', k'). Their assumed distribution is
    eq:knn at the plug-in (beta-hat, k-hat).
    """
    return float(
        h(y, *to) - h(y, *at) + h(z_to, *plug_in) - h(z, *plug_in) + h(z, *at) - h(z_to, *to)
    )


def auxiliary_move(
    at: At,
    z: ndarray,
    h: Potential,
    y: ndarray,
    plug_in: At,
    draw: DrawLabels,
    walk: Walk,
    rng: Generator,
) -> tuple[At, ndarray]:
    """Return the next (beta, k) and z of the auxiliary-variable chain.

    ``draw(beta, k)`` returns labels drawn from eq:knn.
    """
    to, log_correction = walk(at, rng)
    z_to = draw(*to)
    log_rho = log_auxiliary_ratio(h, y, z, z_to, at, to, plug_in) + log_correction
    moved = accept(at, to, log_rho, rng)
    return moved, z_to if moved is to else z


def log_exchange_ratio(h: Potential, y: ndarray, z: ndarray, at: At, to: At) -> float:
    """Return the log acceptance ratio of the exchange algorithm (Murray et al., 2006).

    The ratio is f(y | beta', k') f(z | beta, k) / (f(y | beta, k) f(z | beta', k')) with z drawn at
    (beta', k'). The normalising constants cancel.
    """
    return float(h(y, *to) - h(y, *at) + h(z, *at) - h(z, *to))


def exchange_move(
    at: At, h: Potential, y: ndarray, draw: DrawLabels, walk: Walk, rng: Generator
) -> At:
    """Return the next (beta, k) of the exchange algorithm, which needs no plug-in and stores no z.

    ``draw(beta, k)`` returns labels drawn from eq:knn.
    """
    to, log_correction = walk(at, rng)
    log_rho = log_exchange_ratio(h, y, draw(*to), at, to) + log_correction
    return accept(at, to, log_rho, rng)
