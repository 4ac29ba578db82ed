"""The data and the classical method: Tables 1 and 2, Figures 1 and 2 (Sections 1.2 and 4).

Nothing here is random; every published value must come out to its last decimal.
"""

from __future__ import annotations

import numpy as np

from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.paper.item import Estimate, Result, make_item, published_rates
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots import LeaveOneOutDisplay
from bayesknn.plots.plane import draw_points
from bayesknn.plots.style import COLOURS, INK, new_figure, tidy


def draw_data(setting: Setting) -> Result:
    """Draw the training and the test points (Figure 1)."""
    study = setting.ripley
    figure, axes = new_figure(1, 2, 8.0, 3.6, sharex=True, sharey=True)
    for ax, points, labels, name in (
        (axes[0, 0], study.X_train, study.labels, "training"),
        (axes[0, 1], study.X_test, study.test_labels, "test"),
    ):
        draw_points(ax, points, labels + 1, np.array([1, 2]))
        ax.set(title=f"{len(labels)} {name} points", xlabel="x1")
        tidy(ax)
    axes[0, 0].set_ylabel("x2")
    axes[0, 0].legend(frameon=False, loc="lower right", fontsize="small")
    estimates = {
        "n_train": Estimate(len(study.labels)),
        "n_test": Estimate(len(study.test_labels)),
        "sizes": Estimate(np.bincount(study.labels).tolist()),
    }
    return Result(estimates, {"": figure})


def _table(study: Study, id: str) -> Result:
    """Compute Table 1 or 2, and the error rates at other k."""
    ks, errors = list(published_rates(id)), {}
    for k in sorted({*ks, *range(5, study.k_max + 1, 5)}):
        rule = ClassicalKNeighborsClassifier(k).fit(study.X_train, study.labels)
        errors[k] = float(np.mean(rule.predict(study.X_test) != study.test_labels))
    figure, axes = new_figure(1, 1, 6.0, 3.2)
    ax = axes[0, 0]
    ax.plot(list(errors), list(errors.values()), ".-", color=INK, linewidth=1, label="others")
    ax.plot(ks, [errors[k] for k in ks], "o", color=COLOURS[5], label="k of the table")
    ax.set(xlabel="number of neighbours k", ylabel="test error rate")
    ax.legend(frameon=False, loc="upper right")
    tidy(ax)
    return Result({f"k={k}": Estimate(errors[k]) for k in ks}, {"": figure})


def ripley_leave_one_out(setting: Setting) -> Result:
    """Draw the leave-one-out curve (Figure 2)."""
    result = _leave_one_out(setting.ripley)
    result.estimates["n_best"] = Estimate(len(result.estimates["best"].value))
    return result


def _leave_one_out(study: Study) -> Result:
    rule = ClassicalKNeighborsClassifier("loo").fit(study.X_train, study.labels)
    figure, axes = new_figure(1, 1, 6.0, 3.4)
    display = LeaveOneOutDisplay.from_estimator(rule, ax=axes[0, 0])
    estimates = {
        "best": Estimate(display.best_k.tolist()),
        "least": Estimate(float(display.errors.min())),
    }
    return Result(estimates, {"": figure})


def pima_sizes(setting: Setting) -> Result:
    """Count the Pima data (Section 4)."""
    study = setting.pima
    yes = study.classes.index("Yes")
    return Result(
        {
            "n": Estimate(len(study.labels) + len(study.test_labels)),
            "n_covariates": Estimate(study.X_train.shape[1]),
            "train": Estimate([len(study.labels), int(np.sum(study.labels == yes))]),
            "test": Estimate([len(study.test_labels), int(np.sum(study.test_labels == yes))]),
        }
    )


def glass_sizes(setting: Setting) -> Result:
    """Count the glass data (Section 4)."""
    merged, raw = load_glass(0), load_glass(0, classes="raw")
    return Result(
        {
            "covariates": Estimate(merged.X_train.shape[1]),
            "classes": Estimate(len(raw.target_names)),
            "merged": Estimate(len(merged.target_names)),
            "split": Estimate([len(merged.y_train), len(merged.y_test)]),
        }
    )


ITEMS = [
    make_item("fig:ripley", draw_data),
    make_item("tab:knn-ripley", lambda setting: _table(setting.ripley, "tab:knn-ripley")),
    make_item("fig:leave1", ripley_leave_one_out),
    make_item("tab:knn-indian", lambda setting: _table(setting.pima, "tab:knn-indian")),
    make_item("num:loo-pima", lambda setting: _leave_one_out(setting.pima)),
    make_item("num:pima-sizes", pima_sizes),
    make_item("num:glass-sizes", glass_sizes),
]
