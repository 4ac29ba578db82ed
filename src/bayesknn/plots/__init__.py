"""Pictures, as scikit-learn's Displays: ``from_estimator`` computes, ``plot`` draws.

matplotlib is imported when something is drawn, not before.
"""

from bayesknn.plots.decision_region import DecisionRegionDisplay
from bayesknn.plots.leave_one_out import LeaveOneOutDisplay

__all__ = ["DecisionRegionDisplay", "LeaveOneOutDisplay"]
