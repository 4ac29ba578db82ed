"""Searches, ensembles, resampling, active learning and reports around the classifiers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)


@pytest.mark.client("scikit-learn")
def test_cross_validation_with_a_rare_class(clf, ripley):
    """``cross_val_score`` where a class has one row in a training fold."""
    X, y, _, _ = ripley
    y = y.copy()
    y[[0, 1]] = 2
    assert np.all(np.isfinite(cross_val_score(clf, X, y, cv=2)))


@pytest.mark.client("scikit-learn")
def test_one_hot_encoder(clf, ripley):
    """``OneHotEncoder`` in a pipeline hands on a sparse matrix."""
    X, y, _, _ = ripley
    words = np.where(X > 0.3, "high", "low")
    assert make_pipeline(OneHotEncoder(), clf).fit(words, y).score(words, y) > 0.5


@pytest.mark.client("scikit-learn")
def test_predict_log_proba(clf, ripley):
    """``predict_log_proba``, which soft voting and AdaBoost read."""
    X, y, new, _ = ripley
    with np.errstate(divide="ignore"):
        expected = np.log(clf.fit(X, y).predict_proba(new))
    assert_allclose(clf.predict_log_proba(new), expected)


@pytest.mark.client("scikit-learn")
def test_bagging(ripley):
    """``BaggingClassifier`` around the pool: rows that are not drawn have weight 0."""
    from sklearn.ensemble import BaggingClassifier

    X, y, new, _ = ripley
    pool = PooledNeighborsClassifier(members=("evidence",), random_state=0)
    bag = BaggingClassifier(pool, n_estimators=2, random_state=0).fit(X, y)
    assert_allclose(bag.predict_proba(new).sum(axis=1), 1)


@pytest.mark.client("skore")
def test_skore(clf, ripley):
    """``EstimatorReport.metrics``: scores and their table."""
    from skore import EstimatorReport

    X, y, new, true = ripley
    report = EstimatorReport(clf, X_train=X, y_train=y, X_test=new, y_test=true)
    assert report.metrics.accuracy() == np.mean(clf.fit(X, y).predict(new) == true)
    assert np.isfinite(report.metrics.log_loss())


@pytest.mark.client("cleanlab")
def test_cleanlab(clf, ripley):
    """``CleanLearning.find_label_issues`` finds a label that was changed."""
    from cleanlab.classification import CleanLearning

    X, y, _, _ = ripley
    y = y.copy()
    p = clf.fit(X, y).predict_proba(X)
    changed = int(np.argmax(p[:, 1] - 0.5 * (y == 0)))
    y[changed] = 0
    found = CleanLearning(clf, cv_n_folds=3, seed=0).find_label_issues(X, y)
    assert found["is_label_issue"][changed]


@pytest.mark.client("imbalanced-learn")
def test_imbalanced_learn(clf, ripley):
    """``SMOTE`` in a pipeline, and ``BalancedBaggingClassifier``."""
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline as make_sampling_pipeline

    X, y, new, _ = ripley
    X, y = X[10:], np.r_[y[10:-20], np.zeros(20, int)]
    pipeline = make_sampling_pipeline(SMOTE(random_state=0), clf).fit(X, y)
    bag = BalancedBaggingClassifier(clf, n_estimators=2, random_state=0).fit(X, y)
    for each in (pipeline, bag):
        assert_allclose(each.predict_proba(new).sum(axis=1), 1)


@pytest.mark.client("optuna")
def test_optuna(ripley):
    """A study over the parameters by cross-validated score."""
    import optuna

    def objective(trial):
        name = trial.suggest_categorical("likelihood", ["pseudo", "holmes-adams"])
        k_max = trial.suggest_int("max_neighbors", 3, 12)
        clf = BayesianKNeighborsClassifier(name, max_neighbors=k_max, beta_max=4.0, random_state=0)
        return cross_val_score(clf, X, y, cv=3, scoring="neg_log_loss").mean()

    X, y, _, _ = ripley
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=4)
    assert -1 < study.best_value < 0


@pytest.mark.client("optuna-integration")
def test_optuna_search(ripley):
    """``OptunaSearchCV`` over the number of neighbours of the classical rule."""
    from optuna.distributions import IntDistribution
    from optuna_integration import OptunaSearchCV

    X, y, new, _ = ripley
    space = {"n_neighbors": IntDistribution(1, 15)}
    search = OptunaSearchCV(ClassicalKNeighborsClassifier(3), space, n_trials=4, random_state=0)
    assert search.fit(X, y).predict(new).shape == (len(new),)


@pytest.mark.client("scikit-optimize")
def test_scikit_optimize(ripley):
    """``BayesSearchCV`` over the number of neighbours of the classical rule."""
    from skopt import BayesSearchCV

    X, y, new, _ = ripley
    search = BayesSearchCV(ClassicalKNeighborsClassifier(3), {"n_neighbors": (1, 15)}, n_iter=4,
                           cv=3, random_state=0)  # fmt: skip
    assert search.fit(X, y).predict(new).shape == (len(new),)


@pytest.mark.client("mlxtend")
def test_mlxtend(clf, ripley):
    """``SequentialFeatureSelector``, ``StackingCVClassifier`` and ``plot_decision_regions``."""
    from mlxtend.classifier import StackingCVClassifier
    from mlxtend.feature_selection import SequentialFeatureSelector
    from mlxtend.plotting import plot_decision_regions

    X, y, new, _ = ripley
    chosen = SequentialFeatureSelector(clf, k_features=1, cv=3).fit(X, y)
    assert chosen.k_feature_idx_ == (1,)
    stack = StackingCVClassifier([clf], LogisticRegression(), use_probas=True, cv=3, random_state=0)
    assert_allclose(stack.fit(X, y).predict_proba(new).sum(axis=1), 1)
    plot_decision_regions(X, y, clf.fit(X, y), ax=plt.figure().add_subplot())
    plt.close("all")


@pytest.mark.client("fairlearn")
def test_fairlearn(clf, ripley):
    """``ThresholdOptimizer`` of a fitted classifier, and ``MetricFrame`` by group."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer

    X, y, _, _ = ripley
    group = (X[:, 0] > 0).astype(int)
    fair = ThresholdOptimizer(estimator=clf.fit(X, y), prefit=True, predict_method="predict_proba")
    fair.fit(X, y, sensitive_features=group)
    predicted = fair.predict(X, sensitive_features=group, random_state=0)
    rates = MetricFrame(metrics=selection_rate, y_true=y, y_pred=predicted,
                        sensitive_features=group)  # fmt: skip
    # Selection rates of 84 rows are made nearly equal.
    assert rates.difference() < 0.2


