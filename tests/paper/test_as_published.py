"""Tests of the classifier with the settings of the paper."""

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_pima
from bayesknn.paper import as_published
from bayesknn.paper.setting import BETA_MAX, Study


def test_its_settings_are_those_of_the_paper():
    y = ["a"] * 3 + ["b"] * 7 + ["c"] * 5
    clf = as_published(y, beta_max=2.0, class_prior={"a": 0.2, "b": 0.2, "c": 0.6})
    assert isinstance(clf, BayesianKNeighborsClassifier)
    # K is the size of the smallest class; the weights a_g = p_g n / n_g are in the model.
    assert clf.max_neighbors == 3 and clf.class_prior_as == "weights" and clf.beta_max == 2.0
    X = np.random.default_rng(0).normal(size=(15, 2))
    assert clf.fit(X, y).class_weight_ == pytest.approx([1.0, 3 / 7, 9 / 5])
    assert as_published(y, max_neighbors=2).max_neighbors == 2


def test_the_papers_page_uses_them():
    """The prior and the largest k of a Study are those of the classifier."""
    data = load_pima()
    study = Study(data)
    clf = as_published(data.y_train, likelihood="pseudo", beta_max=BETA_MAX, random_state=0)
    clf.fit(data.X_train, data.y_train)
    assert clf.max_neighbors == study.k_max == 68
    assert clf.prior_ == study.prior
