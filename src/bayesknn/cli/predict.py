"""``bayesknn predict``: new rows through a saved model."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesknn.cli.errors import (
    FILE,
    FORM,
    Command,
    common_options,
    model_options,
    print_json,
    print_lines,
    print_remarks,
    print_table,
    read_proportion,
    take,
)

if TYPE_CHECKING:
    from bayesknn.model_file.predictions import Predictions
    from bayesknn.tables.remarks import Remark


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--out",
    type=FILE,
    help="A file ending in .csv, or a folder for predictions.csv; standard output by default.",
)
@click.option("--force", is_flag=True, help="Replace what is at --out.")
@click.option(
    "--id",
    "identifiers",
    multiple=True,
    metavar="COLUMN",
    help="Identifier of the rows, written beside the predictions; may be repeated.",
)
@click.option(
    "--loss",
    type=FILE,
    metavar="FILE.csv",
    help="What a wrong decision costs: a row for each true class, a column for each decision.",
)
@click.option(
    "--threshold",
    type=read_proportion,
    metavar="CLASS=P",
    help="Decide for one of two classes where its probability is at least P.",
)
@model_options
@common_options
def predict(
    model: Path, data: Path, out: Path | None, force: bool, quiet: bool, as_json: bool, **given: Any
) -> None:
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
    from bayesknn._utils.paths import check_readable, find_model
    from bayesknn.report.folder import require_packages, write_file

    if given["loss"] is not None and given["threshold"] is not None:
        raise click.UsageError("--loss and --threshold both decide; take one away")
    find_model(model)
    require_packages("pandas", "skops")
    for path in (data, given["loss"]):
        if path is not None:
            check_readable(path)
    place: AbstractContextManager[Path | None] = nullcontext()
    if out is not None:
        file = out if out.suffix.lower() == ".csv" else out / "predictions.csv"
        place = write_file(file, force=force)
    with place as target:
        from bayesknn._utils.progress import progress
        from bayesknn.model_file.predictions import write_csv

        with progress("Predicting", verbose=not (quiet or as_json)):
            predictions, remarks = _predict(model, data, given)
            text = write_csv(predictions)
        if target is not None:
            target.write_text(text, encoding="utf-8", newline="")
        elif not as_json:
            print_table(text)
    from bayesknn.tables.remarks import to_json

    scores = predictions.scores
    if as_json:
        summary = {
            "rows": len(predictions.rows),
            "classes": predictions.count(predictions.winners),
            "decided": predictions.share_decided,
            "scores": scores.to_json() if scores else None,
            "weights": predictions.weighting,
            "unlike_training": predictions.n_unlike,
            **to_json(remarks),
            "out": None if out is None else out.as_posix(),
        }
        if predictions.loss is not None:
            summary["decisions"] = predictions.count(predictions.decide()[0])
        print_json(summary)
    elif not quiet:
        if scores is not None:
            parts = [f"note: rows of known class: {scores}", predictions.weighting]
            print_lines(["; ".join(filter(None, parts))], err=True)
        print_remarks(remarks)
        if out is not None:
            print_lines([f"{predictions.describe_decided(given['level'])}: {out}"])


def _predict(model: Path, data: Path, options: dict[str, Any]) -> tuple[Predictions, list[Remark]]:
    """Return the predictions, and what there is to know about the table."""
    from bayesknn._utils.checks import check_level
    from bayesknn.model_file.predictions import (
        doubt_losses,
        predict_new,
        read_losses,
        threshold_losses,
    )
    from bayesknn.model_file.saved import load_model
    from bayesknn.tables.files import read_table
    from bayesknn.tables.remarks import check_codes, leave_out, on_table

    check_level(options["level"])
    ignored = check_codes(options["ignore"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # another version wrote it
        fitted = load_model(model)
    fitted.classifier_.set_params(n_jobs=options["n_jobs"])
    losses, classes = None, [str(name) for name in fitted.classes_.tolist()]
    remarks = [on_table("file", " ".join(str(each.message).split())) for each in caught]
    if options["loss"] is not None:
        losses = read_losses(options["loss"], classes, options["encoding"])
        remarks += doubt_losses(losses, classes)
    elif options["threshold"] is not None:
        losses = threshold_losses(classes, *options["threshold"])
    table = read_table(data, **take(options, FORM))
    level, identifiers = options["level"], options["identifiers"]
    predictions = predict_new(fitted, table, level, losses, identifiers)
    remarks += [*table.remarks, *predictions.examine(fitted, table)]
    return predictions, leave_out(remarks, ignored)
