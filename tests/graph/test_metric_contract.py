"""What every metric must keep, also one that is added later: saved files and decoded rows."""

import numpy as np
import pytest

from bayesknn._utils.saving import pack, unpack
from bayesknn.graph import NeighborGraph
from bayesknn.graph.metrics import (
    Gower,
    Mahalanobis,
    Metric,
    NanEuclidean,
    Precomputed,
    ScikitLearnMetric,
)

POINTS = np.random.default_rng(0).normal(size=(30, 3))
# Arguments and points of those that do not take plain numbers.
MADE = {
    ScikitLearnMetric: lambda: (ScikitLearnMetric("manhattan"), POINTS),
    NanEuclidean: lambda: (NanEuclidean(), np.where(POINTS > [9, 9, 0.5], np.nan, POINTS)),
    Gower: lambda: (Gower(), [[x, y, "ab"[z > 0]] for x, y, z in POINTS.tolist()]),
    Precomputed: lambda: (Precomputed(), np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)),
}


def all_metrics(kind=Metric):
    for each in kind.__subclasses__():
        if each.__module__.startswith("bayesknn"):
            yield each
        yield from all_metrics(each)


@pytest.mark.parametrize("kind", sorted(all_metrics(), key=lambda kind: kind.__name__))
def test_a_fitted_metric_is_saved_and_decodes_its_points(kind):
    metric, X = MADE[kind]() if kind in MADE else (kind(), POINTS)
    graph = NeighborGraph.from_points(X, 5, metric=metric)
    packed = pack(graph)
    assert type(packed["index"]["metric"]) is dict, f"enter {kind.__name__} in _utils/saving.py"
    again = unpack(packed)
    rows = X[:4]
    before, after = (each.query(rows, 5) for each in (graph, again))
    np.testing.assert_array_equal(after.neighbors, before.neighbors)
    if kind is not Precomputed:
        row = graph.metric.decode(graph.index.points[0])
        numbers = graph.metric.transform([row])
        assert numbers.shape == graph.index.points[:1].shape
        # Mahalanobis stands at its centre; the others give the point back.
        if kind is not Mahalanobis:
            np.testing.assert_allclose(numbers[0], graph.index.points[0])
