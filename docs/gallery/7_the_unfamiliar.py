"""
Points unlike any in training
=============================

Every new point has k nearest neighbours, however distant they are. So the predicted probabilities
do not show whether a point is far from all training points. ``predict_typicality`` compares its
distance to its neighbours with those of the training points, ``predict_zone`` can label such points
"unfamiliar", and their interval for the true probability is [0, 1].
"""

# %%
# The new points lie on a line that leads away from the centre of Ripley's training points.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(ripley.X_train, ripley.y_train)
centre = ripley.X_train.mean(axis=0)
radii = np.array([0.2, 0.6, 1.0, 1.4, 3.0])
new = centre + radii[:, None] * np.array([0.8, 0.6])

summary = clf.predict_summary(new)
print("distance  P(class 1)    95% interval     typicality")
for radius, p, (low, high), typicality in zip(
    radii, summary.probabilities[:, 1], summary.intervals[:, 1], summary.typicality, strict=True
):
    print(f"{radius:8.1f} {p:11.3f}    [{low:.3f}, {high:.3f}] {typicality:14.3f}")

# %%
# The probability hardly changes with the distance, because the nearest neighbours stay the same.
# The typicality is the proportion of training points that are at least as far from their neighbours
# as the new point is from its neighbours, at the posterior mean of k. If it is 0, the interval is
# [0, 1].
#
# A point is labelled unfamiliar if its typicality is below the threshold ``unfamiliar``. Of new
# points from the same distribution as the training points, about this proportion is labelled
# unfamiliar. With 250 training points and a threshold of 0.02 this depends on only five of them, so
# that the actual proportion may be half or twice as large.

zones = clf.predict_zone(ripley.X_test, unfamiliar=0.02)
print(f"proportion of unfamiliar test points: {np.mean(zones == 'unfamiliar'):.3f}")

# %%
# The map shows the zones of the two classes, the zone of uncertainty, and the unfamiliar region.

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from bayesknn.plots.style import COLOURS, GREY, INK, MARKERS, tidy

x = np.linspace(-2.2, 2.6, 121)
y = np.linspace(-0.8, 2.6, 86)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
names = [0, 1, "undecided", "unfamiliar"]
zones = clf.predict_zone(grid, unfamiliar=0.02)
number = np.select([zones == name for name in names], range(4)).reshape(len(y), len(x))
shades = [COLOURS[0], COLOURS[1], GREY, "white"]

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
# pcolormesh fills cells. Filled contours would interpolate between the indices of zones, which have
# no order.
ax.pcolormesh(x, y, number, cmap=ListedColormap(shades), vmin=-0.5, vmax=3.5, alpha=0.4)
ax.contour(x, y, number == 3, levels=[0.5], colors=INK, linewidths=1, linestyles="--")
marks = []
for g in (0, 1):
    points = ripley.X_train[ripley.y_train == g]
    marks += ax.plot(*points.T, MARKERS[g], color=COLOURS[g], markersize=3, label=f"class {g}")
marks += ax.plot(*new.T, "x", color=INK, markersize=6, label="new points")
labels = ("class 0", "class 1", "uncertain", "unfamiliar")
for shade, label in zip(shades, labels, strict=True):
    edge = INK if label == "unfamiliar" else "none"
    marks.append(Patch(facecolor=shade, alpha=0.4, edgecolor=edge, linestyle="--", label=label))
ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="x1", ylabel="x2", aspect="equal")
ax.legend(handles=marks, frameon=False, fontsize="small", loc="upper left")
tidy(ax)
