"""Pictures, as scikit-learn's Displays: ``from_estimator`` computes, ``plot`` draws.

That of a posterior has ``from_posterior`` as well. matplotlib is imported when something is
drawn, not before.
"""

from bayesknn.plots.checks import PredictiveCheckDisplay, ReliabilityDisplay
from bayesknn.plots.choices import ColumnPathDisplay, ColumnSetsDisplay, LeaveOneOutDisplay
from bayesknn.plots.maps import DecisionRegionDisplay, ZoneMapDisplay
from bayesknn.plots.posterior import PosteriorDisplay

__all__ = [
    "ColumnPathDisplay",
    "ColumnSetsDisplay",
    "DecisionRegionDisplay",
    "LeaveOneOutDisplay",
    "PosteriorDisplay",
    "PredictiveCheckDisplay",
    "ReliabilityDisplay",
    "ZoneMapDisplay",
]
