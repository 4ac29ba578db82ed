"""Figures with the interface of scikit-learn's Displays.

``from_estimator`` computes the numbers and ``plot`` draws them; :class:`PosteriorDisplay` also has
``from_posterior``. matplotlib is imported only when a figure is drawn.
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
