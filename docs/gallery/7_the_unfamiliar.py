"""
Points unlike any in training
=============================

Every point has k nearest neighbours, however far away they are, and a classifier that uses nothing
else predicts near and far points alike. ``predict_typicality`` says how usual a point's distance to
its neighbours is, ``predict_zone`` can call points unfamiliar, and the interval of the true
probability is [0, 1] where nothing is known.
"""

# %%
# Ripley's training points, and a ring of new ones that leads away from them.

import numpy as np

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
clf = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(ripley.X_train, ripley.y_train)
centre = ripley.X_train.mean(axis=0)
radii = np.array([0.2, 0.6, 1.0, 1.4, 3.0])
new = centre + radii[:, None] * np.array([0.8, 0.6])

found = clf.predict_summary(new)
print("distance  P(class 1)    95% interval     typicality")
for radius, p, (low, high), typicality in zip(
    radii, found.probabilities[:, 1], found.intervals[:, 1], found.typicality, strict=True
):
    print(f"{radius:8.1f} {p:11.3f}    [{low:.3f}, {high:.3f}] {typicality:14.3f}")

# %%
# The probability hardly changes on the way out: the nearest neighbours stay the same. The
# typicality is the proportion of training points that lie at least as far from their neighbours as
# the new point does from its own, at the posterior mean of k. Where it is 0, the interval is
# [0, 1].
#
# The threshold is the proportion of ordinary points that are called unfamiliar: with
# ``unfamiliar=0.02``, about one in fifty. Here it rests on five training points, so that the
# proportion of test points may well be half or twice as large.

zones = clf.predict_zone(ripley.X_test, unfamiliar=0.02)
print(f"test points called unfamiliar: {np.mean(zones == 'unfamiliar'):.3f}")

# %%
# The map: decided for either class, uncertain, and the plane beyond the data.

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
# Numbers of zones have no order: cells, since level lines would draw class 1 between 0 and 2.
ax.pcolormesh(x, y, number, cmap=ListedColormap(shades), vmin=-0.5, vmax=3.5, alpha=0.4)
ax.contour(x, y, number == 3, levels=[0.5], colors=INK, linewidths=1, linestyles="--")
marks = []
for g in (0, 1):
    own = ripley.X_train[ripley.y_train == g]
    marks += ax.plot(*own.T, MARKERS[g], color=COLOURS[g], markersize=3, label=f"class {g}")
marks += ax.plot(*new.T, "x", color=INK, markersize=6, label="the new points above")
told = ("class 0", "class 1", "uncertain", "unfamiliar")
for shade, words in zip(shades, told, strict=True):
    edge = INK if words == "unfamiliar" else "none"
    marks.append(Patch(facecolor=shade, alpha=0.4, edgecolor=edge, linestyle="--", label=words))
ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="x1", ylabel="x2", aspect="equal")
ax.legend(handles=marks, frameon=False, fontsize="small", loc="upper left")
tidy(ax)
