"""
Estimating class counts in a batch
==================================

Some questions concern the number of points of a class in a batch, not the class of each point. The
sum of the probabilities estimates this number. An interval for it must not treat the points as
independent, because the predictions of nearby new points depend on the same few labelled points and
have correlated errors. ``predict_counts`` takes this into account, and ``sample_labels`` draws the
labels of the whole batch jointly.
"""

# %%
# Sixty points of Ripley's data are labelled; the other 190 are the batch.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
X, y = ripley.X_train, ripley.y_train
rng = np.random.default_rng(0)


def split():
    """Return the indices of 60 labelled rows and of the batch, at random."""
    rows = rng.permutation(len(y))
    return rows[:60], rows[60:]


labelled, batch = split()
clf = BayesianKNeighborsClassifier(beta_max=4.0, random_state=0).fit(X[labelled], y[labelled])
mean, low, high = clf.predict_counts(X[batch], level=0.9, random_state=0)[1]
print(f"class 1: {mean:.1f} of {len(batch)}, 90 % interval {low:.0f} to {high:.0f}")
print(f"true count {y[batch].sum()}")

# %%
# Each row of ``sample_labels`` is a joint draw of the labels of the batch. Two neighbouring new
# points have the same label more often than independent points with the same probabilities:

draws = clf.sample_labels(X[batch], n_draws=2000, random_state=0)
probabilities = draws.mean(axis=0)
unsure = np.argsort(np.abs(probabilities - 0.5))[0]
nearest = np.argsort(np.linalg.norm(X[batch] - X[batch][unsure], axis=1))[1]
pair = draws[:, [unsure, nearest]]
print(f"probabilities of class 1: {probabilities[unsure]:.2f} and {probabilities[nearest]:.2f}")
print(f"both of class 1: {pair.all(axis=1).mean():.2f}, ", end="")
print(f"if independent: {probabilities[unsure] * probabilities[nearest]:.2f}")

# %%
# Over twelve random splits, this compares the interval of ``predict_counts`` with one that treats
# the points as independent.

from scipy import stats


def count_alone(clf, X, level=0.9):
    """Return an interval for the count by the normal approximation for independent points."""
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
counts, low_alone, high_alone, low, high = np.array(results).T

# %%
import matplotlib.pyplot as plt

from bayesknn.plots.style import COLOURS, INK, tidy

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained")
ends = {"independent points": (low_alone, high_alone), "predict_counts": (low, high)}
for ax, (name, (lower, upper)) in zip(axes, ends.items(), strict=True):
    is_covered = (lower <= counts) & (counts <= upper)
    for chosen, colour, line in (
        (is_covered, COLOURS[0], "covers the true count"),
        (~is_covered, COLOURS[5], "misses the true count"),
    ):
        at = np.flatnonzero(chosen)
        bounds = (lower - counts)[at], (upper - counts)[at]
        ax.vlines(at + 1, *bounds, colors=colour, lw=4, label=line)
    ax.axhline(0, color=INK, lw=1)
    ax.set_title(f"{name}: {is_covered.sum()} of 12 cover the count", fontsize=10)
    ax.set_xlabel("split")
    tidy(ax)
axes[0].set_ylabel("interval of the count minus the true count")
axes[0].set_xticks([1, 4, 8, 12])
axes[0].legend(frameon=False, fontsize="small", loc="lower left")

# %%
# Twelve splits give only a rough estimate of the coverage; ``tests/predictive/test_joint.py`` uses
# hundreds. With many labelled points and a small batch the two intervals are similar.
#
# A batch with other class frequencies
# ------------------------------------
# By default ``predict_counts`` assumes that the batch has the class frequencies of the training
# points. If other frequencies are known, they can be given by ``class_prior``. If they are unknown,
# ``prevalence="free"`` counts labels in joint draws, in which neighbouring new points influence
# each other. In this batch one fifth of the points are in class 1, among the training points half.

shifted = np.append(np.flatnonzero(ripley.y_test == 0), np.flatnonzero(ripley.y_test == 1)[:125])
clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y)
for prevalence in ("training", "free"):
    estimates = clf.predict_counts(ripley.X_test[shifted], prevalence=prevalence, random_state=0)
    mean, low, high = estimates[1]
    print(f"{prevalence:9} {mean:5.0f}, 90 % interval {low:.0f} to {high:.0f}")
print(f"true     {125:6} of {len(shifted)}")

# %%
# Joint draws have two limits. If fewer than one point in five is labelled, they depend more on the
# model than on the data. And at large beta the sampler may not mix, so that chains started from
# different labels have different counts. In both cases there is a ``MixingWarning``:

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
