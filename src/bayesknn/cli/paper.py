"""``bayesknn paper``: every figure, table and number of the paper beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesknn.cli.errors import Command, debug_option, read_jobs

if TYPE_CHECKING:
    from bayesknn.paper.run import Outcome


class _Continued(Command):
    """A command whose finished parts stay in its folder."""

    kept = "finished items are kept in --out, and the same command continues from there"


@click.command(
    "paper", cls=_Continued, short_help="Reproduce every figure, table and number of the paper."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("paper-output"),
    show_default=True,
    help="Folder for the results, made if missing; an earlier run there is continued.",
)
@click.option("--quick", "budget", flag_value="quick", default="quick", help="Minutes (default).")
@click.option("--full", "budget", flag_value="full", help="As many iterations as the paper.")
@click.option("--tiny", "budget", flag_value="tiny", hidden=True)
@click.option(
    "--only", "ids", multiple=True, metavar="ID", help="One item, such as fig:levelset; repeatable."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Same seed, same results.")
@click.option("--jobs", type=read_jobs, default="-1", metavar="N", help="Threads; all by default.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--force", is_flag=True, help="Compute again what is there; write to any folder.")
@click.option("--list", "show_list", is_flag=True, help="List the ids and stop.")
@debug_option
def paper(
    budget: str, ids: tuple[str, ...], jobs: int, quiet: bool, show_list: bool, **options: Any
) -> None:
    """Reproduce the paper: figures, tables and numbers beside the published ones.

    Writes index.html, comparison.csv, comparison.json and the figures to --out. What is finished
    is kept there, so that an interrupted run can be continued.
    """
    if show_list:
        _print_list(budget)
        return
    from bayesknn.paper.run import find_items, run_paper

    items = find_items(ids or None)
    if not quiet:
        click.echo(f"{len(items)} items of the paper, {budget} budget, seed {options['seed']}")
    report = None if quiet else _print_outcome
    outcome = run_paper(
        budget=budget,
        only=ids or None,
        n_jobs=jobs,
        verbose=not quiet,
        report=report,
        **options,
    )
    if not quiet:
        _print_summary(outcome)


def _print_list(budget: str) -> None:
    from bayesknn.paper.run import find_items
    from bayesknn.paper.setting import BUDGETS

    for item in find_items():
        numbers = ", ".join(f"{name} {getattr(BUDGETS[budget], name)}" for name in item.budget)
        click.echo(f"{item.id:22s} {item.title} ({item.where}){numbers and '; ' + numbers}")


def _print_outcome(outcome: Outcome) -> None:
    from bayesknn.paper.comparison import NOT_PUBLISHED

    time = f"{outcome.seconds:6.1f} s" if outcome.is_new else "    kept"
    verdicts = [row.verdict for row in outcome.rows if row.verdict != NOT_PUBLISHED]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    click.echo(f"{time}  {outcome.item.id:22s} {counts or 'nothing published'}")


def _print_summary(outcome: Any) -> None:
    from bayesknn.paper.comparison import DIFFERENCES
    from bayesknn.paper.run import count_verdicts

    for name, counts in count_verdicts(outcome.rows).items():
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        click.echo(f"{name}: {listed}")
    for row in outcome.rows:
        if row.verdict in DIFFERENCES:
            click.echo(f"  {row.verdict}: {row.id}, {row.what}: {row.explanation}")
    click.echo(f"Page: {outcome.page}")
