"""The data and the classical method: Tables 1 and 2, Figures 1 and 2 (Sections 1.2 and 4).

Nothing here is random; every published value must come out to its last decimal.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass
from bayesknn.paper.comparison import Estimate, Result, item, published_rates
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots import LeaveOneOutDisplay
from bayesknn.plots.maps import draw_points
from bayesknn.plots.style import COLOURS, INK, new_figure


@item("fig:ripley")
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
    axes[0, 0].set_ylabel("x2")
    axes[0, 0].legend(loc="lower right")
    n_train, n_test = len(study.labels), len(study.test_labels)
    sizes = np.bincount(study.labels)
    return Result({"n_train": n_train, "n_test": n_test, "sizes": sizes}, (figure,))


def _table(setting: Setting, data: str, id: str) -> Result:
    """Compute the error rates of Table 1 or 2, and those at other k."""
    study, ks = getattr(setting, data), list(published_rates(id))
    every_k = sorted({*ks, *range(5, study.k_max + 1, 5)})
    errors = {k: study.classical_error(ClassicalKNeighborsClassifier(k)) for k in every_k}
    figure, ((ax,),) = new_figure(1, 1, 6.0, 3.2)
    ax.plot(list(errors), list(errors.values()), ".-", color=INK, linewidth=1, label="others")
    ax.plot(ks, [errors[k] for k in ks], "o", color=COLOURS[5], label="k of the table")
    ax.set(xlabel="number of neighbours k", ylabel="test error rate")
    ax.legend(loc="upper right", fontsize="medium")
    return Result({f"k={k}": errors[k] for k in ks}, (figure,))


for _data, _id in (("ripley", "tab:knn-ripley"), ("pima", "tab:knn-indian")):
    item(_id)(partial(_table, data=_data, id=_id))


def _leave_one_out(study: Study) -> Result:
    rule = ClassicalKNeighborsClassifier("loo").fit(study.X_train, study.labels)
    figure, ((ax,),) = new_figure(1, 1, 6.0, 3.4)
    display = LeaveOneOutDisplay.from_estimator(rule, ax=ax)
    return Result({"best": display.best_k, "least": display.errors.min()}, (figure,))


@item("fig:leave1")
def ripley_leave_one_out(setting: Setting) -> Result:
    """Draw the leave-one-out curve (Figure 2)."""
    result = _leave_one_out(setting.ripley)
    result.estimates["n_best"] = Estimate(len(result.estimates["best"].value))
    return result


@item("num:loo-pima")
def pima_leave_one_out(setting: Setting) -> Result:
    """Find the k that leave-one-out chooses on the Pima data (Section 4)."""
    return _leave_one_out(setting.pima)


@item("num:pima-sizes")
def pima_sizes(setting: Setting) -> Result:
    """Count the Pima data (Section 4)."""
    study = setting.pima
    train, test = ([len(y), np.sum(y == 1)] for y in (study.labels, study.test_labels))
    n_covariates = study.X_train.shape[1]
    n = train[0] + test[0]
    return Result({"n": n, "n_covariates": n_covariates, "train": train, "test": test})


@item("num:glass-sizes")
def glass_sizes(setting: Setting) -> Result:
    """Count the glass data (Section 4)."""
    merged, raw = load_glass(0), load_glass(0, classes="raw")
    return Result(
        {
            "covariates": merged.X_train.shape[1],
            "classes": len(raw.target_names),
            "merged": len(merged.target_names),
            "split": [len(merged.y_train), len(merged.y_test)],
        }
    )
