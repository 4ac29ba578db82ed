"""Pictures, as scikit-learn's Displays: ``from_estimator`` computes, ``plot`` draws.

Those of a posterior or of a table of log Z have ``from_posterior`` or ``from_table`` in its place.
matplotlib is imported when something is drawn, not before.
"""

from bayesknn.plots.approximation import ApproximationDisplay
from bayesknn.plots.column_path import ColumnPathDisplay
from bayesknn.plots.decision_region import DecisionRegionDisplay
from bayesknn.plots.expected_agreement import ExpectedAgreementDisplay
from bayesknn.plots.leave_one_out import LeaveOneOutDisplay
from bayesknn.plots.log_normalizer import LogNormalizerDisplay
from bayesknn.plots.posterior import PosteriorDisplay
from bayesknn.plots.probability_comparison import ProbabilityComparisonDisplay
from bayesknn.plots.reliability import ReliabilityDisplay
from bayesknn.plots.zone_map import ZoneMapDisplay

__all__ = [
    "ApproximationDisplay",
    "ColumnPathDisplay",
    "DecisionRegionDisplay",
    "ExpectedAgreementDisplay",
    "LeaveOneOutDisplay",
    "LogNormalizerDisplay",
    "PosteriorDisplay",
    "ProbabilityComparisonDisplay",
    "ReliabilityDisplay",
    "ZoneMapDisplay",
]
