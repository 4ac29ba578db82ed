"""scikit-learn's own checks of the pooled classifier, at its defaults."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesknn import PooledNeighborsClassifier


@parametrize_with_checks([PooledNeighborsClassifier()])
def test_scikit_learn_checks(estimator, check, monkeypatch):
    # Without it the check of array-API input (of NumPy arrays, here) skips itself.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)
