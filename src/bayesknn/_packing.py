"""The package's own objects as plain dictionaries, so that a saved model names no type of ours.

skops refuses types it does not know. What a fitted classifier holds beside arrays and numbers is
therefore written as dictionaries, and read back into the classes listed here and no others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CLASS = "bayesknn class"
# Every class that may be restored, and where it lives.
_HOMES = {
    "ArrayPrior": "bayesknn.model.prior",
    "BallTreeSearch": "bayesknn.graph.search.borrowed",
    "BayesianKNeighborsClassifier": "bayesknn.classifier",
    "BorrowedKDTreeSearch": "bayesknn.graph.search.borrowed",
    "BruteSearch": "bayesknn.graph.search.every_pair",
    "Columns": "bayesknn.pooled.columns",
    "Description": "bayesknn.predictive.sureness",
    "Discriminant": "bayesknn.pooled.metrics",
    "DistanceScale": "bayesknn.predictive.calibration",
    "Euclidean": "bayesknn.graph.metrics",
    "Evidence": "bayesknn.pooled.metrics",
    "FlatSearch": "bayesknn.graph.search.faiss_index",
    "Gower": "bayesknn.graph.gower",
    "HNSWSearch": "bayesknn.graph.search.faiss_index",
    "IVFSearch": "bayesknn.graph.search.faiss_index",
    "KDTree": "bayesknn.graph.kdtree",
    "Link": "bayesknn.pooled.member",
    "Mahalanobis": "bayesknn.graph.mahalanobis",
    "Member": "bayesknn.pooled.member",
    "NeighborGraph": "bayesknn.graph.neighbor_graph",
    "Neighborhoods": "bayesknn.pooled.features",
    "NormalScores": "bayesknn.pooled.metrics",
    "PoolSureness": "bayesknn.pooled.pool_sureness",
    "PosteriorNodes": "bayesknn.predictive.nodes",
    "Precomputed": "bayesknn.graph.precomputed",
    "PrecomputedSearch": "bayesknn.graph.search.every_pair",
    "ProductSearch": "bayesknn.graph.search.own_tree",
    "Recall": "bayesknn.graph.search.search_index",
    "Relevance": "bayesknn.pooled.metrics",
    "ResidualCorrelation": "bayesknn.predictive.true_probability",
    "Robust": "bayesknn.pooled.metrics",
    "ScikitLearnMetric": "bayesknn.graph.metrics",
    "TreeSearch": "bayesknn.graph.search.own_tree",
    "UniformPrior": "bayesknn.model.prior",
    "Within": "bayesknn.pooled.metrics",
}


def pack(value: Any) -> Any:
    """Return a value with every object of ours, at any depth, as a dictionary.

    Examples
    --------
    >>> from bayesknn._packing import pack, unpack
    >>> from bayesknn.model import UniformPrior
    >>> packed = pack({"prior": UniformPrior(5, 4.0)})
    >>> packed["prior"]["beta_max"]
    4.0
    >>> unpack(packed)
    {'prior': UniformPrior(k_max=5, beta_max=4.0)}
    """
    cls = type(value)
    if _HOMES.get(cls.__name__) == cls.__module__:
        if hasattr(value, "_asdict"):
            state = value._asdict()
        elif cls.__getstate__ is not object.__getstate__:
            state = value.__getstate__()
        else:
            state = vars(value)
        return {_CLASS: cls.__name__, **{name: pack(part) for name, part in state.items()}}
    if cls is dict:
        return {key: pack(part) for key, part in value.items()}
    if cls in (list, tuple):
        return cls(pack(part) for part in value)
    return value


def unpack(value: Any) -> Any:
    """Return what :func:`pack` was given."""
    if type(value) in (list, tuple):
        return type(value)(unpack(part) for part in value)
    if type(value) is not dict:
        return value
    state = {key: unpack(part) for key, part in value.items() if key != _CLASS}
    if _CLASS not in value:
        return state
    name = value[_CLASS]
    if name not in _HOMES:
        raise ValueError(f"the saved model holds {name!r}, which is not a class of bayesknn")
    cls = getattr(import_module(_HOMES[name]), name)
    if hasattr(cls, "_fields"):
        return cls(**state)
    restored = cls.__new__(cls)
    if hasattr(cls, "__setstate__"):
        restored.__setstate__(state)
    else:
        # Not by setattr, which frozen dataclasses refuse.
        restored.__dict__.update(state)
    return restored
