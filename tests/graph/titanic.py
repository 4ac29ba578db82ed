"""R's Titanic table as rows: 2,201 people of 14 kinds, full of ties."""

import numpy as np

# (class, male, adult): died, survived. Class 3 is the crew.
TITANIC = {
    (0, 1, 0): (0, 5),
    (0, 0, 0): (0, 1),
    (0, 1, 1): (118, 57),
    (0, 0, 1): (4, 140),
    (1, 1, 0): (0, 11),
    (1, 0, 0): (0, 13),
    (1, 1, 1): (154, 14),
    (1, 0, 1): (13, 80),
    (2, 1, 0): (35, 13),
    (2, 0, 0): (17, 14),
    (2, 1, 1): (387, 75),
    (2, 0, 1): (89, 76),
    (3, 1, 1): (670, 192),
    (3, 0, 1): (3, 20),
}


def expand_titanic():
    """Return X of shape (2201, 6), indicators of class, sex and age, and whether they survived."""
    rows, survived = [], []
    for (travel_class, male, adult), counts in TITANIC.items():
        kind = [float(travel_class == c) for c in range(4)] + [float(male), float(adult)]
        for outcome, count in enumerate(counts):
            rows += [kind] * count
            survived += [outcome] * count
    return np.array(rows), np.array(survived)
