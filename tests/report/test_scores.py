"""Scores against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from bayesknn.report.scores import score


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
