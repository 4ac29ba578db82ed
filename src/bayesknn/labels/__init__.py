"""Draws of the labels given (beta, k): Gibbs, Swendsen-Wang and perfect sampling (Section 3)."""

from bayesknn.labels.beta_max import find_beta_max
from bayesknn.labels.gibbs import gibbs_labels
from bayesknn.labels.perfect import perfect_labels
from bayesknn.labels.sampling import SampleInfo, sample_labels
from bayesknn.labels.swendsen_wang import swendsen_wang_labels

__all__ = [
    "SampleInfo",
    "find_beta_max",
    "gibbs_labels",
    "perfect_labels",
    "sample_labels",
    "swendsen_wang_labels",
]
