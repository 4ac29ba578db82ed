"""scikit-learn's own checks of the pooled classifier."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesknn import PooledNeighborsClassifier

# Trees take most of the time of a small fit, and the checks fit some hundred times.
WITHOUT_TREES = ("robust", "discriminant")


@parametrize_with_checks([PooledNeighborsClassifier(WITHOUT_TREES, n_folds=2)])
def test_scikit_learn_checks(estimator, check, monkeypatch):
    # Without it the check of array-API input (of NumPy arrays, here) skips itself.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([PooledNeighborsClassifier()])
def test_scikit_learn_checks_of_the_default(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)
