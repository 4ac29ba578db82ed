"""Parameters that are changed after a fit take effect at the next fit, and not before."""

import numpy as np
import pytest

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
    check_intervals,
    compare_evidence,
)
from bayesknn.criticism import predictive_statistics
from bayesknn.evaluation.comparison import name_classifier
from bayesknn.model import UniformPrior
from bayesknn.model_file.adapters import adapt
from bayesknn.plots import ColumnPathDisplay

N = 24
Y = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 2)) + Y[:, None]
NEW = X[:5] + 0.1
# Another value of each parameter than that of the fit. A new parameter has to be added here.
OTHERS = {
    "likelihood": "holmes-adams", "inference": "metropolis", "label_sampler": "gibbs",
    "metric": "precomputed", "metric_params": {"p": 3}, "search": "kd_tree",
    "search_params": {"x": 3}, "max_neighbors": 2, "beta_max": 1.0, "prior": [1.0, 2.0],
    "class_prior": [0.1, 0.9], "class_prior_as": "weights", "calibrate": True, "n_chains": 1,
    "n_draws": 7, "n_warmup": 3, "n_jobs": 2, "random_state": 5, "verbose": 0, "n_neighbors": 1,
    "members": ("discriminant",), "categorical_features": [0], "n_folds": 2,
}  # fmt: skip


def answers(clf):
    """Return what the methods of a fitted classifier say, and what others say of it."""
    result = {"proba": clf.predict_proba(NEW), "contributions": clf.predict_contributions(NEW, X)}
    if not hasattr(clf, "diagnostics_"):
        return result | {"predicted": clf.predict(NEW)}
    result |= {
        "summary": clf.predict_summary(NEW),
        "zones": clf.predict_zone(NEW),
        "left out": clf.loo_interval(),
        "influence": clf.predict_influence(NEW, 3),
        "diagnostics": repr(clf.diagnostics_),
        "coverage": check_intervals(clf, X, Y, n_repeats=2, random_state=0, verbose=0),
    }
    if not isinstance(clf, BayesianKNeighborsClassifier):
        return result | {"counts": clf.predict_counts(NEW)}
    adapter, prior = adapt(clf), UniformPrior(3, clf.beta_max_)
    other = clf.reweight(prior)
    result |= {
        "counts": clf.predict_counts(NEW, random_state=0),
        "labels": clf.sample_labels(NEW, n_draws=20, random_state=0),
        "report": (name_classifier(clf), adapter.title, adapter.model, repr(adapter.summarise())),
        "reweighted": (other.predict_proba(NEW), other.loo_interval(), repr(other.diagnostics_)),
        "evidence": repr(compare_evidence({"one": clf})),
    }
    if clf.diagnostics_["likelihood"] == "coherent":
        drawn = clf.sample_predictive(10, random_state=0)["posterior_predictive"]["labels"]
        result |= {"drawn": drawn.values, "statistics": predictive_statistics(clf, 10, 0)}
    return result


KINDS = {
    "pseudo": BayesianKNeighborsClassifier(
        "pseudo", max_neighbors=4, beta_max=4.0, n_draws=50, random_state=0
    ),
    "coherent": BayesianKNeighborsClassifier(max_neighbors=3, n_draws=50, random_state=0),
    "classical": ClassicalKNeighborsClassifier(max_neighbors=4),
    "pool": PooledNeighborsClassifier(("evidence",), n_folds=3, random_state=0),
}


@pytest.mark.filterwarnings("ignore::bayesknn.MixingWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_methods_read_the_fit_and_not_the_parameters(kind):
    clf = KINDS[kind].fit(X, Y)
    before, params = answers(clf), clf.get_params()
    after = answers(clf.set_params(**{name: OTHERS[name] for name in params}))
    for name, value in before.items():
        np.testing.assert_equal(after[name], value, err_msg=name)


def test_a_picture_of_columns_names_the_score_of_the_fit():
    selector = ColumnSelector("loo", random_state=0).fit(X, Y)
    before = ColumnPathDisplay.from_estimator(selector).label
    selector.set_params(by="evidence")
    assert ColumnPathDisplay.from_estimator(selector).label == before
