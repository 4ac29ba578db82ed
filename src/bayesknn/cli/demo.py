"""``bayesknn demo``: the paper's first example, classical and Bayesian, with nothing to prepare."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from bayesknn.cli.errors import Command, debug_option

# Of which items of the paper the error rates are shown: of classical kNN by data set, and of the
# Bayesian rule on Ripley's data by likelihood.
CLASSICAL = {"ripley": "tab:knn-ripley", "pima": "tab:knn-indian"}
BAYESIAN = {"pseudo": "num:error-pseudo", "coherent": "num:error-perfect"}
PICTURES = ("ripley.png", "ripley.svg")
TABLES = ("train.csv", "test.csv")


@click.command(cls=Command)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for what it writes, made if missing; demo-output by default.",
)
@click.option("--force", is_flag=True, help="Replace an earlier demo in --out.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@debug_option
def demo(out: Path | None, force: bool, quiet: bool) -> None:
    """Classical and Bayesian kNN on the paper's data: its tables, a picture, a report.

    Prints Tables 1 and 2 of the paper next to the error rates computed here, fits the Bayesian
    classifier to Ripley's data, and writes the files of bayesknn fit, the tables they were made
    from, and a picture: level sets of the class probability, the paper's zones, and the posterior
    of beta and k.
    """
    from bayesknn._utils.progress import progress
    from bayesknn.datasets import load_ripley
    from bayesknn.paper.comparison import read_published
    from bayesknn.plots.style import render
    from bayesknn.report import folder as output

    output.require_packages(*output.PACKAGES)
    from bayesknn.report.analysis import analyse, describe

    # demo-output is the demo's own; a folder that was named may hold someone's work.
    folder, force = out or Path("demo-output"), force or out is None
    own = (*output.FILES, *PICTURES, *TABLES)
    with (
        output.write_folder(folder, force=force, own=own) as target,
        progress("Fitting Ripley's and the Pima data", verbose=not quiet),
    ):
        lines = ["Classical k-nearest neighbours, ties resolved by decreasing k"]
        for name in CLASSICAL:
            lines += _classify(name)
        lines += ["\nRipley: Bayesian k-nearest neighbours, k and its strength beta averaged over"]
        lines += ["    likelihood   published    ours   log-loss"]
        ripley = load_ripley(as_frame=True)
        train = ripley.X_train.assign(**{"class": ripley.y_train})
        test = ripley.X_test.assign(**{"class": ripley.y_test})
        for likelihood, id in BAYESIAN.items():
            # Raw coordinates, as in the paper.
            analysis = analyse(
                train, "class", test, model=likelihood, scale=False, settings={"random_state": 0}
            )
            errors = analysis.scores["test"]
            published = read_published()[id]["numbers"]["error"]
            scores = f"{published['paper']:.3f}   {errors.error:.3f}      {errors.log_loss:.3f}"
            lines.append(f"    {likelihood:10s}       {scores}")
        why = f"{likelihood}: {published['why'].strip()} (docs/checks.md)"
        lines += textwrap.wrap(why, 92, initial_indent="    ", subsequent_indent="    ")
        command = (
            f"bayesknn fit {folder / TABLES[0]} --target class --test {folder / TABLES[1]} "
            "--no-scale --model coherent --no-compare --out ripley-report"
        )
        for name, table in zip(TABLES, (train, test), strict=True):
            table.to_csv(target / name, index=False, lineterminator="\n")
        output.write_results(target, analysis, folder, command, [target / name for name in TABLES])
        figure = draw(analysis.model.adapter.classifier, ripley.X_train, ripley.y_train)
        for picture in (target / name for name in PICTURES):
            picture.write_bytes(render(figure, picture.suffix[1:], dpi=110))
    if not quiet:
        lines += [f"  {line}" for line in describe(analysis)]
        lines.append(f"\nPicture: {' and '.join(str(folder / name) for name in PICTURES)}")
        lines.append(f"Report:  {folder / 'report.html'}")
        click.echo("\n".join(lines))


def draw(classifier: Any, X: Any, y: Any) -> Any:
    """Return a figure of a classifier of two features: level sets, the paper's zones, posterior."""
    import numpy as np

    from bayesknn.plots import PosteriorDisplay, ZoneMapDisplay
    from bayesknn.plots.style import new_figure

    figure, axes = new_figure(2, 2, 9.0, 7.0, height_ratios=(1.7, 1))
    left, right = axes[0]
    shown = {"of": "parameters", "resolution": 100, "ax": left}
    zones = ZoneMapDisplay.from_estimator(classifier, X, y, kind="levels", **shown)
    zones.plot(np.asarray(X), y, kind="zones", ax=right)
    left.set_title("Level sets of the class probability")
    right.set_title("Zones: 95 % credible interval against 1/2")
    PosteriorDisplay.from_estimator(classifier, traces=False, axes=axes[1])
    axes[1, 0].set_title("Posterior of the strength β")
    axes[1, 1].set_title("Posterior of the number of neighbours k")
    return figure


def _classify(name: str) -> list[str]:
    """Return lines on the classical rule's error rates on one data set, and on leave-one-out."""
    from bayesknn import ClassicalKNeighborsClassifier, datasets
    from bayesknn.paper.comparison import published_rates, read_published
    from bayesknn.plots import LeaveOneOutDisplay

    data, id = getattr(datasets, f"load_{name}")(), CLASSICAL[name]
    table = read_published()[id]["where"].split(",")[0]
    lines = [f"\n{name.capitalize()}: error rate on {len(data.y_test)} test points ({table})"]
    lines.append("    k   published    ours")
    for k, published in published_rates(id).items():
        clf = ClassicalKNeighborsClassifier(k).fit(data.X_train, data.y_train)
        error = 1 - clf.score(data.X_test, data.y_test)
        mark = "" if f"{error:.3f}" == f"{published:.3f}" else "   differs"
        lines.append(f"  {k:3d}       {published:.3f}   {error:.3f}{mark}")
    clf = ClassicalKNeighborsClassifier("loo").fit(data.X_train, data.y_train)
    curve = LeaveOneOutDisplay(clf.loo_errors_)
    lines.append(
        f"Leave-one-out on its {len(data.y_train)} training points: least error "
        f"{curve.errors.min():.3f} at k = {', '.join(map(str, curve.best_k))}; "
        f"k = {clf.n_neighbors_} is chosen"
    )
    return lines
