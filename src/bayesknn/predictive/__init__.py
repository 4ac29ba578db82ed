"""Class probabilities of new points, averaged over the posterior, and how sure they are.

``nodes`` holds the posterior of (beta, k) in a small number of weighted points.
``averages`` averages the predictive rule over them, cuts credible intervals and takes a
training point's own label out again; ``predictive`` puts that behind one object, which also says
which training rows move it, and ``joint`` draws the labels of many new points together.

``decisions`` takes arrays, from whichever classifier, and turns them into zones, decisions and
scores.
"""

from bayesknn.predictive.averages import Summary
from bayesknn.predictive.decisions import decide, find_zones, log_score
from bayesknn.predictive.joint import draw_jointly
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.predictive import Predictive

__all__ = [
    "PosteriorNodes",
    "Predictive",
    "Summary",
    "decide",
    "draw_jointly",
    "find_zones",
    "log_score",
]
