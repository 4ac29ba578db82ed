"""A member of the pool: one metric's features, linked to probabilities and averaged over k.

The link is ``P(g) ~ exp(alpha_g + b_1 phi_1 + b_2 phi_2)``. With b = (1, 0) and alpha = 0 it is the
smoothed vote, a Polya urn. alpha and b are found by Newton's method under normal priors; b must
not be negative, because leaving a point out takes it from its own class alone, and a negative b
would read that as signal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from bayesknn.pooled.newton import minimize

# Prior standard deviations of every alpha and of (b_1, b_2).
_ALPHA_SD = 2.0
_B_SD = (2.0, 5.0)


class Link:
    """The fitted link at one k.

    Attributes
    ----------
    alpha : ndarray of shape (n_classes,)
    b : ndarray of shape (2,)
    """

    def __init__(self, alpha: np.ndarray, b: np.ndarray):
        self.alpha = alpha
        self.b = b

    def log_proba(self, features: np.ndarray) -> np.ndarray:
        """Log probabilities (m, n_classes) of features (m, n_classes, 2)."""
        return log_softmax(self.alpha + features @ self.b, axis=1)


def fit_link(features: np.ndarray, labels: np.ndarray) -> tuple[Link, np.ndarray]:
    """Fit the link, and say what it would be without each point.

    Parameters
    ----------
    features : ndarray of shape (n, n_classes, 2)
    labels : ndarray of shape (n,)

    Returns
    -------
    link : Link
    loo_log_proba : ndarray of shape (n, n_classes)
        Log probabilities of each point at the parameters moved by one Newton step that takes its
        own score out: approximate leave-one-out of alpha and b.
    """
    n, n_classes, _ = features.shape
    precision = np.array([_ALPHA_SD**-2] * n_classes + [sd**-2 for sd in _B_SD])
    truth = np.zeros((n, n_classes))
    truth[np.arange(n), labels] = 1.0

    def objective(theta: Any) -> Any:
        log_p = Link(theta[:n_classes], theta[n_classes:]).log_proba(features)
        p = np.exp(log_p)
        rest = truth - p
        score = np.concatenate([rest.sum(axis=0), np.einsum("ig,igc->c", rest, features)])
        value = -log_p[np.arange(n), labels].sum() + 0.5 * precision @ theta**2
        return value, precision * theta - score, _curvature(p, features) + np.diag(precision)

    is_b = np.arange(n_classes + 2) >= n_classes
    theta = minimize(objective, is_b * 0.5, is_b)
    link = Link(theta[:n_classes], theta[n_classes:])
    hessian = objective(theta)[2]
    free = ~is_b | (theta > 0)
    rest = truth - np.exp(link.log_proba(features))
    scores = np.hstack([rest, np.einsum("ig,igc->ic", rest, features)])
    steps = np.zeros_like(scores)
    steps[:, free] = np.linalg.solve(hessian[np.ix_(free, free)], scores[:, free].T).T
    moved = theta - steps
    logits = moved[:, :n_classes] + np.einsum("igc,ic->ig", features, moved[:, n_classes:])
    return link, log_softmax(logits, axis=1)


def _curvature(p: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Hessian of minus the log likelihood in (alpha, b)."""
    n_classes = p.shape[1]
    around = features - np.einsum("ig,igc->ic", p, features)[:, None]
    weighted = p[..., None] * around
    hessian = np.empty((n_classes + 2, n_classes + 2))
    hessian[:n_classes, :n_classes] = np.diag(p.sum(axis=0)) - p.T @ p
    hessian[:n_classes, n_classes:] = weighted.sum(axis=0)
    hessian[n_classes:, :n_classes] = hessian[:n_classes, n_classes:].T
    hessian[n_classes:, n_classes:] = np.einsum("igc,igd->cd", weighted, around)
    return hessian


class Member:
    """Links at every k and their weights.

    Attributes
    ----------
    links : list of Link
    k_weights : ndarray of shape (n_k,)
        Proportional to the product of the leave-one-out probabilities of the labels.
    """

    def __init__(self, links: list[Link], k_weights: np.ndarray):
        self.links = links
        self.k_weights = k_weights

    def proba(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities (m, n_classes) of features (n_k, m, n_classes, 2).

        Their variances over k come second.
        """
        each = [np.exp(link.log_proba(x)) for link, x in zip(self.links, features, strict=True)]
        mean = np.tensordot(self.k_weights, each, 1)
        return mean, np.tensordot(self.k_weights, (each - mean) ** 2, 1)


def fit_member(features: np.ndarray, labels: np.ndarray) -> tuple[Member, np.ndarray]:
    """Fit the links and average over k.

    Parameters
    ----------
    features : ndarray of shape (n_k, n, n_classes, 2)
    labels : ndarray of shape (n,)

    Returns
    -------
    member : Member
    loo_proba : ndarray of shape (n, n_classes)
    """
    rows = np.arange(len(labels))
    links, logs = zip(*(fit_link(one, labels) for one in features), strict=True)
    weights = softmax([log_p[rows, labels].sum() for log_p in logs])
    loo = sum(weight * np.exp(log_p) for weight, log_p in zip(weights, logs, strict=True))
    return Member(list(links), weights), loo
