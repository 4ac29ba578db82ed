"""The paper in plain NumPy, section by section: what every fast part of the package must compute.

Read it from top to bottom beside *A Bayesian reassessment of nearest-neighbour classification*
(Cucala, Marin, Robert and Titterington 2009). It is slow and checks nothing. It imports nothing of
the package, and the package imports nothing of it. Tests compare most folders with it, on the same
data and with the same random numbers, and log Z and the grid with exact values. Labels such as
eq:knn are those of the paper's LaTeX source.

=========  ======================================================================================
``X``      points, shape (n, p)
``y``      their labels in 0..G-1 (the paper: 1..G); ``z`` are labels drawn from the model
``D``      distances, shape (n, n); ``d`` those from one new point to the n training points
``near``   row i lists the other points, nearest first: ``near[i, :k]`` is the set N_k(i)
``a``      a weight for each class, all 1 but for unbalanced sampling; its length says what G is
``beta``   how strongly a point follows its neighbours
``u``      random numbers, uniform on [0, 1), passed in where a chain must be replayed
``rng``    a generator of NumPy, where it need not be
=========  ======================================================================================

The paper's slips are corrected (S is divided by k once; the integral of path sampling runs
upwards; E[S] / k is n / G at beta = 0); ``docs/equations.md`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy import ndarray
from numpy.random import Generator

# A value of (beta, k), and functions that are passed in: the potential h(y, beta, k), labels drawn
# at (beta, k), a proposal with its correction, and the random numbers of time -t.
At = tuple[float, int]
Potential = Callable[[ndarray, float, int], ndarray]
DrawLabels = Callable[[float, int], ndarray]
Walk = Callable[[At, Generator], tuple[At, float]]
Replay = Callable[[int], ndarray]

# Six points on a line, for the examples. Nobody's nearest neighbour is 2, or 5.
TOY_X = np.array([[0.0], [1.0], [2.6], [5.0], [6.0], [7.3]])
TOY_Y = np.array([0, 0, 1, 1, 1, 0])


# Section 1.2: the original k-nearest-neighbour method


def distances(x: ndarray, X: ndarray) -> ndarray:
    """Euclidean distances d(x_q, x_i) of the rows of x to the rows of X."""
    return np.sqrt(sum((x[:, None, f] - X[None, :, f]) ** 2 for f in range(X.shape[1])))


def key(row: int) -> int:
    """Return what settles equal distances: splitmix64 of the row's number, the smaller one first.

    Ripley's and the Pima data have no equal distances, glass has a few. This rule favours no class,
    however a file is sorted.
    """
    bits = (row + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def rank(D: ndarray) -> ndarray:
    """Sort each row of a matrix of distances by (distance, key)."""
    keys = np.array([key(i) for i in range(D.shape[1])], np.uint64)
    return np.array([np.lexsort((keys, row)) for row in D])


def neighbours(D: ndarray) -> ndarray:
    """List each training point's neighbours, nearest first, the point itself left out.

    >>> neighbours(distances(TOY_X, TOY_X))[:, :2]
    array([[1, 2], [0, 2], [1, 3], [4, 5], [3, 5], [4, 3]])
    """
    return np.array([order[order != i] for i, order in enumerate(rank(D))])


def vote(labels: ndarray, k: int) -> int:
    """Return the most common of the first k labels; ties are resolved by decreasing k.

    >>> vote(np.array([1, 0, 0, 1]), 4)
    0
    """
    counts = np.bincount(labels[:k])
    winners = np.flatnonzero(counts == counts.max())
    return int(winners[0]) if len(winners) == 1 else vote(labels, k - 1)


def classify(near: ndarray, y: ndarray, k: int) -> ndarray:
    """Let the k nearest training points vote on each point that has a row in near."""
    return np.array([vote(y[row], k) for row in near])


def leave_one_out_error(near: ndarray, y: ndarray, k: int) -> float:
    """Proportion of the training points whose neighbours vote for another class.

    >>> leave_one_out_error(neighbours(distances(TOY_X, TOY_X)), TOY_Y, 1) == 2 / 6
    True
    """
    return float(np.mean(classify(near, y, k) != y))


# Section 2.1: Markov random field modelling, and Holmes and Adams' product


def adjacency(near: ndarray, k: int) -> ndarray:
    """A[i, l] = 1 if l ~_k i, that is if l is one of the k nearest neighbours of i; 0 otherwise."""
    A = np.zeros((len(near), len(near)), int)
    np.put_along_axis(A, near[:, :k], 1, axis=1)
    return A


def count_classes(A: ndarray, y: ndarray, G: int) -> ndarray:
    """Sum over l of A[i, l] delta_g(y_l), for every point i and class g: shape (n, G)."""
    return A @ (y[:, None] == np.arange(G))


def softmax(logs: ndarray) -> ndarray:
    """exp(logs), scaled along the last axis to sum to 1."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def one_sided_conditional(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """eq:knn-intuit, f(y_i = g | y_-i) ~ exp(beta / k a_g sum_{l ~_k i} delta_g(y_l)).

    No joint distribution of the labels has these conditionals: l may be a neighbour of i and i
    none of l.
    """
    return softmax(beta / k * a * count_classes(adjacency(near, k), y, len(a)))


def log_holmes_adams(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> float:
    """eq:jointHA, the log of the product over i of eq:knn-intuit at y_i.

    It is not normalised. The paper's example, n = 2 and k = 1, where the sum over y should be 1:

    >>> near, a, beta = np.array([[1], [0]]), np.ones(2), 1.0
    >>> total = sum(np.exp(log_holmes_adams(near, a, y, beta, 1)) for y in labellings(2, 2))
    >>> float(total.round(3)), round(2 * (1 + np.e**2) / (1 + np.e) ** 2, 3)
    (1.214, 1.214)
    """
    return log_product(one_sided_conditional(near, a, y, beta, k), y)


def log_product(p: ndarray, y: ndarray) -> float:
    """Sum over i of log p[i, y_i]."""
    return float(np.log(p[np.arange(len(y)), y]).sum())


# Section 2.2: a symmetrised Boltzmann modelling


def agreement(near: ndarray, a: ndarray, y: ndarray, k: int) -> ndarray:
    """S_k(y) = sum_i a_{y_i} sum_{l ~_k i} delta_{y_i}(y_l), the weighted edges that agree.

    The last axis of y is that of the points, so that many labellings can be given at once.

    >>> near = neighbours(distances(TOY_X, TOY_X))
    >>> [float(agreement(near, np.ones(2), TOY_Y, k)) for k in (1, 2)]
    [4.0, 5.0]
    """
    return sum((a[y] * (y[..., near[:, r]] == y)).sum(axis=-1) for r in range(k))


def potential(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """eq:knn without its constant: f(y | beta, k) = exp(beta / k S_k(y)) / Z(beta, k)."""
    return beta / k * agreement(near, a, y, k)


def conditional(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """eq:knn-cond, the full conditionals of eq:knn, for every point and class.

    f(y_i = g | y_-i) is proportional to
    exp(beta / k a_g (sum_{l ~_k i} delta_g(y_l) + sum_{i ~_k l} delta_g(y_l))):
    neighbours, and points whose neighbour i is. Who is both counts twice.
    """
    A = adjacency(near, k)
    return softmax(beta / k * a * count_classes(A + A.T, y, len(a)))


def class_weights(y: ndarray, p: ndarray) -> ndarray:
    """a_g = p_g n / n_g, where the classes have probabilities p_g that are not n_g / n."""
    return p * len(y) / np.bincount(y, minlength=len(p))


def labellings(n: int, G: int) -> ndarray:
    """Every y in {0..G-1}^n, one a row, the last label changing fastest."""
    return np.indices((G,) * n).reshape(n, -1).T


def log_normalizer(near: ndarray, a: ndarray, beta: float, k: int) -> float:
    """Log Z(beta, k) = log sum_y exp(beta / k S_k(y)), by listing every y.

    On a ring, where each point's neighbour is the next one, it has a closed form:

    >>> n, G, beta = 5, 3, 0.7
    >>> ring, e = (np.arange(n)[:, None] + 1) % n, np.exp(beta)
    >>> Z = (e + G - 1) ** n + (G - 1) * (e - 1) ** n
    >>> bool(np.isclose(log_normalizer(ring, np.ones(G), beta, 1), np.log(Z)))
    True
    """
    every = labellings(len(near), len(a))
    return float(np.logaddexp.reduce(potential(near, a, every, beta, k)))


def log_likelihood(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> float:
    """eq:knn, log f(y | beta, k) with its exact constant."""
    return float(potential(near, a, y, beta, k)) - log_normalizer(near, a, beta, k)


def distribution(near: ndarray, a: ndarray, beta: float, k: int) -> tuple[ndarray, ndarray]:
    """eq:knn, every labelling and its probability."""
    every = labellings(len(near), len(a))
    return every, softmax(potential(near, a, every, beta, k))


def mean_agreement(near: ndarray, a: ndarray, beta: float, k: int) -> float:
    """E[S_k] under eq:knn."""
    every, p = distribution(near, a, beta, k)
    return float(p @ agreement(near, a, every, k))


# Section 2.3: the predictive perspective


def count_new(D: ndarray, d: ndarray, y: ndarray, G: int, k: int) -> tuple[ndarray, ndarray]:
    """Classes of a new point's k nearest neighbours, and of those whose neighbour it would be.

    The new point would be a neighbour of l if it is nearer than l's k-th training neighbour.
    """
    forward = rank(d[None])[0, :k]
    kth = np.sort(D, axis=1)[:, k]  # Entry 0 is l itself.
    return np.bincount(y[forward], minlength=G), np.bincount(y[d < kth], minlength=G)


def predictive(D: ndarray, d: ndarray, a: ndarray, y: ndarray, beta: float, k: int) -> ndarray:
    """eq:knn-pred, P(y_{n+1} = g | x_{n+1}, y, beta, k): eq:knn-cond for a new point.

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
    """pi(beta, k | y), proportional to f(y | beta, k) on {1..K} x [0, beta_max].

    The prior is uniform, and there are two unknowns: with Z at hand the posterior is a sum over a
    grid. ``log_f`` is any of the log-likelihoods. Returns the values of beta (midpoints of equal
    steps), those of k, and the probabilities, shape (K, n_betas).

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
    """eq:trupred, sum over k and beta of p(beta, k) pi(beta, k | y).

    A chain is averaged as eq:MCpred says: the mean of p over its draws.
    """
    return sum(
        weights[r, b] * p(beta, int(k)) for r, k in enumerate(ks) for b, beta in enumerate(betas)
    )


# Section 3.1: MCMC steps


def decide(p: ndarray) -> tuple[int, float]:
    """Bayes rule under 0-1 loss: the most probable class, and its expected loss 1 - P."""
    return int(p.argmax()), float(1 - p.max())


def steps(k: int, K: int, r: int) -> list[int]:
    """{k - r, ..., k - 1, k + 1, ..., k + r} within {1..K}; k itself if there is no other."""
    return [j for j in range(max(1, k - r), min(K, k + r) + 1) if j != k] or [k]


def propose(
    at: At, beta_max: float, K: int, tau: float, r: int, rng: Generator
) -> tuple[At, float]:
    """Random walk on theta, beta = beta_max exp(theta) / (1 + exp(theta)), and on k by Q_r.

    Returns (beta', k') and the log of what corrects the ratio of posteriors:
    Q_r(k', k) / Q_r(k, k'), times the ratio of the Jacobians exp(theta) / (1 + exp(theta))^2, which
    are beta (beta_max - beta) but for a factor.
    """
    beta, k = at
    theta = np.log(beta / (beta_max - beta)) + tau * rng.normal()
    to = float(beta_max / (1 + np.exp(-theta))), int(rng.choice(steps(k, K, r)))
    log_q = np.log(len(steps(k, K, r)) / len(steps(to[1], K, r)))
    return to, float(log_q + np.log(to[0] * (beta_max - to[0]) / (beta * (beta_max - beta))))


def accept(at: At, to: At, log_rho: float, rng: Generator) -> At:
    """Go to the proposal with probability min(1, rho)."""
    return to if np.log(rng.random()) < log_rho else at


def metropolis_move(at: At, log_f: Callable[[float, int], float], walk: Walk, rng: Generator) -> At:
    """Move by rho = f(y | beta', k') / f(y | beta, k), times the correction of ``propose``.

    ``walk(at, rng)`` is ``propose`` with its settings.

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
    """eq:psudoL, the log of the product over i of the full conditionals eq:knn-cond at y_i."""
    return log_product(conditional(near, a, y, beta, k), y)


