"""The best prediction from neighbours: several views of a table, pooled by leave-one-out.

Rows, columns and classes are put in an order that depends on what they hold (``order``). A table
becomes coordinates (``columns``). A view is what a member sees of it (``views``):
neighbours in one of three ``metrics``, whose lists give two ``features`` of a point for each class
and k, or boosted trees (``boosting``), or an additive or a smooth regression (``ridge``,
``kernels``). A ``member`` links the view to probabilities and averages over k; members are weighed
by their leave-one-out scores. ``classifier`` connects these parts; ``interval_model`` hands what
they know to ``sureness``.
"""

from bayesknn.pooled.classifier import PooledNeighborsClassifier

__all__ = ["PooledNeighborsClassifier"]
