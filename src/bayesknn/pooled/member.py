"""A member of the pool: the features of one view, linked to probabilities and averaged over k.

The link is ``P(g) ~ exp(alpha_g + b_1 phi_1 + b_2 phi_2)``, without phi_2 where a view has one
feature. With b = (1, 0) and alpha = 0 it is the smoothed vote, a Polya urn. alpha and b are found
by Newton's method under normal priors; b must not be negative, because leaving a point out takes it
from its own class alone, and a negative b would read that as signal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from bayesknn._utils.threads import run_in_threads
from bayesknn.predictive.conditional_logit import fit_conditional_logit

# Prior standard deviations of every alpha and of (b_1, b_2): several times what links on tables of
# a hundred rows need, and finite where classes are separable.
_ALPHA_SD, _B_SD = 2.0, (2.0, 5.0)


class Link:
    """The fitted link at one k.

    Attributes
    ----------
    alpha : ndarray of shape (n_classes,)
    b : ndarray of shape (n_features,)
    """

    def __init__(self, alpha: np.ndarray, b: np.ndarray):
        self.alpha = alpha
        self.b = b

    def log_proba(self, features: np.ndarray) -> np.ndarray:
        """Log probabilities (m, n_classes) of features (m, n_classes, n_features)."""
        return log_softmax(self.alpha + features @ self.b, axis=1)


def fit_link(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[Link, np.ndarray]:
    """Fit the link, and say what it would be without each point.

    Parameters
    ----------
    features : ndarray of shape (n, n_classes, n_features)
    labels, weights : ndarray of shape (n,)

    Returns
    -------
    link : Link
    loo_log_proba : ndarray of shape (n, n_classes)
        Log probabilities of each point at the parameters moved by one Newton step that takes its
        own score out: approximate leave-one-out of alpha and b.
    """
    _, n_classes, n_features = features.shape
    found = fit_conditional_logit(
        features,
        labels,
        b_mean=0.0,
        b_sd=_B_SD[:n_features],
        covariate=np.ones(len(labels)),
        alpha_sd=_ALPHA_SD,
        weight=weights,
    )
    link = Link(found.alpha, found.b)
    theta, hessian = np.append(link.alpha, link.b), found.hessian
    free = (np.arange(theta.size) < n_classes) | (theta > 0)
    rest = (np.eye(n_classes)[labels] - np.exp(link.log_proba(features))) * weights[:, None]
    scores = np.hstack([rest, np.einsum("ig,igc->ic", rest, features)])
    steps = np.zeros_like(scores)
    steps[:, free] = np.linalg.solve(hessian[np.ix_(free, free)], scores[:, free].T).T
    moved = theta - steps
    logits = moved[:, :n_classes] + np.einsum("igc,ic->ig", features, moved[:, n_classes:])
    return link, log_softmax(logits, axis=1)


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
        """Class probabilities (m, n_classes) of features (n_k, m, n_classes, n_features).

        Their variances over k come second.
        """
        each = [np.exp(link.log_proba(x)) for link, x in zip(self.links, features, strict=True)]
        mean = np.tensordot(self.k_weights, each, 1)
        return mean, np.tensordot(self.k_weights, (each - mean) ** 2, 1)


def fit_member(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray, n_jobs: int | None = None
) -> tuple[Member, np.ndarray]:
    """Fit the links and average over k.

    Parameters
    ----------
    features : ndarray of shape (n_k, n, n_classes, n_features)
    labels, weights : ndarray of shape (n,)
    n_jobs : int, optional
        Threads. No result depends on it.

    Returns
    -------
    member : Member
    loo_proba : ndarray of shape (n, n_classes)
    """
    rows = np.arange(len(labels))
    fits: list[Any] = [None] * len(features)

    def fit(t: int, _: int) -> None:
        fits[t] = fit_link(features[t], labels, weights)

    run_in_threads(fit, len(features), 1, n_jobs)
    links, logs = zip(*fits, strict=True)
    k_weights = softmax([weights @ log_p[rows, labels] for log_p in logs])
    loo = sum(weight * np.exp(log_p) for weight, log_p in zip(k_weights, logs, strict=True))
    return Member(list(links), k_weights), loo
