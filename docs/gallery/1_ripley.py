"""
Ripley's data, end to end
=========================

The running example of the paper has 250 training and 1,000 test points in the plane, in two
overlapping classes. This example fits the paper's classifier, shows the posterior of beta and k,
predicts probabilities, and finds the points whose most probable class is uncertain.
"""

# %%
# Fit
# ---
# ``as_published`` returns a ``BayesianKNeighborsClassifier`` with the settings of the paper. The
# prior of k is uniform from 1 to the size of the smaller class. The prior of beta is uniform from 0
# to the value beyond which almost all neighbours have the same label; ``beta_max=4`` gives the
# paper's value, found by trial and error. Predictions average over the posterior of both.

from bayesknn.datasets import load_ripley
from bayesknn.paper import as_published

ripley = load_ripley()
clf = as_published(ripley.y_train, random_state=0).fit(ripley.X_train, ripley.y_train)
print(f"beta: mean {clf.beta_mean_:.2f}, standard deviation {clf.beta_sd_:.2f}")
print(f"k: mean {clf.k_values_ @ clf.k_probabilities_:.1f}")
print(f"inference: {clf.diagnostics_['reason']}")

# %%
# The posterior of beta and k
# ---------------------------
# The error bars are Monte Carlo standard errors. The posterior on the grid depends on the
# normalising constant, which is estimated by simulation.

from bayesknn.plots import PosteriorDisplay

PosteriorDisplay.from_estimator(clf)

# %%
# Predict
# -------
# ``predict_proba`` averages the class probabilities over the posterior. Prediction uses no random
# numbers, so that repeated calls return identical values.

probabilities = clf.predict_proba(ripley.X_test)
print(f"error on the test points: {1 - clf.score(ripley.X_test, ripley.y_test):.3f}")
for x, p in zip(ripley.X_test[:3], probabilities[:3], strict=True):
    print(f"at ({x[0]:.2f}, {x[1]:.2f}): P(class 1) = {p[1]:.3f}")

# %%
# Decided and undecided points
# ----------------------------
# The paper assigns a point to a class if the 95 % credible interval of the probability of this
# class lies above the intervals of the other classes; for two classes, above 0.5. All other points
# are in the zone of uncertainty, which is hatched. This interval, ``of="parameters"``, covers only
# the uncertainty about beta and k.

import matplotlib.pyplot as plt

from bayesknn.plots import ZoneMapDisplay

figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
for ax, of, title in zip(
    axes, ("parameters", "probability"), ("the paper's zones", "the default"), strict=True
):
    ZoneMapDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, of=of, resolution=100, ax=ax)
    ax.set_title(title)

# %%
# The default interval is an interval for the true probability of the class. It is much wider;
# :doc:`/intervals` explains why.
#
# Points near the border are often misclassified, as their probabilities near 0.5 indicate.

wrong = clf.predict(ripley.X_test) != ripley.y_test
for of in ("parameters", "probability"):
    is_uncertain = clf.predict_zone(ripley.X_test, of=of) == "undecided"
    print(
        f"{of}: {is_uncertain.sum()} of {len(wrong)} test points in the zone of uncertainty, "
        f"error rate {wrong[is_uncertain].mean():.2f} among them, "
        f"{wrong[~is_uncertain].mean():.3f} elsewhere"
    )

# %%
# Decisions with unequal losses
# -----------------------------
# ``predict_decision`` takes a table of losses, with a row for each decision and a column for each
# true class. In this table, missing class 1 has five times the loss of a false alarm.

decisions, expected_loss = clf.predict_decision(ripley.X_test, loss=[[0, 5], [1, 0]])
print(
    f"points assigned to class 1: {(decisions == 1).sum()}, "
    f"with equal losses {(probabilities[:, 1] > 0.5).sum()}"
)
print(f"mean expected loss: {expected_loss.mean():.3f}")
