"""Explanations of single predictions and of columns."""

import pytest
from numpy.testing import assert_allclose

from bayesknn import PooledNeighborsClassifier

NAMES = ["xs", "ys"]


@pytest.mark.client("shap")
def test_shap(clf, ripley):
    """Permutation and kernel explainers: contributions and base value add up to the probability."""
    import shap

    X, y, new, _ = ripley
    clf.fit(X, y)
    for explainer in (
        shap.Explainer(clf.predict_proba, X),
        shap.KernelExplainer(clf.predict_proba, shap.sample(X, 20, random_state=0)),
    ):
        found = explainer(new[:3])
        total = found.values.sum(axis=1) + found.base_values
        assert_allclose(total, clf.predict_proba(new[:3]), atol=1e-8)


@pytest.mark.client("lime")
def test_lime(clf, ripley):
    """``LimeTabularExplainer.explain_instance``: the local model has a weight for each column."""
    from lime.lime_tabular import LimeTabularExplainer

    X, y, new, _ = ripley
    explainer = LimeTabularExplainer(X, feature_names=NAMES, class_names=["0", "1"], random_state=0)
    found = explainer.explain_instance(new[0], clf.fit(X, y).predict_proba, num_samples=200)
    assert {column for column, _ in found.as_map()[1]} == {0, 1}
    assert_allclose(found.predict_proba, clf.predict_proba(new[:1])[0], atol=1e-8)


@pytest.mark.client("interpret-core")
def test_interpret(clf, ripley):
    """``PartialDependence`` explains every column globally."""
    from interpret.blackbox import PartialDependence

    X, y, _, _ = ripley
    found = PartialDependence(clf.fit(X, y), X, feature_names=NAMES).explain_global()
    assert len(found.data(0)["scores"]) > 2


@pytest.mark.client("PyALE")
def test_pyale(clf, ripley):
    """Accumulated local effects of a column."""
    import pandas as pd
    from PyALE import ale

    X, y, _, _ = ripley
    frame = pd.DataFrame(X, columns=NAMES)

    class Probability:
        """ALE reads ``predict``, which is to be a number."""

        def predict(self, X):
            return clf.predict_proba(X)[:, 1]

    clf.fit(frame, y)
    found = ale(frame, Probability(), ["ys"], grid_size=10, plot=False, include_CI=False)
    assert found["eff"].is_monotonic_increasing or found["eff"].iloc[-1] > found["eff"].iloc[0]


@pytest.mark.client("boruta")
def test_boruta(ripley):
    """``BorutaPy`` reads the pool's ``feature_importances_``."""
    from boruta import BorutaPy

    class Pool(PooledNeighborsClassifier):
        """Boruta sets the number of trees, whether there are trees or not."""

        def __init__(self, members=("relevance",), random_state=None, n_estimators=None):
            super().__init__(members, random_state=random_state)
            self.n_estimators = n_estimators

    X, y, _, _ = ripley
    selector = BorutaPy(Pool(), n_estimators=1, max_iter=4, random_state=0).fit(X, y)
    assert selector.ranking_.shape == (2,)
