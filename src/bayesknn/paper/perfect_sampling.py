"""Perfect draws of four classes, the paper's open question, and at large beta (Section 3.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.datasets import load_glass
from bayesknn.exceptions import CoalescenceError
from bayesknn.labels import perfect_labels, spawn_keys
from bayesknn.model import BoltzmannModel, expected_agreement_exact, log_normalizer_exact
from bayesknn.paper.item import Estimate, Result, make_item
from bayesknn.paper.setting import Setting, make_study
from bayesknn.paper.single_site_sampling import perfect_labels_by_sites
from bayesknn.plots.style import COLOURS, INK, new_figure, tidy

_K = 3
_BETAS = np.arange(0.5, 4.1, 0.5)
_MOST_SWEEPS = 2**12


def perfect_four(setting: Setting) -> Result:
    """Draw labels of four classes perfectly and compare them with exact expectations."""
    graph = make_study(load_glass(0)).graph
    n_draws = setting.budget.n_perfect

    def make() -> dict[str, Any]:
        keys = spawn_keys(setting.seeds("perfect-four"), 2 * len(_BETAS))
        means, errors, four, two = [], [], [], []
        for beta, key, other in zip(_BETAS.tolist(), keys[::2], keys[1::2], strict=True):
            model = BoltzmannModel(graph, 4)
            _, info = perfect_labels(
                model, beta, _K, key=key, n_draws=n_draws, n_jobs=setting.n_jobs
            )
            means.append(info.agreement.mean() / _K)
            errors.append(info.agreement.std(ddof=1) / _K / n_draws**0.5)
            four.append(np.median(info.n_sweeps))
            two.append(_sweeps_of_labels(BoltzmannModel(graph, 2), beta, other, min(n_draws, 20)))
        return {"mean": means, "error": errors, "four": four, "two": two}

    found = setting.keep("perfect-four", make)
    truth = np.asarray(expected_agreement_exact(graph, _BETAS, _K, 4)) / _K
    last = found["two"][-1]
    return Result(
        {
            "classes": Estimate(4),
            "score": Estimate(float(np.abs((found["mean"] - truth) / found["error"]).max())),
            "sweeps": Estimate(float(found["four"].max())),
            "labels": Estimate(f"more than {_MOST_SWEEPS}" if np.isnan(last) else float(last)),
        },
        {"": _draw(found, truth)},
    )


def accept_from_below(setting: Setting) -> Result:
    """Compute what rejection would accept of labels drawn at a smaller beta.

    Labels z drawn at b are accepted at beta with probability ``exp((beta - b) (S(z) / k - n))``, n
    being the largest S / k; on average that is ``Z(beta) / Z(b) exp(-(beta - b) n)``.
    """
    graph, betas = setting.ripley.graph, np.array([2.0, 4.0])
    log_z = np.asarray(log_normalizer_exact(graph, betas, _K, 2))
    return Result({"accepted": Estimate(float(np.diff(log_z - betas * graph.n_points)[0]))})


def _sweeps_of_labels(model: BoltzmannModel, beta: float, key: np.uint64, n_draws: int) -> float:
    """Return the median number of sweeps until the labels of two classes meet, NaN if too many."""
    try:
        _, n_sweeps = perfect_labels_by_sites(
            model, beta, _K, key=key, n_draws=n_draws, max_sweeps=_MOST_SWEEPS
        )
    except CoalescenceError:
        return float("nan")
    return float(np.median(n_sweeps))


def _draw(found: dict[str, np.ndarray], truth: np.ndarray) -> Any:
    figure, ((left, right),) = new_figure(1, 2, 9.0, 3.6)
    left.plot(_BETAS, truth, color=INK, linewidth=1, label="exact, by elimination")
    left.errorbar(
        _BETAS, found["mean"], 3 * found["error"], fmt="o", color=COLOURS[0], markersize=4,
        capsize=2, label="perfect draws, 3 errors",
    )  # fmt: skip
    left.set(xlabel="β", ylabel="E[S]  (S divided by k)")
    left.set_title(f"four classes, glass graph, k = {_K}")
    left.legend(frameon=False, fontsize="small", loc="lower right")
    right.semilogy(_BETAS, found["four"], "o-", color=COLOURS[0], label="bonds, G = 4")
    label = "labels, G = 2 (the paper's)"
    right.semilogy(_BETAS, found["two"], "^--", color=COLOURS[1], label=label)
    right.set(xlabel="β", ylabel="sweeps until the chains meet, median", title="cost of a draw")
    right.legend(frameon=False, fontsize="small", loc="center right")
    met = np.flatnonzero(np.isfinite(found["two"]))
    if 0 < len(met) < len(_BETAS):
        right.annotate(
            f"then more than {_MOST_SWEEPS}", (_BETAS[met[-1]], found["two"][met[-1]]), (8, -3),
            textcoords="offset points", fontsize="small",
        )  # fmt: skip
    for ax in (left, right):
        tidy(ax)
    return figure


ITEMS = [
    make_item("extra:perfect-four", perfect_four, classes=lambda n: n.value <= 2),
    make_item(
        "num:accept-reject", accept_from_below, accepted=lambda log_p: log_p.value > np.log(0.01)
    ),
]
