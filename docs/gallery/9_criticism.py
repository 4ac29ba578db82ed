"""
Criticism of a fitted model
===========================

Four questions after a fit: are the labels like draws of the model, is another metric or another
choice of columns better supported, would another prior have changed the answer, and do the
intervals hold what they should on this table? Ripley's points and the glass fragments are asked all
four.
"""

# %%
from bayesknn import (
    BayesianKNeighborsClassifier,
    PooledNeighborsClassifier,
    check_intervals,
    compare_evidence,
    sensitivity,
)
from bayesknn.datasets import load_glass, load_ripley

ripley, glass = load_ripley(), load_glass()
settings = {"max_neighbors": 125, "beta_max": 4.0, "random_state": 0}
clf = BayesianKNeighborsClassifier(**settings).fit(ripley.X_train, ripley.y_train)

# %%
# Are the labels like draws of the model?
# ---------------------------------------
# ``sample_predictive`` draws (beta, k) from the posterior and then labels of all training points
# from the model, exactly. They stand in ``posterior_`` where ArviZ looks for them.

print(clf.sample_predictive(n_draws=500, random_state=0)["posterior_predictive"])

# %%
# Each panel is a statistic of the labels: its values in the draws, and the line is what was
# observed.

from bayesknn.plots import PredictiveCheckDisplay

PredictiveCheckDisplay.from_estimator(clf, random_state=0)

# %%
# Neighbours agree about as often as in the draws: that is what beta was fitted to. But hardly a
# draw has two classes of so nearly the same size, as Ripley's sample has by design, few have as few
# pieces, and in nearly all of them far neighbours agree more often. The model has no idea of how
# large the classes are or where they lie. It knows that neighbours agree, and at a beta that makes
# them agree so often, most of its labellings have one class that fills the plane and islands of the
# other.
#
# What does this mean for predictions? The prediction of a point asks only about the labels around
# it, so that a wrong idea of the whole picture does not spoil it by itself. It shows in beta: a
# larger one would suit the predictions better, but would make the whole picture still less like the
# data (:doc:`/methods`). So the leave-one-out score and the reliability diagram say how good the
# probabilities are, and this picture why the pseudo-likelihood, which never looks at the whole, is
# sharper here.

other = BayesianKNeighborsClassifier("pseudo", **settings).fit(ripley.X_train, ripley.y_train)
for name, fit in (("coherent", clf), ("pseudo", other)):
    print(
        f"{name:9s} E beta {fit.beta_mean_:.2f}, leave-one-out log score {fit.loo_log_score_:.3f}"
    )

# %%
# The glass fragments are of four classes and few. Their labels are like draws in most respects: the
# rarest class is smaller, and more scattered among the others, than a class of the model would be.

X, y = glass.X_train, glass.y_train
clf_glass = BayesianKNeighborsClassifier(**{**settings, "max_neighbors": 20}).fit(X, y)
PredictiveCheckDisplay.from_estimator(clf_glass, random_state=0)

# %%
# Which metric, which columns?
# ----------------------------
# The evidence is the probability of the labels under model and prior, so that fits to the same
# labels can be compared by it. They must share the prior's range: ``max_neighbors`` and
# ``beta_max`` are given, since by default they depend on the metric.

fits = {
    "both columns": clf,
    "mahalanobis": BayesianKNeighborsClassifier(metric="mahalanobis", **settings).fit(
        ripley.X_train, ripley.y_train
    ),
    "second column": BayesianKNeighborsClassifier(**settings).fit(
        ripley.X_train[:, 1:], ripley.y_train
    ),
}
compare_evidence(fits).round(3)

# %%
# The Bayes factor divides the evidence by that of the best row. On glass, the Mahalanobis metric
# costs a lot, and neighbours in the second column alone say less than the class frequencies.

settings_glass = {**settings, "max_neighbors": 20}
fits = {
    "all columns": clf_glass,
    "mahalanobis": BayesianKNeighborsClassifier(metric="mahalanobis", **settings_glass).fit(X, y),
    "second column": BayesianKNeighborsClassifier(**settings_glass).fit(X[:, 1:2], y),
}
compare_evidence(fits).round(3)

# %%
# Would another prior have changed the answer?
# --------------------------------------------
# The likelihood is on the grid of the fit, so that another prior is a matter of weights.

sensitivity(clf).round(3)

# %%
# A smaller range makes the prior denser where the posterior is, which changes the evidence by a
# known amount and nothing else: no posterior, no prediction. That is why evidence is compared
# within one range only. On glass, where k is small and the rows are few, a prior that prefers small
# k moves some probability by more than a tenth.

sensitivity(clf_glass).round(3)

# %%
# One prior of one's own, as a whole classifier:

from bayesknn.model import UniformPrior

fifteen = clf.reweight(UniformPrior(k_max=15, beta_max=4.0))
print(fifteen.k_probabilities_.argmax() + 1, round(fifteen.beta_mean_, 3))

# %%
# How often do intervals hold the true probability, at most?
# ----------------------------------------------------------
# Labels are drawn with the fitted probabilities as if these were true, the classifier is fitted
# again, and the intervals that contain the probability that was used are counted. What the fit
# misses is in no drawn label, so the proportion is an upper bound. How long it takes is said first.

for name, fit, table in (
    ("Ripley", clf, (ripley.X_train, ripley.y_train)),
    ("glass", clf_glass, (X, y)),
    ("glass, pool", PooledNeighborsClassifier(random_state=0).fit(X, y), (X, y)),
):
    result = check_intervals(fit, *table, random_state=0)
    print(f"{name:12s} {result}")
