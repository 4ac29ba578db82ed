"""Fitting and predicting on Dask collections that need not fit in one machine's memory.

Points stay in their blocks. ``blocks`` finds neighbours by pairs of blocks, sends edges to the
blocks of their targets and counts classes; ``distributed_classifier`` adds up what the posterior
needs and predicts. Every task is a pure function of blocks: one that is run twice, because a
worker was lost, changes nothing.
"""

from bayesknn.distributed.distributed_classifier import DistributedNeighborsClassifier

__all__ = ["DistributedNeighborsClassifier"]
