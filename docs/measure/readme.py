"""The README's pictures and measured lines: ``python docs/measure readme`` renews them."""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import prediction
from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.plots import PosteriorDisplay, ZoneMapDisplay

IMAGES = Path(__file__).parent.parent / "images"
README = Path(__file__).parents[2] / "README.md"
# Between the first item and the picture.
CASE = re.compile(r"- \*\*How good:.*?\n(?=\n!\[Log-loss)", re.DOTALL)


def write() -> None:
    """Draw zones and posterior on Ripley's data, and the comparison with other methods."""
    data = prediction.read()
    prediction.draw(data).savefig(IMAGES / "prediction.png", dpi=130)
    README.write_text(CASE.sub(lambda _: prediction.write_case(data), README.read_text()))
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(9.0, 3.9), layout="constrained")
        axes = figure.subplot_mosaic("ab;ac", width_ratios=(1.5, 1))
        ZoneMapDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, ax=axes["a"])
        axes["a"].set_title("Ripley's training points: where the class is sure")
        PosteriorDisplay.from_estimator(clf, traces=False, axes=[axes["b"], axes["c"]])
        figure.savefig(IMAGES / "zones.png", dpi=130)
