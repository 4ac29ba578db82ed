"""
Guarantees by MAPIE: sets, p0 and p1, abstention
================================================

``predict_interval`` estimates how uncertain a probability is. It promises nothing for
distributions on which it was not measured. `MAPIE <https://mapie.readthedocs.io>`_ makes three
promises around any classifier that hold for every distribution, if the rows are exchangeable. They
need labelled rows that the fit has not seen. Install MAPIE with ``pip install 'mapie>=1.6'``.
"""

# %%
import numpy as np
from mapie.calibration import VennAbersCalibrator
from mapie.classification import SplitConformalClassifier
from mapie.risk_control import BinaryRisk, MultiClassificationLTTController
from sklearn.model_selection import train_test_split

from bayesknn import PooledNeighborsClassifier
from bayesknn.datasets import load_ripley

ripley = load_ripley()
clf = PooledNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
X_held, X_new, y_held, y_new = train_test_split(
    ripley.X_test, ripley.y_test, test_size=0.5, stratify=ripley.y_test, random_state=0
)
level = 0.95

# %%
# Prediction sets with coverage
# -----------------------------
# A set of classes for each row. Over new rows, at least 95 % of the sets hold the true class. That
# is an average: sets may hold the class more often where rows are easy, and less often near a
# boundary.

sets = SplitConformalClassifier(clf, confidence_level=level, prefit=True)
members = sets.conformalize(X_held, y_held).predict_set(X_new)[1][:, :, 0]
covered = members[np.arange(len(y_new)), y_new]
error = np.sqrt(level * (1 - level) * (1 / len(y_held) + 1 / len(y_new)))
print(f"sets that hold the true class: {covered.mean():.3f}, promised {level} ({error:.3f})")
print(f"sets of 0, 1, 2 classes: {np.bincount(members.sum(axis=1), minlength=3)}")

# %%
# In brackets is the standard error of the observed coverage, given the numbers of held-out and new
# rows.
#
# **What the interval does not say.** ``predict_interval`` is about the probability at x, and never
# about the label there: where the probability is 0.5, an interval that is exact has no width, and a
# set at 95 % holds both classes. ``predict_zone`` returns one class where the intervals separate it
# from all others. This is not a prediction set: "decided" means that the class is the most probable
# one, and it is wrong as often as its probability says.

zones = clf.predict_zone(X_new, level)
decided = zones != "undecided"
wrong = zones[decided].astype(y_new.dtype) != y_new[decided]
print(f"decided: {decided.mean():.2f} of the rows, of which {wrong.mean():.3f} are wrong")

# %%
# Venn-Abers: p0 and p1
# ---------------------
# Two probabilities of class 1 for each row. One of them is exactly calibrated: p0 if the row's
# class is 0, p1 if it is 1. With many held-out rows they are near each other.

with np.errstate(invalid="ignore"):  # MAPIE divides 0 by 0 at its first corner
    venn = VennAbersCalibrator(clf, cv="prefit").fit(X_held, y_held)
p, ends = venn.predict_proba(X_new, p0_p1_output=True)
p0, p1 = np.asarray(ends).reshape(-1, 2).T
low, high = clf.predict_interval(X_new, level)[:, 1].T
print(f"mean width: {np.mean(p1 - p0):.3f} of p0 to p1, {np.mean(high - low):.3f} of the interval")
print(f"class 1: {y_new.mean():.3f} of the rows, {p0.mean():.3f} to {p1.mean():.3f} promised")

# %%
# **What the interval does not say.** p0 and p1 are calibrated: among all rows with the same pair,
# the proportion of class 1 lies between them, whatever the classifier does. They say nothing about
# the rows near one x, which is what the interval is about, and they have no level. The interval is
# wide where rows are few; p0 and p1 are wide where held-out rows of similar *probability* are few.

# %%
# Abstention with a promised error
# --------------------------------
# A class only where its probability reaches a threshold. With a confidence of 90 % over the draw of
# the held-out rows, the threshold is such that at most 5 % of the rows that are classified are
# wrong.

selective_error = BinaryRisk(
    risk_occurrence=lambda actual, predicted: predicted != actual,
    risk_condition=lambda _, predicted: predicted == predicted,  # NaN where it abstains
    higher_is_better=False,
)
controller = MultiClassificationLTTController(
    clf.predict_proba,
    risks=[selective_error],
    target_level=[1 - level],
    classes=clf.classes_,
    list_predict_params=np.linspace(0.5, 0.95, 10),  # each one more costs power
)
controller.calibrate(X_held, y_held)
# The promise holds for all valid thresholds at once. The lowest one answers most often.
threshold = controller.valid_predict_params.min()
answered = clf.predict_proba(X_new).max(axis=1) >= threshold
wrong = clf.predict(X_new)[answered] != y_new[answered]
print(f"threshold {threshold:.2f}: {answered.mean():.2f} of the rows are classified")
print(f"of these wrong: {wrong.mean():.3f}, promised at most {1 - level:.2f}")

# %%
# **What the interval does not say.** An interval at 95 % does not bound the error of the rows that
# it decides; their mean expected loss estimates it, without a promise. Where no threshold keeps the
# promise, none is valid, and MAPIE warns.
#
# All three promises fail where new rows are not like the held-out ones: other class frequencies,
# a later year, rows of new groups. ``predict_typicality`` and the report's checks look for that.
