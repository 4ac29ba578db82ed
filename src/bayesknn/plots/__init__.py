"""Pictures, as scikit-learn's Displays: ``from_estimator`` computes, ``plot`` draws.

That of a posterior has ``from_posterior`` as well. matplotlib is imported when something is
drawn, not before.
"""

from bayesknn.plots.column_path import ColumnPathDisplay
from bayesknn.plots.leave_one_out import LeaveOneOutDisplay
from bayesknn.plots.maps import DecisionRegionDisplay, ZoneMapDisplay
from bayesknn.plots.posterior import PosteriorDisplay
from bayesknn.plots.predictive_check import PredictiveCheckDisplay
from bayesknn.plots.reliability import ReliabilityDisplay

__all__ = [
    "ColumnPathDisplay",
    "DecisionRegionDisplay",
    "LeaveOneOutDisplay",
    "PosteriorDisplay",
    "PredictiveCheckDisplay",
    "ReliabilityDisplay",
    "ZoneMapDisplay",
]