# Section 3.3: path sampling, with Gibbs and with Swendsen-Wang sweeps


def path_sampling(mean: Callable[[float], float], n: int, G: int, betas: ndarray) -> ndarray:
    """Log Z(beta, k) = n log G + integral from 0 to beta of E_u[S_k] / k du, at each beta.

    ``mean(beta)`` is E[S_k] / k, exact or the average of many draws; betas start at 0 and the
    integral is by the trapezium rule.

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
    """Return the class whose stretch of [0, 1) holds u, the stretches being p[0], p[1], ..."""
    return min(int(np.searchsorted(np.cumsum(p), u, side="right")), len(p) - 1)


def gibbs_sweep(near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, u: ndarray) -> ndarray:
    """Draw the labels one after the other, each from its full conditional eq:knn-cond by u_i."""
    y, A = y.copy(), adjacency(near, k)
    for i, w in enumerate(A + A.T):
        y[i] = choose(softmax(beta / k * a * count_classes(w, y, len(a))), u[i])
    return y


def draw_bonds(
    near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, rng: Generator
) -> ndarray:
    """Bonds on edges i -> l that agree: Poisson(beta / k a_{y_i}) of them; none on the others.

    An edge that agrees has the factor exp(beta a / k) in eq:knn, which is the sum over m of
    (beta a / k)^m / m!; take m, its number of bonds, as a variable beside the labels. An edge that
    disagrees has the factor 1 and no bond. Summed over the bonds, the labels have eq:knn.
    """
    same = y[near[:, :k]] == y[:, None]
    return rng.poisson(beta / k * a[y][:, None] * same)


def find_clusters(n: int, edges: ndarray) -> ndarray:
    """Return the lowest point that each point is connected with, by way of the edges (i, l).

    >>> find_clusters(5, np.array([(3, 1), (4, 3)]))
    array([0, 1, 2, 1, 1])
    """
    root, (i, j) = np.arange(n), edges.T
    while np.any(root[i] != root[j]):
        np.minimum.at(root, i, root[j])
        np.minimum.at(root, j, root[i])
    return root


def colour_clusters(near: ndarray, a: ndarray, bonds: ndarray, u: ndarray) -> ndarray:
    """Give each cluster of m bonds class g with probability proportional to a_g^m, by u_root."""
    i, r = np.nonzero(bonds)
    root = find_clusters(len(near), np.column_stack([i, near[i, r]]))
    m = np.bincount(root[i], bonds[i, r], minlength=len(near))
    colour = {s: choose(softmax(m[s] * np.log(a)), u[s]) for s in set(root.tolist())}
    return np.array([colour[s] for s in root.tolist()])


def swendsen_wang_sweep(
    near: ndarray, a: ndarray, y: ndarray, beta: float, k: int, rng: Generator
) -> ndarray:
    """Draw bonds given labels, then labels given bonds: whole clusters change at once.

    Not in the paper, whose Gibbs sampler hardly moves at the larger beta.
    """
    return colour_clusters(near, a, draw_bonds(near, a, y, beta, k, rng), rng.random(len(y)))


# Section 3.4: perfect sampling, the auxiliary variable, and the exchange that followed it


def replayable(seed: int, size: int) -> Replay:
    """Return u(t), the random numbers of time -t: the same whenever that time is visited."""
    return lambda t: np.random.default_rng([seed, t]).random(size)


def couple_from_the_past(
    sweep: Callable[[ndarray, int], ndarray], lower: ndarray, upper: ndarray
) -> ndarray:
    """Propp and Wilson: start from both extremes, further and further back, until they meet at 0.

    ``sweep(state, t)`` keeps the order of states and uses the random numbers of time -t. Any other
    start stays between the two, so where they meet, a chain that has run forever is too: at time
    0 it has the distribution itself, without warm-up. Fresh numbers further back would spoil it.
    """
    for n_sweeps in (2**power for power in count()):
        low, high = lower, upper
        for t in range(n_sweeps, 0, -1):
            low, high = sweep(low, t), sweep(high, t)
            assert np.all(low <= high), "the order of the chains broke"
        if np.array_equal(low, high):
            return low
    raise AssertionError


def perfect_labels_of_two_classes(
    near: ndarray, a: ndarray, beta: float, k: int, u: Replay
) -> ndarray:
    """Draw as the paper does, G = 2: Gibbs sweeps from all labels 0 and from all labels 1.

    The more neighbours have label 1, the smaller is the stretch of u that gives label 0.

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
    """Whether a path of edges leads from i to j."""
    reached = {i}
    while more := {b for c, d in edges for a, b in ((c, d), (d, c)) if a in reached} - reached:
        reached |= more
    return j in reached


