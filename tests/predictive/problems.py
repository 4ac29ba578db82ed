"""Problems on which the predictive is compared with the reference, averaged by hand."""

import functools
from dataclasses import replace

import numpy as np

from bayesknn import reference
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import BoltzmannModel
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive
from tests.graph.twins import query_counts


@functools.cache
def problem(n_classes, n=40, k_max=12, m=25, seed=0):
    """Points in the plane whose labels follow where they are, and new points."""
    rng = np.random.default_rng([seed, n_classes])
    labels = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, 2)) + 1.5 * np.column_stack([labels, labels % 2])
    new = rng.normal(size=(m, 2)) + 1.0
    return NeighborGraph.from_points(X, k_max=k_max), X, labels, new


def random_nodes(k_max, n_nodes=60, seed=0):
    """Nodes without order, as many at each k: five of k_max = 12, too few for a Gauss rule."""
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.ones(n_nodes))
    k = rng.permutation(1 + np.arange(n_nodes) % k_max)
    return PosteriorNodes(k, rng.uniform(0, 4, n_nodes), weight)


def rule_at_nodes(X, labels, new, n_classes, nodes, class_weight=None, direction="both"):
    """Every new point's class probabilities at every node: shape (N, m, n_classes)."""
    a = np.ones(n_classes) if class_weight is None else class_weight
    D, rows = reference.distances(X, X), reference.distances(new, X)
    counts = {k: query_counts(D, rows, labels, n_classes, k) for k in set(nodes.k.tolist())}
    return np.array(
        [
            reference.softmax(beta / k * a * counts[k][: 1 + (direction == "both")].sum(axis=0))
            for k, beta in zip(nodes.k.tolist(), nodes.beta.tolist(), strict=True)
        ]
    )


def interval(values, weights, level, mean):
    """Cut the equal-tailed interval of one weighted sample, widened to its mean."""
    tail = (1 - level) / 2 - 1e-12
    order = np.argsort(values, kind="stable")

    def walk(order):
        total = 0.0
        for j in order:
            total += weights[j]
            if total >= tail:
                return values[j]
        return None

    return min(walk(order), mean), max(walk(order[::-1]), mean)


def probabilities_and_errors(clf, X):
    """Predict by a coherent classifier; the errors are the spread over another run's replicates."""
    model = BoltzmannModel(clf.graph_, len(clf.classes_))
    likelihood = CoherentLikelihood(model, clf._labels)
    posterior = grid_posterior(likelihood, beta_max=clf.beta_max_, random_state=1)
    rules = []
    for weights in posterior.replicates[1:25]:
        one = replace(posterior, weights=weights, replicates=posterior.replicates[:0])
        nodes = PosteriorNodes.from_grid(one)
        rules.append(Predictive(model, clf._labels, nodes).probabilities(X))
    return clf.predict_proba(X), np.std(rules, axis=0)
