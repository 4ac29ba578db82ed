"""``bayesknn demo``: the paper's first example, classical and Bayesian, with nothing to prepare."""

from __future__ import annotations

import textwrap
from pathlib import Path

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

    Prints Tables 1 and 2 of the paper beside our numbers, fits the Bayesian classifier to Ripley's
    data, and writes what bayesknn fit writes, the tables it was given, and a picture of the
    classical rule at the k chosen by leave-one-out.
    """
    from bayesknn._utils.progress import progress
    from bayesknn.datasets import load_ripley
    from bayesknn.paper.comparison import read_published
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
            lines += _classify(name, [target / name for name in PICTURES])
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
            "--no-scale --model coherent --out ripley-report"
        )
        for name, table in zip(TABLES, (train, test), strict=True):
            table.to_csv(target / name, index=False, lineterminator="\n")
        output.write_results(target, analysis, folder, command, [target / name for name in TABLES])
    if not quiet:
        lines += [f"  {line}" for line in describe(analysis)]
        lines.append(f"\nPicture: {' and '.join(str(folder / name) for name in PICTURES)}")
        lines.append(f"Report:  {folder / 'report.html'}")
        click.echo("\n".join(lines))


def _classify(name: str, pictures: list[Path]) -> list[str]:
    """Classify one data set by the classical rule; draw Ripley's."""
    from bayesknn import ClassicalKNeighborsClassifier, datasets
    from bayesknn.paper.comparison import published_rates, read_published
    from bayesknn.plots import DecisionRegionDisplay, LeaveOneOutDisplay
    from bayesknn.plots.style import new_figure, render

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
    if name != "ripley":
        return lines
    figure, ((left, right),) = new_figure(1, 2, 9.0, 3.9)
    DecisionRegionDisplay.from_estimator(clf, data.X_train, data.y_train, ax=left)
    left.set_title(f"Ripley's training points, {clf.n_neighbors_} nearest neighbours")
    LeaveOneOutDisplay.from_estimator(clf, ax=right)
    right.set_title("Leave-one-out leaves k undecided")
    for picture in pictures:
        picture.write_bytes(render(figure, picture.suffix[1:], dpi=130))
    return lines
