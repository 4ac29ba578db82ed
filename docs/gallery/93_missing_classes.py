"""
Missing classes, and labels in sequence
=======================================

Section 2.3 of the paper considers one joint model of labelled and unclassified points, and calls it
"mostly unachievable". Here it takes a few seconds. This example shows that joint prediction is less
accurate than separate prediction, which is why the classifiers of this package do not use it.
"""

# %%
# Two normalising constants
# -------------------------
# The likelihood of the known labels y_L is a sum over all 2^200 vectors of the classes of 200
# unclassified points. This sum is a second normalising constant: log f(y_L | beta, k) =
# log Z_L - log Z, where Z_L is the sum over all label vectors that agree with y_L. The derivative
# of log Z_L with respect to beta is the mean of S_k / k over draws of labels with y_L fixed; that
# of log Z is the mean over draws with no label fixed. Swendsen-Wang chains estimate both.
#
# In this example 50 of Ripley's points keep their labels.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from bayesknn.paper.missing_classes import fit_missing_classes, score_sequence
from bayesknn.predictive import log_score

ripley = load_ripley()
X, y = ripley.X_train, ripley.y_train
order = np.random.default_rng(0).permutation(len(y))
known, missing = np.sort(order[:50]), np.sort(order[50:])
fixed = np.full(len(y), -1)
fixed[known] = y[known]

model = BoltzmannModel(NeighborGraph.from_points(X, 100), n_classes=2, fixed=fixed)
ks = np.array([1, 2, 4, 7, 12, 20, 35, 60, 100])
betas = np.linspace(0, 4, 41)
fit = fit_missing_classes(model, ks, betas, random_state=0)
of_k = fit.weights.mean(axis=0).sum(axis=1).round(2)
print("P(k):", dict(zip(ks.tolist(), of_k.tolist(), strict=True)))
print("E[beta]:", (fit.weights.sum(axis=1) @ betas).round(2), "in two independent estimates")

# %%
# Separate and joint prediction
# -----------------------------
# The classifier is fitted to the 50 labelled points and predicts each of the others separately.

clf = BayesianKNeighborsClassifier(beta_max=4.0, random_state=0).fit(X[known], y[known])
for name, p in (
    ("separate", clf.predict_proba(X[missing])),
    ("joint", fit.probabilities.mean(axis=0)),
):
    error = np.mean(p.argmax(axis=1) != y[missing])
    print(f"{name:10s} log-loss {-log_score(p, y[missing]):.3f}, error rate {error:.3f}")

# %%
# These numbers are for one random split. ``bayesknn paper --only num:missing-classes`` averages
# over several splits, and compares the estimates with exact values on small graphs.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(4.5, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
ax.plot(clf.predict_proba(X[missing])[:, 1], fit.probabilities.mean(axis=0)[:, 1], "o", alpha=0.6)
ax.set(xlabel="P(class 1), separate prediction", ylabel="P(class 1), joint prediction")

# %%
# Sequential prediction
# ---------------------
# The paper justifies separate prediction by a sequence in which "the true value of y[n+1] is
# revealed before y[n+2] is observed". In such a sequence each label is predicted from all rows
# before it. ``score_sequence`` recomputes the posterior of (beta, k) whenever the number of rows
# has grown by 10 %.

scores, evidence = score_sequence(X[order], y[order], 125, seed=0)
print(f"mean log probability of a label given the rows before it: {scores.mean():.3f}")
print(f"sum of the {len(scores)} log probabilities: {scores.sum():.1f}")
print(f"increase of the log evidence: {evidence.value:.1f} +- {evidence.error:.1f}")

# %%
# If the distribution of n labels were the marginal distribution of n + 1 labels, the last two
# numbers would be equal. They differ, because a new point becomes a neighbour of some of the other
# points and so changes the distribution of their labels. ``log_evidence_`` is therefore suited to
# compare models of the same rows, but is not the score of a sequence of predictions.
