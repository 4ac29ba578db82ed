"""``bayesknn predict``: new rows through a saved model."""

from __future__ import annotations

import json
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesknn.cli.errors import (
    FILE,
    debug_option,
    encoding_option,
    jobs_option,
    json_option,
    level_option,
    missing_option,
    one_line_errors,
    separator_option,
    sheet_option,
)

if TYPE_CHECKING:
    from bayesknn.report.predictions import Predictions


@click.command
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--out",
    type=FILE,
    help="A file ending in .csv, or a folder for predictions.csv; standard output by default.",
)
@click.option("--force", is_flag=True, help="Replace what is at --out.")
@encoding_option
@separator_option
@sheet_option
@missing_option
@click.option(
    "--id",
    "identifiers",
    multiple=True,
    metavar="COLUMN",
    help="Identifier of the rows, written beside the predictions; may be repeated.",
)
@level_option
@click.option(
    "--loss",
    type=FILE,
    metavar="FILE.csv",
    help="What a wrong decision costs: a row for each true class, a column for each decision.",
)
@jobs_option
@click.option("--quiet", is_flag=True, help="Print no notes.")
@json_option
@debug_option
def predict(debug: bool, **options: Any) -> None:
    """Classify the rows of a table with a model that bayesknn fit wrote.

    MODEL is the file model.skops or the folder it is in. A damaged file is refused, and so is one
    with types of objects that no model has. This is no protection against a file that was forged
    with care: use models only from people you trust.

    If the table has the target column, its rows are scored too. Missing values are filled in as
    they were in training, or are an error; a note says how many. Warnings count the rows that are
    unlike any in training, and name columns whose values it did not have.

    With --loss the output has two more columns: decision, the class with the least expected loss,
    and decision loss, that loss. The file is a square table. Its first column names the true
    classes and its header the classes decided for, so that the entry in row ill and column well is
    the cost of deciding for well where ill is true.
    """
    with one_line_errors(debug):
        _run(**options)


def _run(
    model: Path, data: Path, out: Path | None, force: bool, quiet: bool, as_json: bool, **given: Any
) -> None:
    """Claim the place, load, predict and write; what cannot work is refused first."""
    from bayesknn.report.folder import write_file, write_folder
    from bayesknn.report.reading import check_readable, find_model
    from bayesknn.report.results import require_packages

    find_model(model)
    require_packages("pandas", "skops")
    for path in (data, given["loss"]):
        if path is not None:
            check_readable(path)
    place: AbstractContextManager[Path | None] = nullcontext()
    if out is not None and out.suffix.lower() == ".csv":
        place = write_file(out, force=force)
    elif out is not None:
        place = write_folder(out, force=force, own=("predictions.csv",))
    with place as target:
        from bayesknn._utils.progress import progress
        from bayesknn.report.predictions import write_csv

        with progress("Predicting", verbose=not (quiet or as_json)):
            found, notes, doubts = _predict(model, data, **given)
            text = write_csv(found)
        if target is not None:
            file = target / "predictions.csv" if target.is_dir() else target
            file.write_text(text, encoding="utf-8", newline="")
        elif not as_json:
            click.echo(text, nl=False)
    if as_json:
        click.echo(json.dumps(_summarise(found, notes, doubts, out), indent=2, allow_nan=False))
    elif not quiet:
        _tell(found, notes, doubts, out, given["level"])


def _predict(
    model: Path,
    data: Path,
    encoding: str | None,
    sep: str | None,
    sheet: str | None,
    missing: tuple[str, ...],
    identifiers: tuple[str, ...],
    level: float,
    loss: Path | None,
    n_jobs: int | None,
) -> tuple[Predictions, list[str], list[str]]:
    """Return the predictions, and what there is to say and to doubt of the table."""
    from bayesknn._utils.checks import check_level
    from bayesknn.report.columns import find_column, name_categories, naming_file, number_rows
    from bayesknn.report.losses import read_losses
    from bayesknn.report.pipeline import load_model
    from bayesknn.report.predictions import predict_new
    from bayesknn.report.reading import read_table, split_names

    check_level(level)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # another version wrote it
        fitted = load_model(model)
    fitted.classifier.set_params(n_jobs=n_jobs)
    classes = [str(name) for name in fitted.classifier.classes_.tolist()]
    losses = None if loss is None else read_losses(loss, classes, encoding)
    frame = read_table(
        data, encoding, separator=sep, text=identifiers, kinds=fitted.kinds, sheet=sheet,
        missing=missing,
    )  # fmt: skip
    # Each once: every part of a model may say the same.
    notes = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    notes += frame.attrs["notes"]
    frame = name_categories(number_rows(frame), fitted.kinds)
    with naming_file(data.name):
        named = split_names(identifiers, frame.columns)
        for name in named:
            find_column(frame, name)
        found = predict_new(fitted, frame, level, losses, named)
    doubts = fitted.find_shifts(frame) + found.find_doubts(fitted.target)
    return found, notes + fitted.tell_gaps(frame), doubts


def _summarise(
    found: Predictions, notes: list[str], doubts: list[str], out: Path | None
) -> dict[str, Any]:
    """Sum the predictions up for a machine to read."""
    from bayesknn.report.results import finite_scores

    def count(numbers: Any) -> dict[str, int]:
        return {name: n for g, name in enumerate(found.names) if (n := int((numbers == g).sum()))}

    summary = {
        "rows": len(found.rows),
        "classes": count(found.winners),
        "decided": found.share_decided,
        "scores": finite_scores(found.scores) if found.scores else None,
        "unlike_training": found.n_unlike,
        "messages": notes,
        "warnings": doubts,
        "out": None if out is None else out.as_posix(),
    }
    return summary | ({} if found.loss is None else {"decisions": count(found.decide()[0])})


def _tell(
    found: Predictions, notes: list[str], doubts: list[str], out: Path | None, level: float
) -> None:
    """Sum the predictions up for a person to read."""
    from bayesknn.report.results import tell_scores

    if found.scores is not None:
        notes = [*notes, f"rows of known class: {tell_scores(found.scores)}"]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    for doubt in doubts:
        click.echo(f"warning: {doubt}", err=True)
    if out is not None:
        click.echo(f"{found.tell_decided(level)}: {out}")
