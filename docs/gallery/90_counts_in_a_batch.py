"""
Estimating class counts in a batch
==================================

A field is to be mapped, a shipment to be sampled: the question is not which class this point has,
but how many of them all have it. Adding up probabilities treats the points as independent. They
are not: where the few labelled points nearby mislead, all new points there are wrong together.
``predict_counts`` takes that into account, and ``sample_labels`` draws the labels of the whole
batch at once.
"""

# %%
# Sixty labelled points of Ripley's data, and a batch of 190 others.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
X, y = ripley.X_train, ripley.y_train
rng = np.random.default_rng(0)


def split():
    """Divide the rows into labelled ones and a batch."""
    rows = rng.permutation(len(y))
    return rows[:60], rows[60:]


labelled, batch = split()
clf = BayesianKNeighborsClassifier(beta_max=4.0, random_state=0).fit(X[labelled], y[labelled])
mean, low, high = clf.predict_counts(X[batch], level=0.9, random_state=0)[1]
print(f"class 1: {mean:.1f} of {len(batch)}, 90 % interval {low:.0f} to {high:.0f}")
print(f"true count {y[batch].sum()}")

# %%
# Each row of ``sample_labels`` is one possible labelling of the batch. Two new points that are each
# other's nearest agree more often than their probabilities would have them if they were
# independent:

draws = clf.sample_labels(X[batch], n_draws=2000, random_state=0)
probabilities = draws.mean(axis=0)
unsure = np.argsort(np.abs(probabilities - 0.5))[0]
nearest = np.argsort(np.linalg.norm(X[batch] - X[batch][unsure], axis=1))[1]
pair = draws[:, [unsure, nearest]]
print(f"probabilities of class 1: {probabilities[unsure]:.2f} and {probabilities[nearest]:.2f}")
print(f"both of class 1: {pair.all(axis=1).mean():.2f}, ", end="")
print(f"if independent: {probabilities[unsure] * probabilities[nearest]:.2f}")

# %%
# Twelve such splits, each with its own 60 labels: an interval from the probabilities of single
# points, and the one of ``predict_counts``.

from scipy import stats


def count_alone(clf, X, level=0.9):
    """Return an interval of the count of independent points, by the normal distribution."""
    p = clf.predict_proba(X)[:, 1]
    half = stats.norm.ppf((1 + level) / 2) * np.sqrt((p * (1 - p)).sum())
    return p.sum() - half - 0.5, p.sum() + half + 0.5


results = []
for seed in range(12):
    labelled, batch = split()
    clf = BayesianKNeighborsClassifier(beta_max=4.0, random_state=seed)
    clf.fit(X[labelled], y[labelled])
    joint = clf.predict_counts(X[batch], random_state=seed)[1, 1:]
    results.append((y[batch].sum(), *count_alone(clf, X[batch]), *joint))
truth, low_alone, high_alone, low, high = np.array(results).T

# %%
import matplotlib.pyplot as plt

from bayesknn.plots.style import COLOURS, INK, tidy

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained")
ends = {"single points": (low_alone, high_alone), "predict_counts": (low, high)}
for ax, (name, (lower, upper)) in zip(axes, ends.items(), strict=True):
    holds = (lower <= truth) & (truth <= upper)
    for held, colour, line in (
        (holds, COLOURS[0], "covers the truth"),
        (~holds, COLOURS[5], "misses it"),
    ):
        at = np.flatnonzero(held)
        ends_of = (lower - truth)[at], (upper - truth)[at]
        ax.vlines(at + 1, *ends_of, colors=colour, lw=4, label=line)
    ax.axhline(0, color=INK, lw=1)
    ax.set_title(f"{name}: {holds.sum()} of 12 cover the truth", fontsize=10)
    ax.set_xlabel("split")
    tidy(ax)
axes[0].set_ylabel("interval of the count minus the true count")
axes[0].set_xticks([1, 4, 8, 12])
axes[0].legend(frameon=False, fontsize="small", loc="lower left")

# %%
# Twelve splits are few: ``tests/predictive/test_joint.py`` takes hundreds. With many labels and a
# small batch the two differ little.
#
# A batch with other class frequencies
# ------------------------------------
# By default ``predict_counts`` assumes that the batch has the class frequencies of the training
# points. If it has not, and ``class_prior`` cannot say which it has, ``prevalence="free"`` counts
# in joint draws, in which neighbouring new points inform each other. Here class 1 makes up half of
# the training points and a fifth of the batch.

shifted = np.append(np.flatnonzero(ripley.y_test == 0), np.flatnonzero(ripley.y_test == 1)[:125])
clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y)
for prevalence in ("training", "free"):
    found = clf.predict_counts(ripley.X_test[shifted], prevalence=prevalence, random_state=0)
    mean, low, high = found[1]
    print(f"{prevalence:9} {mean:5.0f}, 90 % interval {low:.0f} to {high:.0f}")
print(f"true     {125:6} of {len(shifted)}")

# %%
# Joint draws have limits of their own. Below one labelled point in five they depend more on the
# model than on the data, and at a large beta the batch may freeze: chains that start from
# different labels do not agree on the counts. A ``MixingWarning`` says so in both cases:

import warnings


def draw(n):
    """Draw points of three classes in ten dimensions."""
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 10)) + 1.5 * np.eye(3, 10)[y], y


clf = BayesianKNeighborsClassifier("pseudo", beta_max=4.0, random_state=0).fit(*draw(60))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf.predict_counts(draw(400)[0], prevalence="free", random_state=0)
print(caught[-1].message)
