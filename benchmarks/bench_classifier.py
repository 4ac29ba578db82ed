"""Times of the Bayesian classifier: fit against a grid search over k, and prediction."""

from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from benchmarks.harness import Report, interleave

K_MAX = 125


def run(report: Report) -> None:
    measure_fit(report)
    measure_prediction(report)


def measure_fit(report: Report) -> None:
    report.section("Fitting Ripley, defaults, on 2 cores")
    ripley = load_ripley()
    X, y = ripley.X_train, ripley.y_train
    search = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": range(1, K_MAX + 1)}, cv=10, n_jobs=2
    )
    functions = {}
    for likelihood in ("coherent", "pseudo", "holmes-adams"):
        clf = BayesianKNeighborsClassifier(likelihood, n_jobs=2, random_state=0)
        functions[likelihood] = lambda clf=clf: clf.fit(X, y)
    best = interleave(functions | {"search": lambda: search.fit(X, y)}, repeats=3)
    report.line("grid search", best["search"], "s")
    against = f"10-fold GridSearchCV over k = 1..{K_MAX}, 2 jobs"
    for likelihood in functions:
        report.line(f"{likelihood}, fit", best[likelihood], "s")
        ratio = best[likelihood] / best["search"]
        # A lower target for the coherent model was met once, but by code that was unreadable.
        at_most = 0.5 if likelihood == "coherent" else 0.1
        report.line(f"{likelihood}, time of the fit", ratio, at_most=at_most, against=against)


def measure_prediction(report: Report) -> None:
    report.section("Predicting 1000 points on Ripley, including the checks of the input")
    ripley = load_ripley()
    theirs = KNeighborsClassifier(K_MAX).fit(ripley.X_train, ripley.y_train)
    functions = {"theirs": lambda: theirs.predict_proba(ripley.X_test)}
    for likelihood in ("coherent", "pseudo"):
        clf = BayesianKNeighborsClassifier(likelihood, random_state=0)
        clf.fit(ripley.X_train, ripley.y_train)
        functions[likelihood] = lambda clf=clf: clf.predict_proba(ripley.X_test)
    best = interleave(functions, repeats=20)
    against = f"scikit-learn's KNeighborsClassifier(n_neighbors={K_MAX})"
    ratio = best["coherent"] / best["theirs"]
    report.line("predict_proba, the default", ratio, at_most=1.5, against=against)
    # The target is higher because this posterior extends to k = 96, and counts of forward and
    # reverse neighbours together need more of them than scikit-learn's rule.
    ratio = best["pseudo"] / best["theirs"]
    report.line("predict_proba, pseudo", ratio, at_most=3.0, against=against)
