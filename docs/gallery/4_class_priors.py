"""
Classes sampled at the wrong rate
=================================

In a case-control study the cases are sought out: half of the sample is ill where one in ten of
the population is. ``class_prior`` tells the classifier the true frequencies: the predicted odds of
class g are multiplied by its frequency in the population over that in the sample. The paper puts
the same factors inside the model instead, where every edge between two points of class g counts
p_g n / n_g (end of its Section 2.2).
"""

# %%
# A population in which one in ten is a case, and a training sample that has as many of both.

import numpy as np

rng = np.random.default_rng(1)


def draw(n, proportion):
    """Draw points of the population, given the proportion of cases."""
    y = (rng.random(n) < proportion).astype(int)
    return rng.normal(size=(n, 2)) + 1.3 * y[:, None], y


X, y = draw(300, proportion=0.5)
X_new, y_new = draw(4000, proportion=0.1)

# %%
from sklearn.metrics import log_loss

from bayesknn import BayesianKNeighborsClassifier

fits = {
    "as sampled": BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y),
    "offset": BayesianKNeighborsClassifier(
        "pseudo", class_prior={0: 0.9, 1: 0.1}, random_state=0
    ).fit(X, y),
    "weights": BayesianKNeighborsClassifier(
        "pseudo", class_prior={0: 0.9, 1: 0.1}, class_prior_as="weights", random_state=0
    ).fit(X, y),
}


def describe(name, probabilities):
    """Print the error and the log-loss on the new points."""
    predicted = probabilities[:, 1] > 0.5
    print(
        f"{name:12s} predicted cases {predicted.mean():.3f}, "
        f"error {np.mean(predicted != y_new):.3f}, "
        f"log-loss {log_loss(y_new, probabilities):.3f}"
    )


print(f"cases among the new points: {y_new.mean():.3f}")
for name, clf in fits.items():
    describe(name, clf.predict_proba(X_new))

# %%
# The borders move towards the cases.

import matplotlib.pyplot as plt

from bayesknn.plots import ZoneMapDisplay

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", sharey=True)
for ax, (name, clf) in zip(axes, fits.items(), strict=True):
    ZoneMapDisplay.from_estimator(clf, X, y, resolution=80, ax=ax)
    ax.set_title(name)
    legend = ax.get_legend()
    legend.remove()
words = [text.get_text() for text in legend.get_texts()]
figure.legend(legend.legend_handles, words, loc="outside lower center", ncols=4, frameon=False)

# %%
# The offset is Bayes' theorem, right where the cases look alike in the sample and in the
# population, as they do here: its probabilities are the better ones by far, though hardly any of
# them is above one half. The weights are a change of the model: they move the border,
# and make the probabilities too close to 0.5. Intervals move with the offset, each end by the same
# logit as the probability inside.

low, high = fits["offset"].predict_interval(X_new)[:, 1].T
truth = 1 / (1 + np.exp(1.3 * (1.3 - X_new.sum(axis=1)) + np.log(9)))
covered = np.mean((low <= truth) & (truth <= high))
print(f"intervals that cover the true probability of a case: {covered:.3f}")
