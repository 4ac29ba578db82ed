"""The recipe of the pool written with n-by-n matrices: the slow, obvious twin of bayesknn.pooled.

Numbers only: columns are standardised, and those constant in training dropped, before it starts.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, logsumexp, ndtri, softmax
from sklearn.ensemble import ExtraTreesClassifier

METRICS = ("discriminant", "relevance", "evidence")


def normal_scores(X, x):
    n = len(X)
    ranks = np.empty(x.shape)
    for j in range(X.shape[1]):
        column = np.sort(X[:, j])
        below = np.searchsorted(column, x[:, j], "left")
        upto = np.searchsorted(column, x[:, j], "right")
        ranks[:, j] = np.clip((below + upto + 1) / 2, 0.5, n + 0.5)
    return ndtri(ranks / (n + 1))


def whiten(X, y, n_classes):
    n, p = X.shape
    a = p / (p + n)
    means = np.array([X[y == g].mean(0) for g in range(n_classes)])
    R = X - means[y]
    W = R.T @ R / max(n - n_classes, 1)
    S = (1 - a) * W + a * np.diag(np.diag(W)) + 1e-6 * np.eye(p)
    values, axes = np.linalg.eigh(S)
    return axes / np.sqrt(values)


def discriminate(X, y, n_classes):
    n, p = X.shape
    L = whiten(X, y, n_classes)
    Z = X @ L
    means = np.array([Z[y == g].mean(0) for g in range(n_classes)])[y] - Z.mean(0)
    values, axes = np.linalg.eigh(means.T @ means / n)
    return L @ axes * np.sqrt(np.maximum(values, 0) + p / (p + n))


def weigh_columns(X, y, seed):
    rng = np.random.default_rng(seed)
    p = X.shape[1]
    shadows = rng.permuted(X, axis=0)
    trees = ExtraTreesClassifier(
        100, min_samples_leaf=3, max_features="sqrt", random_state=int(rng.integers(2**31))
    ).fit(np.hstack([X, shadows]), y)
    importance = trees.feature_importances_
    u = np.maximum(importance[:p] - importance[p:].mean(), 0)
    return p * u / u.sum() + 0.02 if u.sum() > 0 else np.ones(p)


def evidence(X, y, n_classes, x):
    """Training and new points as square roots of smoothed class shares along each column."""
    n = len(X)
    prior = np.bincount(y, minlength=n_classes) / n
    Y = np.eye(n_classes)[y]
    kept = [1] if n_classes == 2 else range(n_classes)
    train, new = [], []
    for j in range(X.shape[1]):
        values, code, counts = np.unique(X[:, j], return_inverse=True, return_counts=True)
        C = np.zeros((len(values), n_classes))
        np.add.at(C, code, Y)
        if len(values) > 10:
            ranks = np.cumsum(counts) - (counts - 1) / 2
            sd = max(n**0.8 / 4, 5)
            C = np.exp(-0.5 * ((ranks[:, None] - ranks) / sd) ** 2) @ C
        e = np.sqrt((C + 5 * prior) / (C.sum(1, keepdims=True) + 5))[:, kept]
        if len(values) == 2:
            e = np.array([[0.0], [np.linalg.norm(e[1] - e[0])]])
        train.append(e[code])
        new.append(np.column_stack([np.interp(x[:, j], values, column) for column in e.T]))
    train, new = np.hstack(train), np.hstack(new)
    centre, scale = train.mean(0), train.std(0).max() or 1.0
    return (train - centre) / scale, (new - centre) / scale


def embed(metric, X, y, n_classes, x, seed):
    """Return training and new points as coordinates."""
    if metric == "relevance":
        root = np.sqrt(weigh_columns(X, y, seed))
        return normal_scores(X, X) * root, normal_scores(X, x) * root
    if metric == "evidence":
        X, x = evidence(X, y, n_classes, x)
    L = discriminate(X, y, n_classes)
    return X @ L, x @ L


def tricube(u):
    return np.maximum(1 - u**3, 0) ** 3


def features(Z, y, n_classes, ks, z, reach, epsilon):
    """(len(ks), m, n_classes, 2) features of new points z, reach by left_out_features."""
    Y = np.eye(n_classes)[y]
    d = cdist(z, Z)
    near = np.sort(d, axis=1)
    by_class = [np.sort(d[:, y == g], axis=1) for g in range(n_classes)]
    is_listed = d <= near[:, [ks[-1]]]
    found = np.empty((len(ks), len(d), n_classes, 2))
    for t, k in enumerate(ks):
        v = tricube(d / near[:, [k]]) + is_listed * tricube(d / reach[:, t])
        found[t, :, :, 0] = np.log(1 / n_classes + v @ Y)
        for g in range(n_classes):
            few = by_class[g][:, : -(-k // n_classes)]
            found[t, :, g, 1] = -np.log(few.mean(1) + epsilon)
    return found


def left_out_features(places, y, n_classes, ks, folds):
    """Features of the training points; places[f] has all rows as learned without fold f.

    Then how far their lists go without their fold, and epsilon.
    """
    n, n_known = len(y), len(y) - np.bincount(folds).max()
    ks = np.clip(np.round(ks * n_known / n).astype(int), 1, n_known - 1)
    # Row i by the coordinates without its own fold, which is out of reach.
    d = np.array([cdist(places[f][[i]], places[f])[0] for i, f in enumerate(folds)])
    d[folds[:, None] == folds] = np.inf
    near = np.sort(d, axis=1)
    epsilon = 1e-3 * np.median(near[:, :5])
    is_listed = d <= near[:, [ks[-1]]]
    Y = np.eye(n_classes)[y]
    found = np.empty((len(ks), n, n_classes, 2))
    for t, k in enumerate(ks):
        h = near[:, k]
        v = tricube(d / h[:, None]) + is_listed * tricube(d / h)
        found[t, :, :, 0] = np.log(1 / n_classes + v @ Y)
        for g in range(n_classes):
            few = np.sort(d[:, y == g], axis=1)[:, : -(-k // n_classes)]
            found[t, :, g, 1] = -np.log(few.mean(1) + epsilon)
    return found, near[:, ks - 1], epsilon


def log_link(theta, phi):
    G = phi.shape[1]
    return log_softmax(theta[:G] + phi @ theta[G:], axis=1)


def leave_each_out(scores, y):
    """Return what a sum loses without row i if others of its class count n_g / (n_g - 1) each."""
    n = len(y)
    others = np.array([scores[(y == y[i]) & (np.arange(n) != i)].sum(0) for i in range(n)])
    return scores - others / (np.bincount(y)[y] - 1)[:, None]


def fit_link(phi, y):
    """MAP of (alpha, b) by bounded quasi-Newton, and approximate leave-one-out log p."""
    n, G, _ = phi.shape
    precision = np.array([0.25] * G + [0.25, 0.04])
    Y = np.eye(G)[y]

    def loss(theta):
        logp = log_link(theta, phi)
        r = Y - np.exp(logp)
        gradient = np.concatenate([r.sum(0), np.einsum("ig,igc->c", r, phi)])
        return (
            -logp[np.arange(n), y].sum() + 0.5 * precision @ theta**2,
            precision * theta - gradient,
        )

    start = np.array([0.0] * G + [1.0, 0.0])
    bounds = [(None, None)] * G + [(0, None)] * 2
    best = minimize(
        loss, start, jac=True, bounds=bounds, options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
    ).x
    p = np.exp(log_link(best, phi))
    J = np.concatenate([np.broadcast_to(np.eye(G), (n, G, G)), phi], axis=2)
    centred = J - np.einsum("ig,igc->ic", p, J)[:, None]
    H = np.einsum("ig,iga,igb->ab", p, centred, centred) + np.diag(precision)
    free = np.r_[np.full(G, True), best[G:] > 0]
    score = np.einsum("ig,igc->ic", Y - p, J)
    score = leave_each_out(score, y)
    step = np.zeros((n, G + 2))
    step[:, free] = -np.linalg.solve(H[np.ix_(free, free)], score[:, free].T).T
    moved = best + step
    moved[:, G:] = np.maximum(moved[:, G:], 0)
    logits = np.einsum("igc,ic->ig", J, moved)
    return best, log_softmax(logits, axis=1)


def fit_member(phi, y):
    fits = [fit_link(one, y) for one in phi]
    rows = np.arange(len(y))
    scores = np.array([loo[rows, y] for _, loo in fits]).T
    weights = softmax(scores.sum(0))
    without = softmax(scores.sum(0) - leave_each_out(scores, y), axis=1)
    loo = logsumexp(np.array([loo for _, loo in fits]) + np.log(without.T + 1e-300)[:, :, None], 0)
    return [theta for theta, _ in fits], weights, loo


def fit_pool(logs, y):
    """Weights of the members from their leave-one-out logs (M, n, G)."""
    M, n, _ = logs.shape
    rows = np.arange(n)

    def loss(w):
        logp = log_softmax(np.tensordot(w, logs, 1), axis=1)
        gradient = logs[:, rows, y].sum(1) - np.einsum("ig,mig->m", np.exp(logp), logs)
        lean = (w - 1 / M) / 0.2**2
        return -logp[rows, y].sum() + 0.5 * lean @ (w - 1 / M), lean - gradient

    return minimize(loss, np.full(M, 1 / M), jac=True, bounds=[(0, None)] * M).x


def predict(X, y, x, folds, metrics=METRICS, seed=0):
    """Class probabilities of new points x, and the weights of the metrics."""
    n, G = len(X), int(y.max()) + 1
    ks = np.unique(np.round(np.geomspace(2, n // 2, 10)).astype(int))
    loos, news = [], []
    for metric in metrics:
        Z, z = embed(metric, X, y, G, x, seed)
        places = [
            embed(metric, X[folds != f], y[folds != f], G, X, seed)[1] for f in np.unique(folds)
        ]
        phi, reach, epsilon = left_out_features(places, y, G, ks, folds)
        thetas, weights, loo = fit_member(phi, y)
        phi_new = features(Z, y, G, ks, z, reach, epsilon)
        p = sum(
            w * np.exp(log_link(t, f)) for w, t, f in zip(weights, thetas, phi_new, strict=True)
        )
        loos.append(np.maximum(loo, np.log(1e-5)))
        news.append(np.log(np.maximum(p, 1e-5)))
    w = fit_pool(np.array(loos), y)
    return softmax(np.tensordot(w, np.array(news), 1), axis=1), w