def bond_sweep(edges: ndarray, p: ndarray, G: int, is_open: ndarray, u: ndarray) -> ndarray:
    """Draw each bond given the others, open or closed, in the random-cluster model.

    The labels summed out, P(bonds) is proportional to
    G^(number of clusters) times the product of p (open) and 1 - p (closed): bond b opens with
    probability p if its ends are connected otherwise, and p / (p + (1 - p) G) if not.
    More bonds make more connections, so a sweep is monotone for every G.
    """
    is_open = is_open.copy()
    for b, (i, j) in enumerate(edges):
        is_open[b] = False
        if u[b] < p[b]:
            sure = u[b] < p[b] / (p[b] + (1 - p[b]) * G)
            is_open[b] = sure or is_connected(i, j, edges[is_open])
    return is_open


def perfect_bonds(edges: ndarray, p: ndarray, G: int, u: Replay) -> ndarray:
    """Return an exact draw from the random-cluster model: which bonds are open."""
    closed = np.zeros(len(edges), bool)
    return couple_from_the_past(
        lambda is_open, t: bond_sweep(edges, p, G, is_open, u(t)), closed, ~closed
    )


def perfect_labels(near: ndarray, a: ndarray, beta: float, k: int, u: Replay) -> ndarray:
    """Return an exact draw from eq:knn for any G, which the paper calls unachieved.

    One bond for each edge i -> l, p = 1 - exp(-beta / k a_0), then a class for each cluster by
    u(0). u(t) holds as many numbers as there are edges, and n at least.

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
    """Log of the ratio of Moller et al., in which Z(beta, k) and Z(beta', k') cancel.

    ``h(y, beta, k)`` is the potential, beta / k S_k(y). ``z`` is part of the chain's state,
    ``z_to`` was drawn at (beta', k'), and g(z) is eq:knn at the plug-in (beta-hat, k-hat).
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
    """Move (beta, k, z) together; ``draw(beta, k)`` gives labels from eq:knn."""
    to, log_correction = walk(at, rng)
    z_to = draw(*to)
    log_rho = log_auxiliary_ratio(h, y, z, z_to, at, to, plug_in) + log_correction
    moved = accept(at, to, log_rho, rng)
    return moved, z_to if moved is to else z


def log_exchange_ratio(h: Potential, y: ndarray, z: ndarray, at: At, to: At) -> float:
    """Log of the ratio of Murray, Ghahramani and MacKay (2006): y and z exchange their settings.

    f(y | beta', k') f(z | beta, k) / (f(y | beta, k) f(z | beta', k')), in which Z cancels, with z
    drawn at (beta', k').
    """
    return float(h(y, *to) - h(y, *at) + h(z, *at) - h(z, *to))


def exchange_move(
    at: At, h: Potential, y: ndarray, draw: DrawLabels, walk: Walk, rng: Generator
) -> At:
    """Move (beta, k); needs no plug-in and keeps no labels."""
    to, log_correction = walk(at, rng)
    log_rho = log_exchange_ratio(h, y, draw(*to), at, to) + log_correction
    return accept(at, to, log_rho, rng)
