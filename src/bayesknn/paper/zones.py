"""Level sets of the predictive probability, and zones sure and uncertain (Figure levelset)."""

from __future__ import annotations

import numpy as np

from bayesknn.paper.drawing import new_figure
from bayesknn.paper.item import Estimate, Item, Quantity, Result
from bayesknn.paper.prediction import predictive
from bayesknn.paper.samples import auxiliary_draws
from bayesknn.paper.setting import Setting
from bayesknn.plots import ZoneMapDisplay
from bayesknn.predictive import find_zones


def draw_zones(setting: Setting) -> Result:
    """Draw the map of Ripley's square from the perfect chain, as the paper's caption says."""
    study = setting.ripley
    rule = predictive(study, auxiliary_draws(setting, "perfect"))
    low, high = study.X_train.min(axis=0) - 0.1, study.X_train.max(axis=0) + 0.1
    size = setting.budget.resolution
    x, y = np.linspace(low, high, size).T
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    probabilities = rule.probabilities(grid).reshape(size, size, 2)
    zones = find_zones(rule.intervals(grid, 0.95)).reshape(size, size)
    figure, axes = new_figure(1, 2, 9.5, 4.0, sharey=True)
    display = ZoneMapDisplay(x, y, probabilities, zones, ["1", "2"])
    display.plot(kind="levels", ax=axes[0, 0])
    display.plot(study.X_train, np.array(["1", "2"])[study.labels], kind="zones", ax=axes[0, 1])
    axes[0, 0].set_title("P(class 2), level sets")
    axes[0, 1].set_title("95 % intervals against one half")
    axes[0, 1].set_ylabel("")
    at_test = find_zones(rule.intervals(study.X_test, 0.95))
    wrong = rule.probabilities(study.X_test).argmax(axis=1) != study.test_labels
    unsure = at_test < 0
    return Result(
        {
            "zones": Estimate(len(np.unique(zones))),
            "area": Estimate(float(np.mean(zones < 0))),
            "unsure": Estimate(float(np.mean(unsure))),
            "error_sure": Estimate(float(np.mean(wrong[~unsure]))),
            "error_unsure": Estimate(float(np.mean(wrong[unsure])) if unsure.any() else 0.0),
        },
        {"": figure},
    )


ITEMS = [
    Item(
        "fig:levelset", "Level sets and zones", "Figure 3, Section 1.3", draw_zones,
        {
            "zones": Quantity("zones of the square: sure of one class, of the other, uncertain", 3),
            "area": Quantity("share of the square that is uncertain", None),
            "unsure": Quantity("share of the test points that are uncertain", None),
            "error_sure": Quantity("error rate on the test points that are sure", None,
                                   remark="A credible interval holds what is not known about β "
                                   "and k, not how much the classes overlap: sure points err "
                                   "too."),
            "error_unsure": Quantity("error rate on those that are uncertain", None,
                                     remark="Far higher than elsewhere; one half would be the "
                                     "error of tossing a coin."),
        },
        "Left: level sets of the predictive probability of the black class. Right: comparison of "
        "the 95 % credibility intervals for the predictive probabilities with 0.5.",
        ("n_chains", "perfect_chain", "resolution"),
    ),
]  # fmt: skip
