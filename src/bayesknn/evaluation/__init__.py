"""How good class probabilities are, by what else they could be replaced, and what they rest on.

Arrays go in (probabilities, class indices, weights, groups, times) and plain results come out:
``scores`` with weights and errors, ``predicted`` rows set against their classes, ``folds`` of rows,
groups or time, ``comparison`` with other classifiers, ``explanation`` by rows and columns. What is
evaluated under another ``class_prior`` has the weights of :func:`weigh_rows`.
"""

from bayesknn.evaluation.comparison import (
    BASELINE,
    MIN_CLASS,
    Compared,
    Comparison,
    compare,
    list_candidates,
    name_classifier,
)
from bayesknn.evaluation.explanation import (
    MAX_IMPORTANCE_COLUMNS,
    Effect,
    count_affordable,
    find_effect,
    find_influential,
    rank_columns,
)
from bayesknn.evaluation.folds import Folds, draw_rows
from bayesknn.evaluation.predicted import NO_CLASS, Predicted
from bayesknn.evaluation.scores import (
    Scores,
    average,
    bound_proportion,
    measure_area,
    score,
    score_rows,
    weigh_rows,
)

__all__ = [
    "BASELINE",
    "MAX_IMPORTANCE_COLUMNS",
    "MIN_CLASS",
    "NO_CLASS",
    "Compared",
    "Comparison",
    "Effect",
    "Folds",
    "Predicted",
    "Scores",
    "average",
    "bound_proportion",
    "compare",
    "count_affordable",
    "draw_rows",
    "find_effect",
    "find_influential",
    "list_candidates",
    "measure_area",
    "name_classifier",
    "rank_columns",
    "score",
    "score_rows",
    "weigh_rows",
]
