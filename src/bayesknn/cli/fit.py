"""``bayesknn fit``: a table in; predictions, posterior, model and report out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bayesknn._utils.extras import LIKELIHOOD_NAMES, SEARCHES
from bayesknn.cli.errors import (
    COLUMNS,
    FILE,
    FORM,
    Command,
    column_option,
    common_options,
    model_options,
    preparer_options,
    print_json,
    print_lines,
    print_remarks,
    read_proportion,
    take,
)

# Options by whose parameters they are: of either classifier, of the paper's.
_OF_BOTH = ("max_neighbors", "search", "random_state", "n_jobs")
_OF_POSTERIOR = (
    "inference", "label_sampler", "metric", "beta_max", "n_chains", "n_draws", "n_warmup",
)  # fmt: skip
# Those of :func:`analyse` itself, and of TablePreparer.
_OF_ANALYSIS = (
    "model", "level", "compared", "group", "time", "weights", "rare", "scale", "impute", *COLUMNS,
)  # fmt: skip


def _read_beta_max(value: str) -> float | str:
    """Read a number, or ``auto``."""
    try:
        return value if value == "auto" else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor auto") from None


def _choice(option: str, choices: Sequence[str], help: str) -> Any:
    """Return an option that takes one of some words, the first by default."""
    return click.option(option, type=click.Choice(choices), default=choices[0], help=help)


@click.command(cls=Command)
@click.argument("train", type=FILE)
@click.option("--target", required=True, metavar="COLUMN", help="The column of the classes.")
@click.option("--out", required=True, type=FILE, help="Folder to write; made if missing.")
@click.option("--test", type=FILE, help="Rows to predict, with or without the target.")
@click.option("--force", is_flag=True, help="Replace an earlier result in --out.")
@preparer_options
@column_option(
    "--group",
    help="Rows that belong together, such as those of a patient: fit for rows of new groups, and "
    "score by whole groups; the column itself is not used.",
)
@column_option(
    "--time",
    help="Dates or numbers: also evaluate on the last fifth of the rows, predicted from those "
    "before.",
)
@column_option(
    "--weights",
    help="Weights of the training rows, for the default model; 0 or more. The column is not read "
    "in other tables: their rows are scored without it.",
)
@click.option(
    "--scale/--no-scale",
    default=True,
    help="Standardise numbers (default) or not; for the paper's models.",
)
@click.option(
    "--impute",
    is_flag=True,
    help="For the paper's models: fill missing numbers with the median, and make missing "
    "categories a category. The default model always fills missing numbers, with the mean.",
)
@_choice(
    "--search",
    SEARCHES,
    "How to search for neighbours; the answer is the same.",
)
@click.option(
    "--metric",
    default="euclidean",
    help="Distance, for the paper's models; gower takes numbers and categories as they are.",
)
@_choice(
    "--model",
    ["pooled", *LIKELIHOOD_NAMES],
    "pooled (default): an ensemble of nearest neighbours, logistic regressions and boosted "
    "trees, as a rule the best probabilities. The others are the paper's models, with the "
    "posterior of beta and k.",
)
@click.option(
    "--compare/--no-compare",
    "compared",
    default=True,
    help="Compare with other classifiers (default) or not.",
)
@_choice(
    "--inference",
    ["auto", "grid", "metropolis", "auxiliary", "exchange"],
    "How the posterior is computed.",
)
@_choice(
    "--label-sampler",
    ["swendsen-wang", "perfect", "gibbs"],
    "How labels are drawn in the auxiliary and exchange chains.",
)
@click.option(
    "--max-neighbors",
    type=int,
    help="Largest k to consider (default of the paper's models: about half a typical class).",
)
@click.option(
    "--beta-max",
    type=_read_beta_max,
    metavar="NUMBER|auto",
    default="auto",
    help="Largest strength beta to consider.",
)
@click.option(
    "--class-prior",
    type=read_proportion,
    metavar="CLASS=PROPORTION",
    multiple=True,
    help="True proportion of a class, if it differs from the table's; repeat for each class.",
)
@click.option("--chains", "n_chains", default=4, help="Number of chains (default 4).")
@click.option("--draws", "n_draws", default=5000, help="Draws per chain (default 5000).")
@click.option(
    "--warmup", "n_warmup", default=1000, help="Warm-up draws per chain, discarded (default 1000)."
)
@click.option(
    "--seed",
    "random_state",
    type=click.IntRange(0, 2**32 - 1),  # what scikit-learn takes
    default=0,
    help="The same seed gives the same files.",
)
@model_options
@common_options
@click.pass_context
def fit(
    ctx: click.Context, /, out: Path, force: bool, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Fit a table (.csv, .csv.gz, .xlsx, .parquet), and predict classes with their uncertainty.

    Writes predictions.csv (of the --test rows or, by leave-one-out, of the training rows),
    model.skops, report.html and, for the paper's models, posterior.nc to the folder --out: all of
    them or none.

    Columns that are constant or identify rows are left out, and so are rows without a class; a
    note says so. Dates are measured in days. Numbers such as 12,345.67 or $5 are read as numbers.

    Missing values: the default model (pooled) fills missing numbers with the mean and makes
    missing categories a category. With the paper's models a missing value is an error unless
    --impute is given. They also standardise numbers and one-hot encode categories; beyond 20
    categories, the rarest are merged.
    """
    from bayesknn._utils.paths import check_readable
    from bayesknn._utils.progress import progress
    from bayesknn.report import folder as output

    # What cannot work is refused first.
    if options["weights"] and options["model"] != "pooled":
        raise click.UsageError("--weights is an option of the default model, the pool")
    of_paper = (*_OF_POSTERIOR, "scale", "impute")
    others = [each for each in ctx.command.params if each.name in of_paper]
    for option in others if options["model"] == "pooled" else ():
        if ctx.get_parameter_source(str(option.name)) is not click.core.ParameterSource.DEFAULT:
            words = option.secondary_opts if options[str(option.name)] is False else option.opts
            raise click.UsageError(
                f"{words[0]} is an option of the paper's models, not of the pool: pass "
                "--model coherent with it, or leave it out"
            )
    tables = [path for path in (options["train"], options["test"]) if path is not None]
    for path in tables:
        check_readable(path)
    output.require_packages(*output.PACKAGES)
    command, stop_if_interrupted = ctx.meta["command"], ctx.obj
    verbose = not (quiet or as_json)
    with (
        output.write_folder(out, force=force, own=output.FILES) as folder,
        # Python itself has taken a moment by now.
        progress("Fitting, predicting and writing the report", verbose=verbose, delay=1.0),
    ):
        analysis = _analyse(verbose=verbose, **options)
        stop_if_interrupted()
        if verbose:
            print_remarks(analysis.remarks)
        output.write_results(folder, analysis, out, command, tables)
        stop_if_interrupted()
    from bayesknn.report.analysis import describe, summarise

    if as_json:
        files = {name: (out / name).as_posix() for name in output.FILES if (out / name).exists()}
        print_json({"command": command, **summarise(analysis), "files": files})
    elif not quiet:
        print_lines([*describe(analysis), f"Report: {out / 'report.html'}"])


def _analyse(verbose: bool, **options: Any) -> Any:
    from bayesknn._utils.checks import check_level
    from bayesknn.report.analysis import analyse
    from bayesknn.tables.files import read_table

    check_level(options["level"])
    form = take(options, FORM)
    train = read_table(options["train"], **form)
    test = None if options["test"] is None else read_table(options["test"], **form)
    of_model = () if options["model"] == "pooled" else _OF_POSTERIOR
    settings = take(options, (*_OF_BOTH, *of_model))
    settings |= {"class_prior": dict(options["class_prior"]), "verbose": int(verbose)}
    return analyse(train, options["target"], test, settings=settings, **take(options, _OF_ANALYSIS))
