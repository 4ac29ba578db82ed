"""The best prediction from neighbours: models in several metrics, pooled by leave-one-out.

A table becomes coordinates (``columns``), each of five ``metrics`` says which points are near,
neighbour lists give two ``features`` of a point for each class and k, a ``member`` links them to
probabilities and averages over k, and the ``pool`` weighs the members by their leave-one-out
scores. ``classifier`` connects these parts.
"""

from bayesknn.pooled.classifier import PooledNeighborsClassifier

__all__ = ["PooledNeighborsClassifier"]
