"""
Most influential training rows
==============================

A prediction from neighbours can be taken apart: each training row adds to the log odds of its own
class, as a neighbour of the new point and by having the new point among its own neighbours.
``predict_influence`` returns the rows that add most, averaged over the posterior of beta and k.
"""

# %%
# Forensic glass: nine measurements, four kinds of glass. We take the test row that is least
# certain.

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
# The most influential rows, and their classes. A row that counts twice as much as the others is a
# neighbour both ways.

indices, influence = clf.predict_influence(glass.X_test[[row]], n_neighbors=12)
for index, value in zip(indices[0], influence[0], strict=True):
    if index >= 0:
        print(f"  row {index:3d} adds {value:.3f} to the log odds of {glass.y_train[index]}")

# %%
# All influential rows at this point, by class, and the same at a row that is clear. Where the
# bar of one class is much longer than the others, that class has a high probability.

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
        own = values[glass.y_train[rows] == name]
        starts = np.cumsum(own) - own
        ax.barh(name, own, left=starts, color=COLOURS[g], edgecolor="white", linewidth=0.8)
    ax.set_title(f"test row {at}, the {title}: true class {glass.y_test[at]}", fontsize="medium")
    ax.invert_yaxis()
    tidy(ax)
axes[1].set_xlabel("added to the log odds; each segment is a training row")
