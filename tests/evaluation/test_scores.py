"""Scores against scikit-learn's."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from bayesknn.model_file.predictions import Predictions
from bayesknn.report.analysis import Analysis
from bayesknn.report.page import make_thresholds


def predict(probabilities, labels):
    """Return predictions of rows that have these classes."""
    names = np.arange(probabilities.shape[1])
    rows = pd.DataFrame(index=range(len(labels)))
    return Predictions(names, probabilities, actual=labels, frame=rows)


def score(probabilities, labels):
    return predict(probabilities, labels).scores


def random_case(seed, n=50, n_classes=3):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), n), rng.integers(0, n_classes, n)


@given(st.integers(0, 10**6))
def test_scores_agree_with_the_slow_way(seed):
    probabilities, labels = random_case(seed)
    found = score(probabilities, labels)
    pairs = list(zip(probabilities, labels, strict=True))
    assert found.log_loss == pytest.approx(log_loss(labels, probabilities, labels=[0, 1, 2]))
    slow = np.mean([sum((p[g] - (g == y)) ** 2 for g in range(3)) for p, y in pairs])
    assert found.brier == pytest.approx(slow)
    assert found.error == np.mean([np.argmax(p) != y for p, y in pairs])


def test_a_class_that_training_did_not_see_is_an_error():
    found = score(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([-1, 1]))
    assert found.error == 0.5
    assert found.log_loss == pytest.approx(-np.log(0.8))


def test_an_impossible_class_costs_infinitely_much():
    assert score(np.array([[1.0, 0.0]]), np.array([1])).log_loss == np.inf


def test_the_area_is_that_of_scikit_learn_and_its_error_that_of_resampling():
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3 == 0
    scores = np.round(rng.normal(size=300) + truth, 1)  # with ties
    p = (scores - scores.min()) / np.ptp(scores)
    told = make_thresholds(Analysis(None, predict(np.column_stack([1 - p, p]), truth.astype(int))))
    area, low, high = told["area"]
    error = (high - low) / (2 * 1.96)
    assert area == pytest.approx(roc_auc_score(truth, scores))
    draws = [
        roc_auc_score(truth[rows], scores[rows]) for rows in rng.integers(300, size=(400, 300))
    ]
    # The standard deviation of 400 draws is known to 4 %.
    assert error == pytest.approx(np.std(draws), rel=0.2)
