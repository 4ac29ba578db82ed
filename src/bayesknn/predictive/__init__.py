"""Class probabilities of new points, averaged over the law of (beta, k), and how sure they are.

``nodes`` holds the law of (beta, k) in a small number of weighted points and ``quadrature``
condenses it further for averages. ``averages``, ``intervals`` and ``influence`` evaluate the
predictive rule over it, ``leave_one_out`` takes a training point's own label out of it,
``predictive`` puts them behind one object, and ``joint`` draws the labels of many new points
together.

What follows takes arrays, from whichever classifier: ``calibration`` pools probabilities with local
shares, ``true_probability`` makes intervals that cover the true ones, ``sureness`` holds both as
learned from leave-one-out, ``frequencies`` moves them to other class frequencies, and
``decisions`` turns them into zones, decisions and scores.
"""

from bayesknn.predictive.calibration import Calibration, DistanceScale
from bayesknn.predictive.decisions import decide, find_zones, log_score, name_actions, name_zones
from bayesknn.predictive.frequencies import shift_intervals, shift_probabilities
from bayesknn.predictive.joint import counts_of_draws, counts_of_probabilities, draw_jointly
from bayesknn.predictive.nodes import PosteriorNodes
from bayesknn.predictive.predictive import Predictive, check_level, join_descriptions
from bayesknn.predictive.rule import PredictiveRule
from bayesknn.predictive.sureness import (
    KINDS_OF_INTERVAL,
    Description,
    Summary,
    Sureness,
)

__all__ = [
    "KINDS_OF_INTERVAL",
    "Calibration",
    "Description",
    "DistanceScale",
    "PosteriorNodes",
    "Predictive",
    "PredictiveRule",
    "Summary",
    "Sureness",
    "check_level",
    "counts_of_draws",
    "counts_of_probabilities",
    "decide",
    "draw_jointly",
    "find_zones",
    "join_descriptions",
    "log_score",
    "name_actions",
    "name_zones",
    "shift_intervals",
    "shift_probabilities",
]
