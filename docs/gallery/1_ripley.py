"""
Ripley's data, end to end
=========================

The paper's running example: 250 training points in the plane, two classes that overlap, 1,000
test points. We fit, look at what was learnt about beta and k, predict, and ask where the data
decide which class is the most probable.
"""

# %%
# Fit
# ---
# ``as_published`` returns a ``BayesianKNeighborsClassifier`` with the settings of the paper. k runs
# from 1 to the size of the smaller class; beta from 0 to the value beyond which almost all
# neighbours have the same label (``beta_max=4`` gives the paper's value, found by trial and error);
# both are averaged over their posterior.

from bayesknn.datasets import load_ripley
from bayesknn.paper import as_published

ripley = load_ripley()
clf = as_published(ripley.y_train, random_state=0).fit(ripley.X_train, ripley.y_train)
print(f"beta: mean {clf.beta_mean_:.2f}, standard deviation {clf.beta_sd_:.2f}")
print(f"k: mean {clf.k_values_ @ clf.k_probabilities_:.1f}")
print(f"how: {clf.diagnostics_['reason']}")

# %%
# What the labels say about beta and k
# ------------------------------------
# The bars carry their Monte Carlo errors: the sum over the grid needs the normalising constant,
# and that was estimated by simulation.

from bayesknn.plots import PosteriorDisplay

PosteriorDisplay.from_estimator(clf)

# %%
# Predict
# -------
# ``predict_proba`` averages the class probabilities over the posterior. Nothing is drawn at this
# point: the same classifier gives the same bits again.

probabilities = clf.predict_proba(ripley.X_test)
print(f"error on the test points: {1 - clf.score(ripley.X_test, ripley.y_test):.3f}")
for x, p in zip(ripley.X_test[:3], probabilities[:3], strict=True):
    print(f"at ({x[0]:.2f}, {x[1]:.2f}): P(class 1) = {p[1]:.3f}")

# %%
# Decided and undecided points
# ----------------------------
# The paper names a class where the 95 % credible interval of its probability lies above those of
# the others; for two classes, above one half. The rest is the zone of uncertainty, the hatched one.
# The interval, ``of="parameters"``, carries the uncertainty about beta and k and no other.

import matplotlib.pyplot as plt

from bayesknn.plots import ZoneMapDisplay

figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
for ax, of, title in zip(
    axes, ("parameters", "probability"), ("the paper's zones", "the default"), strict=True
):
    ZoneMapDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, of=of, resolution=100, ax=ax)
    ax.set_title(title)

# %%
# The default interval is for the true probability of the class, and is far wider: :doc:`/intervals`
# explains what it adds.
#
# Points near the border are often wrong on either side of it, as their probabilities say.

wrong = clf.predict(ripley.X_test) != ripley.y_test
for of in ("parameters", "probability"):
    is_uncertain = clf.predict_zone(ripley.X_test, of=of) == "undecided"
    print(
        f"{of}: {is_uncertain.sum()} of {len(wrong)} test points in the zone of uncertainty, "
        f"error rate {wrong[is_uncertain].mean():.2f} among them, "
        f"{wrong[~is_uncertain].mean():.3f} elsewhere"
    )

# %%
# A wrong decision that costs more
# --------------------------------
# ``predict_decision`` takes a table of losses, one row for each decision and one column for each
# true class. Here, to miss class 1 is five times as bad as a false alarm.

decisions, expected_loss = clf.predict_decision(ripley.X_test, loss=[[0, 5], [1, 0]])
print(
    f"decided for class 1: {(decisions == 1).sum()}, "
    f"at equal losses {(probabilities[:, 1] > 0.5).sum()}"
)
print(f"expected loss: {expected_loss.mean():.3f} a point")
