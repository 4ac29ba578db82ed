"""scikit-learn's own checks: each class once and one route by chains; every route in test-full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
)

# The checks fit some hundred times on blobs: a few neighbours and short chains will do. That the
# posterior is right is shown elsewhere.
SHORT = {"max_neighbors": 3, "beta_max": 4.0, "n_chains": 2, "n_draws": 20, "n_warmup": 20}
ROUTES = [
    ("coherent", "grid"),
    ("coherent", "metropolis"),
    ("coherent", "auxiliary"),
    ("pseudo", "metropolis"),
    ("holmes-adams", "grid"),
    ("holmes-adams", "metropolis"),
]


def run_check(estimator, check, monkeypatch):
    # Without it the check of array-API input (of NumPy arrays, here) skips itself.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def name_expected_failures(estimator):
    """Name the checks that cannot pass, and why."""
    if isinstance(estimator, PooledNeighborsClassifier):
        # Weights of 0 and 1 alone pass: tests/pooled/test_rows.py.
        why = "two equal rows are neighbours and in two folds, a row of weight 2 is in one fold"
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in kinds}
    return {}


@parametrize_with_checks(
    [
        BayesianKNeighborsClassifier("pseudo", "grid", **SHORT),
        BayesianKNeighborsClassifier("coherent", "exchange", **SHORT),
        # One member of either kind: neighbours, and trees in the neighbours' place.
        PooledNeighborsClassifier(members=("evidence", "boosted")),
        ClassicalKNeighborsClassifier(),
        ColumnSelector("pseudo-evidence", max_columns=1),
    ],
    expected_failed_checks=name_expected_failures,
)
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.filterwarnings("ignore:no column says more")
def test_scikit_learn_checks(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


@pytest.mark.slow
@parametrize_with_checks(
    [BayesianKNeighborsClassifier(), PooledNeighborsClassifier()]
    + [BayesianKNeighborsClassifier(*route, **SHORT) for route in ROUTES]
    + [ClassicalKNeighborsClassifier(n_neighbors=k, max_neighbors=3) for k in (1, 4, "loo")],
    expected_failed_checks=name_expected_failures,
)
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
def test_scikit_learn_checks_of_every_route(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


@pytest.mark.parametrize("likelihood", ["pseudo", "holmes-adams"])
@pytest.mark.parametrize("inference", ["auxiliary", "exchange"])
def test_routes_around_a_constant_are_refused_where_there_is_none(likelihood, inference):
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    clf = BayesianKNeighborsClassifier(likelihood=likelihood, inference=inference)
    with pytest.raises(ValueError, match=f"inference='{inference}' is for likelihood='coherent'"):
        clf.fit(X, y)
