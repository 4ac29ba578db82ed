"""The README's picture, kept in the repository: ``python docs/measure readme``."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.plots import PosteriorDisplay, ZoneMapDisplay

FILE = Path(__file__).parent.parent / "images" / "zones.png"


def write() -> None:
    """Draw zones and posterior on Ripley's data."""
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(9.0, 3.9), layout="constrained")
        axes = figure.subplot_mosaic("ab;ac", width_ratios=(1.5, 1))
        ZoneMapDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, ax=axes["a"])
        axes["a"].set_title("Ripley's training points: where the class is sure")
        PosteriorDisplay.from_estimator(clf, traces=False, axes=[axes["b"], axes["c"]])
        figure.savefig(FILE, dpi=130)
