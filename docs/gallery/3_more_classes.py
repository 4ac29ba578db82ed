"""
More than two classes
=====================

The forensic glass data have nine measurements of 89 training points of four kinds of glass. The
paper had no exact sampler for more than two classes. All methods of this package work for any
number of classes.
"""

# %%
from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_glass

glass = load_glass()
clf = BayesianKNeighborsClassifier(random_state=0).fit(glass.X_train, glass.y_train)
print(f"classes: {clf.classes_.tolist()}")
print(f"k: mean {clf.k_values_ @ clf.k_probabilities_:.1f}; beta: mean {clf.beta_mean_:.2f}")

# %%
# Most of the posterior probability is at small k, far below the 17 that the paper chose by
# leave-one-out.

from bayesknn.plots import PosteriorDisplay

PosteriorDisplay.from_estimator(clf)

# %%
# Probabilities, intervals and zones
# ----------------------------------
# Each class has a probability and an interval. A point is assigned to the zone of a class if the
# interval of this class lies above those of the three others.

probabilities = clf.predict_proba(glass.X_test)
intervals = clf.predict_interval(glass.X_test)
zones = clf.predict_zone(glass.X_test)
for row in (0, 30, 90):
    parts = [
        f"{name} {p:.2f} ({low:.2f} to {high:.2f})"
        for name, p, (low, high) in zip(
            clf.classes_, probabilities[row], intervals[row], strict=True
        )
    ]
    print(f"{'; '.join(parts)}: {zones[row]}")

# %%
# The reliability diagram compares predicted probabilities with observed frequencies. With more than
# two classes it uses the probability of the most probable class. The bars are binomial intervals;
# with only 96 test points they are wide.

from bayesknn.plots import ReliabilityDisplay

ReliabilityDisplay.from_estimator(clf, glass.X_test, glass.y_test, edges=5)

# %%
# Error rates of several partitions
# ---------------------------------
# The paper reports an error rate of 0.29 for one random partition into training and test points,
# which was not published. The error rate depends on the partition, so that distributions over
# partitions should be compared.

import numpy as np

errors = []
for seed in range(10):
    part = load_glass(random_state=seed)
    fitted = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(part.X_train, part.y_train)
    errors.append(1 - fitted.score(part.X_test, part.y_test))
print(f"error rate over {len(errors)} partitions: mean {np.mean(errors):.3f},")
print(f"from {min(errors):.3f} to {max(errors):.3f}")

# %%
# ``sample_labels`` returns an exact draw from the model with four classes. Its coupling from the
# past couples the bonds of the random-cluster representation, not the labels:

from bayesknn.labels import sample_labels

labels = sample_labels(clf.graph_, beta=1.8, k=3, n_classes=4, method="perfect", random_state=0)
print("points in each class of one draw:", np.bincount(labels[0], minlength=4).tolist())