@pytest.mark.client("fairlearn")
def test_fairlearn_reduction(ripley):
    """``ExponentiatedGradient`` fits the pool with weights, among them 0."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    X, y, _, _ = ripley
    pool = PooledNeighborsClassifier(members=("evidence",), random_state=0)
    fair = ExponentiatedGradient(pool, DemographicParity(), max_iter=2)
    fair.fit(X, y, sensitive_features=(X[:, 0] > 0).astype(int))
    assert set(fair.predict(X, random_state=0)) <= {0, 1}


@pytest.mark.client("scikit-lego")
def test_scikit_lego(clf, ripley):
    """``Thresholder`` moves the threshold of the classifier in a search."""
    from sklego.meta import Thresholder

    X, y, new, _ = ripley
    low, high = (Thresholder(clf, threshold=t).fit(X, y).predict(new) for t in (0.1, 0.9))
    assert np.all(low >= high)


@pytest.mark.client("scikit-activeml")
def test_scikit_activeml(clf, ripley):
    """``SklearnClassifier`` and ``UncertaintySampling`` ask for the least certain row."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling

    X, y, _, _ = ripley
    known = np.where(np.arange(len(y)) % 3 > 0, y.astype(float), np.nan)
    wrapped = SklearnClassifier(clf, classes=[0, 1])
    asked = UncertaintySampling(random_state=0).query(X, known, wrapped)
    assert np.isnan(known[asked[0]])


@pytest.mark.client("eli5")
def test_eli5(clf, ripley):
    """``PermutationImportance`` of a fitted classifier."""
    from eli5.sklearn import PermutationImportance

    X, y, _, _ = ripley
    found = PermutationImportance(clf.fit(X, y), random_state=0).fit(X, y)
    assert found.feature_importances_[1] > 0


@pytest.mark.client("pynndescent")
def test_pynndescent(ripley):
    """``PyNNDescentTransformer`` before ``metric="precomputed"``."""
    from pynndescent import PyNNDescentTransformer

    X, y, new, _ = ripley
    graph = PyNNDescentTransformer(n_neighbors=12, search_epsilon=0.5, random_state=0)
    clf = BayesianKNeighborsClassifier("pseudo", metric="precomputed", random_state=0)
    pipeline = make_pipeline(graph, clf).fit(X, y)
    assert pipeline[-1].k_values_.tolist() == list(range(1, 13))
    assert_allclose(pipeline.predict_proba(new).sum(axis=1), 1)


@pytest.mark.client("scikit-learn")
def test_neighbors_transformer(ripley):
    """``KNeighborsTransformer`` before the classical rule with ``metric="precomputed"``."""
    X, y, new, _ = ripley
    graph = KNeighborsTransformer(n_neighbors=12)
    pipeline = make_pipeline(graph, ClassicalKNeighborsClassifier(metric="precomputed")).fit(X, y)
    assert len(pipeline[-1].loo_errors_) == 12
    assert pipeline.predict(new).shape == (len(new),)
