"""The data and the classical method: Tables 1 and 2, Figures 1 and 2 (Sections 1.2 and 4).

Nothing here is random; every published value must come out to its last decimal.
"""

from __future__ import annotations

import numpy as np

from bayesknn.classical import ClassicalKNeighborsClassifier
from bayesknn.paper.drawing import draw_points, new_figure
from bayesknn.paper.item import Estimate, Item, Quantity, Result, independent
from bayesknn.paper.setting import Setting, Study
from bayesknn.plots import LeaveOneOutDisplay
from bayesknn.plots.style import COLOURS, INK, tidy

RIPLEY_RATES = {1: 0.150, 3: 0.134, 15: 0.095, 17: 0.087, 31: 0.084, 54: 0.081}
PIMA_RATES = {1: 0.316, 3: 0.229, 15: 0.226, 31: 0.211, 57: 0.205, 66: 0.208}


def classical_errors(study: Study, ks: list[int]) -> dict[int, float]:
    """Return the classical rule's error rate on the test points at each k."""
    errors = {}
    for k in ks:
        rule = ClassicalKNeighborsClassifier(k).fit(study.X_train, study.labels)
        errors[k] = float(np.mean(rule.predict(study.X_test) != study.test_labels))
    return errors


def leave_one_out(study: Study, k_max: int | None = None) -> np.ndarray:
    """Return the leave-one-out error rates at k = 1, 2, ..."""
    rule = ClassicalKNeighborsClassifier("loo", max_neighbors=k_max)
    return rule.fit(study.X_train, study.labels).loo_errors_


def draw_data(setting: Setting) -> Result:
    """Draw the training and the test points (Figure 1)."""
    study = setting.ripley
    figure, axes = new_figure(1, 2, 8.0, 3.6, sharex=True, sharey=True)
    for ax, points, labels, name, size in (
        (axes[0, 0], study.X_train, study.labels, "training", 4.5),
        (axes[0, 1], study.X_test, study.test_labels, "test", 3.0),
    ):
        draw_points(ax, points, labels, size)
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


def ripley_table(setting: Setting) -> Result:
    """Compute Table 1."""
    return _table(setting.ripley, RIPLEY_RATES)


def pima_table(setting: Setting) -> Result:
    """Compute Table 2."""
    return _table(setting.pima, PIMA_RATES)


def _table(study: Study, ks: dict[int, float]) -> Result:
    errors = classical_errors(study, list(ks))
    figure, axes = new_figure(1, 1, 6.0, 3.2)
    ax = axes[0, 0]
    some = classical_errors(study, sorted({*ks, *range(5, study.k_max + 1, 5)}))
    ax.plot(list(some), list(some.values()), ".-", color=INK, linewidth=1, label="others")
    ax.plot(list(errors), list(errors.values()), "o", color=COLOURS[5], label="k of the table")
    ax.set(xlabel="number of neighbours k", ylabel="test error rate")
    ax.legend(frameon=False, loc="upper right")
    tidy(ax)
    return Result({f"k={k}": Estimate(error) for k, error in errors.items()}, {"": figure})


def draw_leave_one_out(setting: Setting) -> Result:
    """Draw the leave-one-out curve (Figure 2)."""
    errors = leave_one_out(setting.ripley)
    figure, axes = new_figure(1, 1, 6.0, 3.4)
    best = LeaveOneOutDisplay(errors).plot(ax=axes[0, 0]).best_k
    estimates = {
        "best": Estimate(best.tolist()),
        "n_best": Estimate(len(best)),
        "least": Estimate(float(errors.min())),
    }
    return Result(estimates, {"": figure})


def pima_leave_one_out(setting: Setting) -> Result:
    """Find the k that leave-one-out chooses on Pima (Section 4)."""
    errors = leave_one_out(setting.pima)
    figure, axes = new_figure(1, 1, 6.0, 3.4)
    best = LeaveOneOutDisplay(errors).plot(ax=axes[0, 0]).best_k
    return Result(
        {"best": Estimate(best.tolist()), "least": Estimate(float(errors.min()))}, {"": figure}
    )


def pima_sizes(setting: Setting) -> Result:
    """Count the Pima data (Section 4)."""
    study = setting.pima
    labels = np.concatenate([study.labels, study.test_labels])
    yes = study.classes.index("Yes")
    return Result(
        {
            "n": Estimate(len(labels)),
            "n_covariates": Estimate(study.X_train.shape[1]),
            "train": Estimate([len(study.labels), int(np.sum(study.labels == yes))]),
            "test": Estimate([len(study.test_labels), int(np.sum(study.test_labels == yes))]),
        }
    )


def _rates(published: dict[int, float]) -> dict[str, Quantity]:
    return {
        f"k={k}": Quantity(f"test error rate at k = {k}", rate) for k, rate in published.items()
    }


ITEMS = [
    Item(
        "fig:ripley", "Ripley's benchmark", "Figure 1, Section 1.2", draw_data,
        {
            "n_train": Quantity("training points", 250),
            "n_test": Quantity("test points", 1000),
            "sizes": Quantity("training points of each class", [125, 125],
                              remark="Populations of equal sizes, as the text says."),
        },
        "Training and test groups for Ripley's benchmark, one colour a label.",
    ),
    Item(
        "tab:knn-ripley", "Classical kNN on Ripley's test set", "Table 1, Section 1.2",
        ripley_table, _rates(RIPLEY_RATES),
        "Misclassification error rates of the standard k-nearest-neighbour method.",
    ),
    Item(
        "fig:leave1", "Leave-one-out error on Ripley's training set", "Figure 2, Section 1.2",
        draw_leave_one_out,
        {
            "best": Quantity("values of k with the least leave-one-out error",
                             [17, 18, 35, 36, 45, 46, 51, 52, 53, 54]),
            "n_best": Quantity("how many values of k compete", 10),
            "least": independent("least leave-one-out error rate", 0.116),
        },
        "Misclassification leave-one-out error rate as a function of k.",
    ),
    Item(
        "tab:knn-indian", "Classical kNN on the Pima test set", "Table 2, Section 4",
        pima_table, _rates(PIMA_RATES),
        "Performance of k-nearest-neighbour methods on the Pima Indian test dataset.",
    ),
    Item(
        "num:loo-pima", "Leave-one-out on the Pima training set", "Section 4", pima_leave_one_out,
        {
            "best": Quantity("values of k with the least leave-one-out error",
                             list(range(57, 67))),
            "least": independent("least leave-one-out error rate", 0.235),
        },
        "There are 10 consecutive values of k leading to the same error rate, 57 to 66.",
    ),
    Item(
        "num:pima-sizes", "The Pima data", "Section 4", pima_sizes,
        {
            "n": Quantity("women", 532),
            "n_covariates": Quantity("quantitative covariates", 7),
            "train": Quantity("women in the training set, and with diabetes", [200, 68]),
            "test": Quantity("women in the test set, and with diabetes", [332, 109]),
        },
        "532 women; 200 in the training set, 68 of them with diabetes; 332 in the test set, 109 "
        "with diabetes.",
    ),
]  # fmt: skip
