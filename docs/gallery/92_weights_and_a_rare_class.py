"""
Weights of rows, and a rare class
=================================

In many surveys, rows represent different numbers of people, and the class of interest is rare. This
example passes weights of the rows, shows that the error rate is uninformative for a rare class, and
makes decisions by the costs of errors.
"""

# %%
# A survey
# --------
# About 8 % of the population are in class 1. The town (``x1 > 0``) was sampled four times as
# densely as the country, so that a row of the country has four times the weight. The dependence of
# the class on ``x2`` differs between town and country.

import numpy as np

rng = np.random.default_rng(0)


def draw(n, is_survey):
    """Draw n rows of the survey or of the population; return X, y and the weights."""
    town = rng.random(n) < (0.8 if is_survey else 0.5)
    X = rng.normal(size=(n, 2))
    X[:, 0] = np.where(town, 1, -1) * np.abs(X[:, 0])
    log_odds = np.where(town, -4.2 + 2.0 * X[:, 1], -3.6 - 2.0 * X[:, 1])
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return X, y, np.where(town, 1.0, 4.0)


X, y, weight = draw(600, is_survey=True)
X_new, y_new, _ = draw(4000, is_survey=False)
print(f"class 1: {y.sum()} of {len(y)} rows; weighted {np.average(y, weights=weight):.3f}")

# %%
# Weights
# -------
# All base models of the ensemble and its leave-one-out scores use ``sample_weight``. Only the
# ratios of the weights matter. Unequal weights give wider intervals, because they reduce the
# effective number of rows.

from sklearn.metrics import log_loss

from bayesknn import PooledNeighborsClassifier

fits = {
    "unweighted": PooledNeighborsClassifier(random_state=0).fit(X, y),
    "weighted": PooledNeighborsClassifier(random_state=0).fit(X, y, sample_weight=weight),
}
for name, clf in fits.items():
    p = clf.predict_proba(X_new)
    low, high = clf.predict_interval(X_new)[:, 1].T
    print(
        f"{name:11s} mean probability of class 1 {p[:, 1].mean():.3f} "
        f"(true frequency {y_new.mean():.3f}), log-loss {log_loss(y_new, p):.4f}, "
        f"mean width of an interval {np.mean(high - low):.3f}"
    )

# %%
# A rare class
# ------------
# The error rate is uninformative, because always predicting class 0 has nearly the same error rate.
# The recall is the proportion of the rows of class 1 that are predicted as class 1.

clf = fits["weighted"]
predicted = clf.predict(X_new)
print(f"error rate {np.mean(predicted != y_new):.3f}; of always class 0: {y_new.mean():.3f}")
print(f"recall of class 1: {np.mean(predicted[y_new == 1] == 1):.2f}")

# %%
# For a rare class, decisions should use probabilities and costs. If missing class 1 costs 15 times
# as much as a false alarm, the expected cost is smallest if class 1 is chosen whenever its
# probability is at least 1/16. ``predict_decision`` takes the costs, with a row for each decision
# and a column for each true class.

costs = np.array([[0, 15], [1, 0]])
decided, _ = clf.predict_decision(X_new, loss=costs)
for name, decision in (("most probable class", predicted), ("least expected cost", decided)):
    print(
        f"{name}: recall {np.mean(decision[y_new == 1] == 1):.2f}, false alarms "
        f"{np.mean(decision[y_new == 0] == 1):.2f}, cost a row "
        f"{costs[decision.astype(int), y_new].mean():.3f}"
    )

# %%
# The number of rows of class 1 in a batch can be estimated without decisions: ``predict_counts``
# returns the sum of the probabilities with an interval.

count, low, high = clf.predict_counts(X_new)[1]
print(f"rows of class 1: {count:.0f} (90 % interval {low:.0f} to {high:.0f}), true {y_new.sum()}")

# %%
# On the command line, ``--class-prior`` gives the true class frequencies, and ``--loss`` of
# ``bayesknn predict`` the costs. A class with a single row cannot be evaluated by a held-out score;
# ``--rare`` determines whether such classes are omitted, merged into one class, or an error.
