"""Draws of the labels given (beta, k): Gibbs, Swendsen-Wang and perfect sampling (Section 3)."""

from bayesknn.labels.gibbs import gibbs_labels
from bayesknn.labels.gibbs_lanes import gibbs_lanes
from bayesknn.labels.perfect import perfect_labels
from bayesknn.labels.random import spawn_keys
from bayesknn.labels.sampling import SampleInfo, sample_labels
from bayesknn.labels.swendsen_wang import swendsen_wang_labels
from bayesknn.labels.transition import find_beta_max

__all__ = [
    "SampleInfo",
    "find_beta_max",
    "gibbs_labels",
    "gibbs_lanes",
    "perfect_labels",
    "sample_labels",
    "spawn_keys",
    "swendsen_wang_labels",
]
