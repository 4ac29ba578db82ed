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
# Nothing has to be chosen. k runs from 1 to the size of the smaller class; beta from 0 to where
# almost all neighbours would have the same label; and both are averaged over their posterior.

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
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
# A class is named where the 95 % interval of its true probability lies above those of the others;
# for two classes, above one half. The rest is the zone of uncertainty, the hatched one. The paper's
# zone, ``of="parameters"``, carries the uncertainty about beta and k and no other, and is far
# narrower: see :doc:`/intervals` for what it leaves out.

from bayesknn.plots import ZoneMapDisplay

ZoneMapDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, resolution=100)

# %%
# Points near the border are often wrong on either side of it, as their probabilities say.

zones = clf.predict_zone(ripley.X_test)
wrong = clf.predict(ripley.X_test) != ripley.y_test
is_uncertain = zones == "undecided"
print(f"test points in the zone of uncertainty: {is_uncertain.sum()} of {len(zones)}")
print(f"errors among them: {wrong[is_uncertain].mean():.2f}")
print(f"errors elsewhere: {wrong[~is_uncertain].mean():.3f}")

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
