"""
Criticism of a fitted model
===========================

This example answers four questions about a fitted model, for Ripley's data and the glass data: are
the labels like draws from the model; do the data support another metric or other columns; does the
answer depend on the prior; and what is the coverage of the intervals on this table?
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
# ``sample_predictive`` draws (beta, k) from the posterior, and then exact draws of the labels of
# all training points from the model. The result is stored in ``posterior_`` in the layout of ArviZ.

print(clf.sample_predictive(n_draws=500, random_state=0)["posterior_predictive"])

# %%
# Each panel shows the histogram of a statistic over the drawn labels, with a vertical line at its
# value for the observed labels.

from bayesknn.plots import PredictiveCheckDisplay

PredictiveCheckDisplay.from_estimator(clf, random_state=0)

# %%
# The agreement of near neighbours in the data is typical of the draws, because beta was fitted to
# it. But hardly any draw has classes of so nearly equal size, which Ripley's sample has by design.
# Few draws have as few connected pieces of one class, and in nearly all of them distant neighbours
# agree more often. The model contains no information about the sizes of the classes or their
# position. At a beta at which neighbours agree so often, most of its draws have one class that
# covers most of the plane, and islands of the other.
#
# The prediction of a point depends only on the labels around it, so that this misfit does not make
# predictions wrong. But it affects beta: a larger beta would give better predictions, but draws
# that are even less like the data (:doc:`/methods`). This explains why the pseudo-likelihood, which
# only uses local conditionals, has a larger beta and more extreme probabilities here. The quality
# of the probabilities is measured by the leave-one-out score and shown by the reliability diagram.

other = BayesianKNeighborsClassifier("pseudo", **settings).fit(ripley.X_train, ripley.y_train)
for name, fit in (("coherent", clf), ("pseudo", other)):
    print(
        f"{name:9s} E beta {fit.beta_mean_:.2f}, leave-one-out log score {fit.loo_log_score_:.3f}"
    )

# %%
# The glass data have four classes and few rows. Most statistics of their labels are typical of the
# draws. The rarest class is smaller, and more scattered among the others, than in the draws.

X, y = glass.X_train, glass.y_train
clf_glass = BayesianKNeighborsClassifier(**{**settings, "max_neighbors": 20}).fit(X, y)
PredictiveCheckDisplay.from_estimator(clf_glass, random_state=0)

# %%
# Which metric, which columns?
# ----------------------------
# The evidence is the probability of the labels under model and prior. Fits to the same labels can
# be compared by it, if their priors have the same range. So ``max_neighbors`` and ``beta_max`` are
# given explicitly, because their defaults depend on the metric.

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
# The Bayes factor is the ratio of the evidence to that of the best row. On the glass data, the
# Mahalanobis metric has a much lower evidence, and a model with the second column alone has less
# evidence than the class frequencies.

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
# The fit stores the likelihood on a grid, so that the posterior under another prior is computed by
# reweighting.

sensitivity(clf).round(3)

# %%
# If the range of a uniform prior shrinks but still contains nearly all of the posterior, the
# posterior and the predictions do not change, but the evidence increases by a constant. Therefore
# evidence can be compared only between priors with the same range. On the glass data, which have
# few rows, a prior that favours small k changes some predicted probability by more than 0.1.

sensitivity(clf_glass).round(3)

# %%
# ``reweight`` returns a classifier with the posterior under a given prior:

from bayesknn.model import UniformPrior

fifteen = clf.reweight(UniformPrior(k_max=15, beta_max=4.0))
print(fifteen.k_probabilities_.argmax() + 1, round(fifteen.beta_mean_, 3))

# %%
# An upper bound on the coverage of intervals
# -------------------------------------------
# ``check_intervals`` draws labels from the fitted probabilities, fits the classifier to them, and
# returns the proportion of intervals that contain these probabilities. The drawn labels contain no
# structure that the fit has missed, so that the coverage of the true probabilities is at most about
# this proportion. It first prints how long it will take.

for name, fit, table in (
    ("Ripley", clf, (ripley.X_train, ripley.y_train)),
    ("glass", clf_glass, (X, y)),
    ("glass, pool", PooledNeighborsClassifier(random_state=0).fit(X, y), (X, y)),
):
    result = check_intervals(fit, *table, random_state=0)
    print(f"{name:12s} {result}")
