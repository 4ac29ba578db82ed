"""
Weights of rows, and a rare class
=================================

In a survey some households stand for many others, and the class that matters is rare. This example
gives the rows their weights, shows why the error rate says little about a rare class, and chooses
decisions by the cost of each error.
"""

# %%
# A survey
# --------
# Class 1 has some 8 % of the population. The town (``x1 > 0``) was sampled four times as densely
# as the country, where the rule is another one: a row of the country stands for four times as many
# people.

import numpy as np

rng = np.random.default_rng(0)


def draw(n, is_survey):
    """Draw points of the population or of the survey, their classes and the weights of the rows."""
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
# ``sample_weight`` counts in the votes, the regressions, the trees and the leave-one-out scores of
# the pool. Only the ratios of the weights matter. Unequal weights make the intervals wider, since
# the rows are then worth fewer rows of equal weight.

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
# The error rate says little: always predicting class 0 has nearly the same one. The recall is the
# proportion of the rows of class 1 that are predicted as such.

clf = fits["weighted"]
predicted = clf.predict(X_new)
print(f"error rate {np.mean(predicted != y_new):.3f}, of always 0: {y_new.mean():.3f}")
print(f"recall of class 1: {np.mean(predicted[y_new == 1] == 1):.2f}")

# %%
# A rare class needs probabilities and costs. If missing class 1 is 15 times as bad as a false
# alarm, the expected cost is least if class 1 is chosen from a probability of 1/16 on.
# ``predict_decision`` takes the costs, a row for each decision and a column for each true class.

costs = np.array([[0, 15], [1, 0]])
decided, _ = clf.predict_decision(X_new, loss=costs)
for name, decision in (("most probable class", predicted), ("least expected cost", decided)):
    print(
        f"{name}: recall {np.mean(decision[y_new == 1] == 1):.2f}, false alarms "
        f"{np.mean(decision[y_new == 0] == 1):.2f}, cost a row "
        f"{costs[decision.astype(int), y_new].mean():.3f}"
    )

# %%
# The number of rows of class 1 in a batch needs no decision at all: ``predict_counts`` adds the
# probabilities up, with an interval.

count, low, high = clf.predict_counts(X_new)[1]
print(f"rows of class 1: {count:.0f} (90 % interval {low:.0f} to {high:.0f}), true {y_new.sum()}")

# %%
# At the command line, ``--class-prior`` gives the true class frequencies, ``--loss`` of
# ``bayesknn predict`` the costs, and ``--rare`` decides about classes of a single row, which no
# held-out score can evaluate: they are omitted, merged into one class, or an error.
