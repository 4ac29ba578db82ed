"""
Classes sampled at the wrong rate
=================================

In a case-control study, cases are over-represented: here they are half of the sample, but one tenth
of the population. ``class_prior`` gives the classifier the frequencies in the population. It
multiplies the predicted odds of class g by the ratio p_g n / n_g of its frequencies in the
population and in the sample. The paper puts the same factors inside the model, where each edge
between two points of class g gets this weight (end of Section 2.2).
"""

# %%
# The new points come from the population, in which 10 % are cases. The training sample has equal
# numbers of cases and controls.

import numpy as np

rng = np.random.default_rng(1)


def draw(n, proportion):
    """Draw n points and their labels with a given proportion of cases."""
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
    """Print the predicted cases, error rate and log-loss on the new points."""
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
# The maps show the zones of the three fits. With ``class_prior``, the zone of the cases is smaller.

import matplotlib.pyplot as plt

from bayesknn.plots import ZoneMapDisplay

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", sharey=True)
for ax, (name, clf) in zip(axes, fits.items(), strict=True):
    ZoneMapDisplay.from_estimator(clf, X, y, resolution=80, ax=ax)
    ax.set_title(name)
    legend = ax.get_legend()
    legend.remove()
labels = [text.get_text() for text in legend.get_texts()]
figure.legend(legend.legend_handles, labels, loc="outside lower center", ncols=4, frameon=False)

# %%
# The offset applies Bayes' theorem. It is correct if cases have the same distribution in the sample
# and in the population, as they do here. Its probabilities have by far the lowest log-loss,
# although hardly any of them exceeds 0.5. The weights change the model: they move the border, but
# give probabilities that are too close to 0.5. The offset also shifts the bounds of the intervals,
# by the same amount on the logit scale as the probability.

low, high = fits["offset"].predict_interval(X_new)[:, 1].T
true_p = 1 / (1 + np.exp(1.3 * (1.3 - X_new.sum(axis=1)) + np.log(9)))
covered = np.mean((low <= true_p) & (true_p <= high))
print(f"intervals that cover the true probability of a case: {covered:.3f}")
