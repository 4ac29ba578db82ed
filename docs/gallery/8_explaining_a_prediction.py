"""
Most influential training rows
==============================

A prediction from neighbours is a sum of contributions: a training row adds to the log odds of its
class if it is a forward neighbour of the new point, a reverse neighbour, or both.
``predict_influence`` returns the rows with the largest contributions, averaged over the posterior
of beta and k.
"""

# %%
# The forensic glass data have nine measurements of four kinds of glass. This example explains the
# prediction of the test row whose most probable class has the lowest probability.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_glass

glass = load_glass()
clf = BayesianKNeighborsClassifier(random_state=0).fit(glass.X_train, glass.y_train)
probabilities = clf.predict_proba(glass.X_test)
row = int(np.argmin(probabilities.max(axis=1)))
print(f"test row {row}, true class {glass.y_test[row]}:")
for name, p, (low, high) in zip(
    clf.classes_, probabilities[row], clf.predict_interval(glass.X_test[[row]])[0], strict=True
):
    print(f"  {name:8s} {p:.2f}   true probability between {low:.2f} and {high:.2f}")

# %%
# These are the rows with the largest contributions, and their classes. A row that contributes twice
# as much as others is both a forward and a reverse neighbour.

indices, influence = clf.predict_influence(glass.X_test[[row]], n_neighbors=12)
for index, value in zip(indices[0], influence[0], strict=True):
    if index >= 0:
        print(f"  row {index:3d} adds {value:.3f} to the log odds of {glass.y_train[index]}")

# %%
# The figure shows the contributions of all rows to this prediction, by class, and to the prediction
# of the test row with the highest probability. A class whose bar is much longer than the others has
# a high probability.

import matplotlib.pyplot as plt

from bayesknn.plots.style import COLOURS, tidy

clear = int(np.argmax(probabilities.max(axis=1)))
figure, axes = plt.subplots(2, 1, figsize=(7, 3.6), layout="constrained", sharex=True)
for ax, (title, at) in zip(
    axes, {"least certain": row, "most certain": clear}.items(), strict=True
):
    indices, influence = clf.predict_influence(glass.X_test[[at]], n_neighbors=len(glass.y_train))
    rows, values = indices[0][indices[0] >= 0], influence[0][indices[0] >= 0]
    ax.barh(clf.classes_, 0)
    for g, name in enumerate(clf.classes_):
        widths = values[glass.y_train[rows] == name]
        starts = np.cumsum(widths) - widths
        ax.barh(name, widths, left=starts, color=COLOURS[g], edgecolor="white", linewidth=0.8)
    ax.set_title(f"test row {at}, the {title}: true class {glass.y_test[at]}", fontsize="medium")
    ax.invert_yaxis()
    tidy(ax)
axes[1].set_xlabel("contribution to the log odds; each segment is a training row")
