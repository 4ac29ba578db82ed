"""
Classes sampled at the wrong rate
=================================

In a case-control study the cases are sought out: half of the sample is ill where one in ten of
the population is. ``class_prior`` tells the classifier the true frequencies, and every edge
between two points of class g then counts p_g n / n_g in place of 1 (the paper, end of
Section 2.2).
"""

# %%
# A population in which one in ten is a case, and a training sample that has as many of both.

import numpy as np

rng = np.random.default_rng(1)


def draw(n, share):
    """Draw points of the population, given the share of cases."""
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + 1.3 * y[:, None], y


X, y = draw(300, share=0.5)
X_new, y_new = draw(4000, share=0.1)

# %%
from sklearn.metrics import log_loss

from bayesknn import BayesianKNeighborsClassifier

fits = {
    "as sampled": BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y),
    "class_prior": BayesianKNeighborsClassifier(
        "pseudo", class_prior={0: 0.9, 1: 0.1}, random_state=0
    ).fit(X, y),
}


def describe(name, chances):
    """Say what the probabilities of the new points are worth."""
    called = chances[:, 1] > 0.5
    print(
        f"{name:12s} called cases {called.mean():.3f}, error {np.mean(called != y_new):.3f}, "
        f"log-loss {log_loss(y_new, chances):.3f}"
    )


print(f"cases among the new points: {y_new.mean():.3f}")
for name, clf in fits.items():
    describe(name, clf.predict_proba(X_new))

# %%
# The borders move towards the cases.

import matplotlib.pyplot as plt

from bayesknn.plots import ZoneMapDisplay

figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
for ax, (name, clf) in zip(axes, fits.items(), strict=True):
    ZoneMapDisplay.from_estimator(clf, X, y, resolution=80, ax=ax)
    ax.set_title(name)

# %%
# This is a change of the model, not Bayes' theorem. If the cases look alike in the sample and in
# the population, as they do here, the probabilities of the unweighted fit can be corrected
# afterwards instead: multiply the odds by the ratio of the true to the sampled odds.

sampled, true = np.bincount(y) / len(y), np.array([0.9, 0.1])
corrected = fits["as sampled"].predict_proba(X_new) * true / sampled
corrected /= corrected.sum(axis=1, keepdims=True)
describe("corrected", corrected)

# %%
# The corrected probabilities are the better ones here, by far, though hardly any of them is large
# enough to call a case. The weights bring the number of errors down and leave the probabilities
# pale. So use ``class_prior`` for the paper's model under unbalanced sampling, and the
# correction if you need probabilities; where there is a test sample of the population, measure.
