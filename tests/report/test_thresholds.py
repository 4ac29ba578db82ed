"""ROC, precision and recall at each threshold, counted by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayesknn.report.analysis import Analysis, Evaluated
from bayesknn.report.per_class import make_thresholds

CLASSES = [{"name": "no"}, {"name": "yes"}]


def analysis_of(actual, probabilities, training=(0, 0, 1)):
    p = np.asarray(probabilities)
    rows = Evaluated(None, np.column_stack([1 - p, p]), np.asarray(actual), True, "the test rows")
    found = SimpleNamespace(training=SimpleNamespace(actual=np.array(training), rows=training))
    found.rarer_class, found.evaluated = Analysis.rarer_class.fget(found), lambda: rows
    return found


def test_a_small_table_by_hand():
    found = make_thresholds(analysis_of([0, 0, 0, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.9]), CLASSES)
    assert found["name"] == "yes"
    # Of the six pairs of a no and a yes, five are in order.
    assert found["area"] == pytest.approx(5 / 6)
    by_threshold = {row["threshold"]: row for row in found["rows"]}
    assert by_threshold[0.4] == {
        "threshold": 0.4,
        "called": 3,
        "recall": 1.0,
        "precision": pytest.approx(2 / 3),
        "false": pytest.approx(1 / 3),
        "error": pytest.approx(1 / 5),
    }
    assert by_threshold[0.9]["called"] == 1


def test_the_rarer_class_of_the_training_rows_is_looked_for():
    analysis = analysis_of([0, 1, 1], [0.1, 0.2, 0.6], training=(1, 1, 0))
    assert make_thresholds(analysis, CLASSES)["name"] == "no"
    assert make_thresholds(analysis, CLASSES)["is_rarer"]
    equal = analysis_of([0, 1, 1], [0.1, 0.2, 0.6], training=(1, 0))
    assert not make_thresholds(equal, CLASSES)["is_rarer"]


def test_nothing_above_the_largest_probability():
    found = make_thresholds(analysis_of([0, 1], [0.1, 0.2]), CLASSES)
    assert found["rows"][-1]["precision"] is None


@pytest.mark.parametrize("actual", [[0, 0], [1, 1]])
def test_one_class_among_the_rows_has_no_curve(actual):
    assert make_thresholds(analysis_of(actual, [0.1, 0.2]), CLASSES) is None


def test_three_classes_have_none():
    assert make_thresholds(analysis_of([0, 1], [0.1, 0.2]), [*CLASSES, {"name": "c"}]) is None
