"""
Missing classes, and labels in sequence
=======================================

Section 2.3 of the paper would put labelled and unclassified points into one joint model, and calls
this "mostly unachievable". It takes a few seconds here. It does not pay: this page says by how
much, and why no classifier of this package does it.
"""

# %%
# Two normalising constants
# -------------------------
# There are 2^200 vectors of the classes of 200 unclassified points. Their sum is a normalising
# constant like the model's own: log f(y_L | beta, k) = log Z_L - log Z, where Z_L sums over the
# labels that agree with the known ones. The derivative of either in beta is the mean of S_k / k
# over draws of labels, with the known ones held fixed or with none; Swendsen-Wang draws both.
#
# Fifty of Ripley's points keep their labels.

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
print("E[beta]:", (fit.weights.sum(axis=1) @ betas).round(2), "by two pairs of chains")

# %%
# One by one, or jointly
# ----------------------
# The usual classifier looks at the 50 labelled points alone and predicts each of the others as if
# it were the only one.

clf = BayesianKNeighborsClassifier(beta_max=4.0, random_state=0).fit(X[known], y[known])
for name, p in (
    ("one by one", clf.predict_proba(X[missing])),
    ("jointly", fit.probabilities.mean(axis=0)),
):
    error = np.mean(p.argmax(axis=1) != y[missing])
    print(f"{name:10s} log-loss {-log_score(p, y[missing]):.3f}, error rate {error:.3f}")

# %%
# This is one split. The paper's page (``bayesknn paper --only num:missing-classes``) averages over
# several, and compares the estimates with exact values on small graphs.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(4.5, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
ax.plot(clf.predict_proba(X[missing])[:, 1], fit.probabilities.mean(axis=0)[:, 1], "o", alpha=0.6)
ax.set(xlabel="P(class 1), one by one", ylabel="P(class 1), jointly")

# %%
# Labels revealed one after another
# ---------------------------------
# The paper justifies prediction one by one by a sequence in which "the true value of y[n+1] is
# revealed before y[n+2] is observed". Then each row can be scored by what was known before it. The
# posterior of (beta, k) is computed again whenever there are a tenth more rows.

scores, rise = score_sequence(X[order], y[order], 125, seed=0)
print(f"mean log score of the next label: {scores.mean():.3f}")
print(f"sum of the {len(scores)} scores: {scores.sum():.1f}")
print(f"rise of the log evidence over these rows: {rise.value:.1f} +- {rise.error:.1f}")

# %%
# For exchangeable data the two numbers would be equal. Here they are not: the model of n labels is
# not a margin of the model of n + 1, as a new point takes places among the nearest neighbours of
# the old ones and so changes the distribution of their labels. ``log_evidence_`` compares models of
# the same rows; it is not the score of a sequence.
