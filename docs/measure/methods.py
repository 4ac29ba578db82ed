"""Test scores and reliability of each likelihood, for the page that compares the methods."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from bayesknn import BayesianKNeighborsClassifier, ClassicalKNeighborsClassifier
from bayesknn.datasets import load_glass, load_pima, load_ripley
from bayesknn.plots import ReliabilityDisplay
from mixtures import RIPLEY

LIKELIHOODS = ("coherent", "pseudo", "holmes-adams")


def run(out: Path) -> dict[str, str]:
    """Write the tables and the reliability diagram."""
    numbers: dict[str, str] = {}
    others = [
        "| data | training / test points | classes | coherent | pseudo | Holmes-Adams "
        "| coherent minus pseudo |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, parts in _data():
        _X, y, _X_test, y_test = parts
        fits = {each: _fit(each, *parts) for each in LIKELIHOODS}
        gap = fits["coherent"]["loss"] - fits["pseudo"]["loss"]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        cells = [f"{fit['log_loss']:.3f} / {fit['error']:.3f}" for fit in fits.values()]
        others.append(
            f"| {name} | {len(y)} / {len(y_test)} | {len(np.unique(y))} | {' | '.join(cells)} "
            f"| {gap.mean():+.3f} ± {error:.3f} |"
        )
        if name == "Ripley":
            _write_ripley(out, parts, fits)
            for each, fit in fits.items():
                for what in ("error", "log_loss", "stated", "right"):
                    numbers[f"ripley_{each.replace('-', '_')}_{what}"] = f"{fit[what]:.3f}"
            numbers["ripley_test"] = f"{len(y_test):,}"
            worst = fits["coherent"]["error"]
            numbers["ripley_error_error"] = f"{np.sqrt(worst * (1 - worst) / len(y_test)):.3f}"
            numbers["ripley_gap"] = f"{gap.mean():.3f}"
            numbers["ripley_gap_error"] = f"{error:.3f}"
    (out / "methods_others.md").write_text("\n".join(others) + "\n")
    return numbers


def _data():
    for name, load in (("Ripley", load_ripley), ("Pima", load_pima), ("glass", load_glass)):
        data = load()
        yield name, (data.X_train, data.y_train, data.X_test, data.y_test)
    for name, load in (("wine", load_wine), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        scale = StandardScaler().fit(X)
        yield f"{name}, standardised", (scale.transform(X), y, scale.transform(X_test), y_test)


def _fit(likelihood, X, y, X_test, y_test) -> dict:
    clf = BayesianKNeighborsClassifier(likelihood, random_state=0).fit(X, y)
    probabilities = clf.predict_proba(X_test)
    labels = np.searchsorted(clf.classes_, y_test)
    right = probabilities.argmax(axis=1) == labels
    loss = -np.log(probabilities[np.arange(len(labels)), labels])
    return {
        "clf": clf,
        "probabilities": probabilities,
        "loss": loss,
        "log_loss": loss.mean(),
        "error": 1 - right.mean(),
        "stated": probabilities.max(axis=1).mean(),
        "right": right.mean(),
        "loo": -clf.loo_log_score_,
    }


def _write_ripley(out, parts, fits) -> None:
    X, y, X_test, y_test = parts
    classical = ClassicalKNeighborsClassifier("loo").fit(X, y)
    lines = [
        "| `likelihood=` | test error | test log-loss | mean probability of the predicted class "
        "| proportion correct | leave-one-out log-loss | E β | E k |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for likelihood, fit in fits.items():
        clf = fit["clf"]
        lines.append(
            f'| `"{likelihood}"` | {fit["error"]:.3f} | {fit["log_loss"]:.3f} '
            f"| {fit['stated']:.3f} | {fit['right']:.3f} | {fit['loo']:.3f} "
            f"| {clf.beta_mean_:.2f} | {clf.k_values_ @ clf.k_probabilities_:.1f} |"
        )
    error = 1 - classical.score(X_test, y_test)
    lines.append(
        f"| classical, k = {classical.n_neighbors_} by leave-one-out | {error:.3f} | | | "
        f"{1 - error:.3f} | | | {classical.n_neighbors_} |"
    )
    true_p = RIPLEY.probabilities(X_test)
    loss = -np.log(true_p[np.arange(len(y_test)), y_test]).mean()
    right = np.mean(true_p.argmax(axis=1) == y_test)
    lines.append(
        f"| the true distribution, if it were known | {1 - right:.3f} | {loss:.3f} "
        f"| {true_p.max(axis=1).mean():.3f} | {right:.3f} | | | |"
    )
    (out / "methods_ripley.md").write_text("\n".join(lines) + "\n")
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    axes = figure.subplots(2, 3, height_ratios=(3, 1), sharex=True, sharey="row")
    for at, (likelihood, fit) in enumerate(fits.items()):
        ReliabilityDisplay.from_predictions(
            y_test,
            fit["probabilities"],
            kind="top",
            edges=np.linspace(0.5, 1.0, 6),
            axes=axes[:, at],
        )
        axes[0, at].set(title=likelihood, ylim=(0.4, 1.03))
        axes[0, at].get_legend().remove()
        if at:
            for ax in axes[:, at]:
                ax.set_ylabel("")
    figure.savefig(out / "reliability.png")
