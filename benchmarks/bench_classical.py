"""Times of the classical rule: its leave-one-out curve and its prediction, against scikit-learn."""

import numpy as np
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.neighbors import KNeighborsClassifier

from bayesknn import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_ripley
from benchmarks.harness import Report, interleave

K_MAX = 125


def run(report: Report) -> None:
    measure_curve(report)
    measure_prediction(report)


def measure_curve(report: Report) -> None:
    report.section(f"Leave-one-out curve k = 1..{K_MAX} on Ripley, the graph included")
    ripley = load_ripley()
    X, y = ripley.X_train, ripley.y_train

    def fit():
        return ClassicalKNeighborsClassifier(max_neighbors=K_MAX).fit(X, y)

    # The grid search runs at 3 of the 125 values of k, because all would need 31,250 fits. This
    # favours scikit-learn.
    values = np.array([1, 63, 125])
    search = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": values}, cv=LeaveOneOut(), n_jobs=2, refit=False
    )
    best = interleave({"ours": fit}, repeats=20)
    best |= interleave({"ours, again": fit, "search": lambda: search.fit(X, y)}, repeats=1)
    ours = min(best["ours"], best["ours, again"])
    against = (
        f"GridSearchCV with LeaveOneOut and 2 jobs, at {len(values)} of the {K_MAX} values of k"
    )
    report.line("leave-one-out curve", 1e3 * ours, "ms")
    report.line("grid search", best["search"], "s")
    report.line("speed of the curve", best["search"] / ours, at_least=100, against=against)
    # The three values of k are odd, so that two classes cannot tie and both error rates are equal.
    errors = 1 - search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(errors, fit().loo_errors_[values - 1], atol=1e-12)


def measure_prediction(report: Report) -> None:
    report.section("Predicting 1000 points on Ripley, k = 17")
    ripley = load_ripley()
    ours = ClassicalKNeighborsClassifier(17).fit(ripley.X_train, ripley.y_train)
    chosen = ClassicalKNeighborsClassifier().fit(ripley.X_train, ripley.y_train)
    theirs = KNeighborsClassifier(17).fit(ripley.X_train, ripley.y_train)
    best = interleave(
        {
            "ours": lambda: ours.predict_proba(ripley.X_test),
            "chosen": lambda: chosen.predict_proba(ripley.X_test),
            "theirs": lambda: theirs.predict_proba(ripley.X_test),
        },
        repeats=20,
    )
    against = "scikit-learn's KNeighborsClassifier"
    report.line("predict_proba, n_neighbors=17", best["ours"] / best["theirs"], against=against)
    report.line("predict_proba, k chosen of 125", best["chosen"] / best["theirs"], against=against)
