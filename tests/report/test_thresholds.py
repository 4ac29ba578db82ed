"""ROC, precision and recall at each threshold, counted by hand."""

import re

import numpy as np
import pandas as pd
import pytest

from bayesknn.model_file.predictions import Predictions
from bayesknn.plots.style import COLOURS
from bayesknn.report.analysis import Analysis
from bayesknn.report.page import make_thresholds


def analysis_of(actual, probabilities, training=(0, 0, 1), third=False):
    """Return an analysis with these predictions of "yes", and perhaps a third class."""
    names = np.array(["no", "yes", "perhaps"][: 2 + third])

    def predict(actual, p):
        shares = np.column_stack([1 - p, p, 0 * p][: 2 + third])
        rows = pd.DataFrame(index=range(len(p)))
        return Predictions(names, shares, actual=np.asarray(actual), frame=rows)

    left_out = predict(training, np.full(len(training), 0.5))
    test = predict(actual, np.asarray(probabilities))
    return Analysis(None, left_out, test)


def test_a_small_table_by_hand():
    found = make_thresholds(analysis_of([0, 0, 0, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.9]))
    assert found["name"] == "yes"
    # Of the six pairs of a no and a yes, five are in order.
    assert found["area"][0] == pytest.approx(5 / 6)
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
    assert make_thresholds(analysis)["name"] == "no"
    assert make_thresholds(analysis)["is_rarer"]
    equal = analysis_of([0, 1, 1], [0.1, 0.2, 0.6], training=(1, 0))
    assert not make_thresholds(equal)["is_rarer"]


def area_drawn(svg):
    """Area below the line of the first colour, in the units of axes from -0.02 to 1.02."""
    paths = re.findall(r'<path d="([^"]+)"[^>]*style="([^"]*)"', svg)
    (line,) = [d for d, style in paths if f"stroke: {COLOURS[0].lower()}" in style.lower()]
    frame = re.findall(r'<path d="([^"]+)"', svg)[1]

    def points(path):
        return np.array(re.findall(r"[ML] ?([-\d.]+) ([-\d.]+)", path), dtype=float)

    low, high = points(frame).min(axis=0), points(frame).max(axis=0)
    x, y = (1.04 * (points(line) - low) / (high - low) - 0.02).T
    return abs(np.trapezoid(1 - y, x))


def test_curves_are_drawn_with_the_area_that_is_told():
    """Tied scores: in steps a ROC curve would lie below the diagonal here."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    found = make_thresholds(analysis_of(truth, np.where(truth, 0.6, 0.4)[rng.permutation(300)]))
    roc, precision_recall = found["figures"]
    assert area_drawn(roc) == pytest.approx(found["area"][0], abs=0.005)
    assert area_drawn(precision_recall) == pytest.approx(found["precision"], abs=0.005)


def test_nothing_above_the_largest_probability():
    found = make_thresholds(analysis_of([0, 1], [0.1, 0.2]))
    assert found["rows"][-1]["precision"] is None


@pytest.mark.parametrize("actual", [[0, 0], [1, 1]])
def test_one_class_among_the_rows_has_no_curve(actual):
    assert make_thresholds(analysis_of(actual, [0.1, 0.2])) is None


def test_three_classes_have_none():
    assert make_thresholds(analysis_of([0, 1], [0.1, 0.2], third=True)) is None
