"""Class probabilities of new points, averaged over the law of (beta, k), and what to do with them.

``nodes`` holds the law of (beta, k) in a small number of weighted points, ``quadrature`` condenses
it further for averages, ``averages`` and ``intervals`` evaluate the predictive rule over it,
``leave_one_out`` takes a training point's own label out of it,
``predictive`` puts them behind one object, ``decisions`` turns the results into zones, decisions
and scores, and ``joint`` draws the labels of many new points together.
"""

from bayesknn.predictive.decisions import decide, find_zones, log_score, name_actions, name_zones
from bayesknn.predictive.joint import draw_jointly, find_counts
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.predictive import Predictive

__all__ = [
    "PosteriorNodes",
    "Predictive",
    "decide",
    "draw_jointly",
    "find_counts",
    "find_zones",
    "log_score",
    "name_actions",
    "name_zones",
]
