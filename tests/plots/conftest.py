"""Fixtures: axes, data, a fitted classifier, and the closing of all figures after each test."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def ripley():
    return load_ripley()


@pytest.fixture(scope="session")
def clf(ripley):
    """Return a classifier fitted with the pseudo-likelihood, which takes little time."""
    clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, n_draws=500, random_state=0)
    return clf.fit(ripley.X_train, ripley.y_train)
