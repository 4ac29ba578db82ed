"""The command ``bayesknn``: what people type. Heavy imports wait until a command needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayesknn._version import __version__

if TYPE_CHECKING:
    from bayesknn.classical import ClassicalKNeighborsClassifier

# Misclassification rates of classical kNN on the test sets: the paper's Tables 1 and 2.
PUBLISHED = {
    "ripley": {1: 0.150, 3: 0.134, 15: 0.095, 17: 0.087, 31: 0.084, 54: 0.081},
    "pima": {1: 0.316, 3: 0.229, 15: 0.226, 31: 0.211, 57: 0.205, 66: 0.208},
}
DEMO_FOLDER = Path("demo-output")


class _Refusal(click.ClickException):
    """One line on why a command will not run, and exit code 2 as for any other misuse."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bayesknn")
def main() -> None:
    """k-nearest-neighbour classification that knows how sure it is."""


@main.command(short_help="The paper's tables for classical kNN, and a picture.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder for the picture, made if missing; {DEMO_FOLDER} by default.",
)
@click.option("--force", is_flag=True, help="Replace pictures that are already in --out.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def demo(out: Path | None, force: bool, quiet: bool) -> None:
    """Classical kNN on the paper's data: its tables, its leave-one-out sets, a picture.

    Prints Tables 1 and 2 of the paper beside our numbers and draws Ripley's training points with
    the decision region at the k chosen by leave-one-out, as ripley.png and ripley.svg.
    """
    folder = DEMO_FOLDER if out is None else out
    pictures = [folder / f"ripley.{suffix}" for suffix in ("png", "svg")]
    # demo-output is the demo's own; a folder that was named may hold someone's work.
    if out is not None and not force:
        for picture in pictures:
            if picture.exists():
                raise _Refusal(f"{picture} exists; pass --force to replace it")
    from bayesknn._progress import progress

    with progress("Classifying", total=3, verbose=not quiet) as advance:
        results = []
        for name in PUBLISHED:
            results.append(_classify(name))
            advance(1)
        try:
            _draw(results[0].clf, pictures)
        except ModuleNotFoundError as error:
            raise click.ClickException(str(error)) from None
        advance(1)
    if not quiet:
        click.echo("Classical k-nearest neighbours, ties resolved by decreasing k")
        for result in results:
            _print_result(result)
        click.echo(f"\nPicture: {' and '.join(map(str, pictures))}")


def _planned(name: str, purpose: str) -> None:
    """Add a command that says it is not there yet, whatever its arguments."""

    @main.command(
        name,
        help=f"Not built yet: will {purpose}.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def refuse() -> None:
        raise _Refusal(
            f"bayesknn {name} is not built yet; it will {purpose[0].lower()}{purpose[1:]}"
        )


_planned("fit", "fit the Bayesian classifier to a table and save it")
_planned("predict", "classify new rows with a saved classifier")
_planned("paper", "reproduce every figure, table and number of the paper")


@main.command(short_help="Measure every speed target.")
@click.argument("names", nargs=-1)
def bench(names: tuple[str, ...]) -> None:
    """Measure every speed target, or those of the benchmarks named (source checkout only)."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise _Refusal(
            "the benchmarks come with the source, not with the installed package; "
            "run this command from a checkout"
        )
    command = [sys.executable, "-m", "benchmarks", *names]
    sys.exit(subprocess.run(command, cwd=root, check=False).returncode)


class _Result(NamedTuple):
    """What the demo has to say about one data set."""

    name: str
    clf: ClassicalKNeighborsClassifier
    n_train: int
    n_test: int
    errors: dict[int, float]


def _classify(name: str) -> _Result:
    from bayesknn import ClassicalKNeighborsClassifier, datasets

    data = getattr(datasets, f"load_{name}")()
    errors = {}
    for k in PUBLISHED[name]:
        clf = ClassicalKNeighborsClassifier(k).fit(data.X_train, data.y_train)
        errors[k] = 1 - clf.score(data.X_test, data.y_test)
    chosen = ClassicalKNeighborsClassifier("loo").fit(data.X_train, data.y_train)
    return _Result(name, chosen, len(data.y_train), len(data.y_test), errors)


def _print_result(result: _Result) -> None:
    from bayesknn.plots import LeaveOneOutDisplay

    curve = LeaveOneOutDisplay(result.clf.loo_errors_)
    table = list(PUBLISHED).index(result.name) + 1
    click.echo(
        f"\n{result.name.capitalize()}: error rate on {result.n_test} test points (Table {table})"
    )
    click.echo("    k   published    ours")
    for k, error in result.errors.items():
        published = PUBLISHED[result.name][k]
        mark = "" if f"{error:.3f}" == f"{published:.3f}" else "   differs"
        click.echo(f"  {k:3d}       {published:.3f}   {error:.3f}{mark}")
    values = ", ".join(map(str, curve.best_k))
    click.echo(
        f"Leave-one-out on its {result.n_train} training points: least error "
        f"{curve.errors.min():.3f} at k = {values}; k = {result.clf.n_neighbors_} is chosen"
    )


def _draw(clf: ClassicalKNeighborsClassifier, pictures: list[Path]) -> None:
    from bayesknn.datasets import load_ripley
    from bayesknn.plots import DecisionRegionDisplay, LeaveOneOutDisplay
    from bayesknn.plots.style import require_matplotlib

    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ripley = load_ripley()
    # A fixed salt and no date: the same data give the same bytes.
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "bayesknn"}):
        figure = Figure(figsize=(9.0, 3.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        DecisionRegionDisplay.from_estimator(clf, ripley.X_train, ripley.y_train, ax=left)
        left.get_legend().set_loc("lower right")  # where no point and no border is
        left.set_title(f"Ripley's training points, {clf.n_neighbors_} nearest neighbours")
        LeaveOneOutDisplay.from_estimator(clf, ax=right)
        right.set_title("Leave-one-out leaves k undecided")
        pictures[0].parent.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            metadata: dict[str, Any] = {"Date": None} if picture.suffix == ".svg" else {}
            figure.savefig(picture, dpi=130, metadata=metadata)


if __name__ == "__main__":
    main()
