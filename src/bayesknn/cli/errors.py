"""How a command ends: with exit code 0, or with one line on what was wrong.

Exit codes: 0 all is well, 1 something is missing on this machine or went wrong in it, 2 the
command or the data cannot be used as they are, 130 the work was interrupted (Ctrl-C).
"""

from __future__ import annotations

import errno
import json
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bayesknn.tables.remarks import Remark

# Characters that a terminal obeys: control characters, line separators and marks of direction.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

debug_option = click.option("--debug", is_flag=True, help="Show where an error comes from.")


class Refusal(click.ClickException):
    """One line on why a command will not run, and exit code 2 as for any other misuse."""

    exit_code = 2


class Interrupted(click.ClickException):
    """Ctrl-C, with the exit code that shells give it."""

    exit_code = 130


def as_line(error: BaseException, kept: str, advice: str) -> click.ClickException:
    """Return an error as one line with its exit code.

    ``kept`` is what an interrupt leaves, and ``advice`` is added where memory ran out.
    """
    from bayesknn.exceptions import CoalescenceError

    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return Interrupted(f"interrupted; {kept}")
    if isinstance(error, MemoryError):
        text = f"there is not enough memory{advice}"
    elif isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        text = f"{error.strerror or error}{place}"
    elif not isinstance(error, ValueError | ModuleNotFoundError | CoalescenceError):
        text = (
            f"internal error, a fault of bayesknn ({type(error).__name__}: {text}); --debug shows "
            "where it is"
        )
    if isinstance(error, ValueError):
        return Refusal(make_plain(text))
    return click.ClickException(make_plain(text))


def make_plain(text: str) -> str:
    r"""Return text with every character that a terminal obeys as an escape.

    Examples
    --------
    >>> from bayesknn.cli.errors import make_plain
    >>> print(make_plain("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, which may hold names and values of somebody's table."""
    for line in lines:
        click.echo(make_plain(line), err=err)


def print_table(text: str) -> None:
    """Print a CSV table: as it is to a file or program, with escapes to a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        print_lines(text.splitlines())
    else:
        # Without color=True click removes escape sequences from the cells.
        click.echo(text, nl=False, color=True)


@contextmanager
def _watch_interrupts() -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C, whoever catches the exception that it raises."""
    seen: list[int] = []

    def stop_if_interrupted() -> None:
        if seen:
            raise KeyboardInterrupt

    def remember(number: int, frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    report = sys.unraisablehook

    def report_but_interrupts(ignored: Any) -> None:
        # Raised in the middle of a callback it stops nothing; Python would say so at length.
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            report(ignored)

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield stop_if_interrupted
        return
    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = report_but_interrupts
    try:
        yield stop_if_interrupted
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGINT, before or signal.default_int_handler)


def read_jobs(value: str) -> int:
    """Read a number of threads, or -1 for all cores."""
    # More than any machine has; beyond it the system runs out of threads.
    if value != "-1" and not (value.isdecimal() and 1 <= int(value) <= 1024):
        raise click.BadParameter(
            f"{value} is not a number of threads: pass 1 to 1,024, or -1 for all cores"
        )
    return int(value)


def read_separator(value: str) -> str:
    """Read one character, or ``tab``."""
    character = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(character) != 1 or character.isalnum() or character in '"\n\r.+-':
        raise click.BadParameter(f"{value!r} separates no fields: pass one character, or tab")
    return character


def read_proportion(value: str) -> tuple[str, float]:
    """Read ``CLASS=PROPORTION``."""
    name, _, share = value.rpartition("=")
    try:
        return name, float(share)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not of the form CLASS=PROPORTION") from None


# Options that several commands have.
FILE = click.Path(path_type=Path)


def together(*options: Any) -> Any:
    """Return a decorator that adds options to a command, listed by ``--help`` in this order."""
    return lambda command: reduce(lambda to, option: option(to), options[::-1], command)


# Options of all commands on tables. Those on reading have the names of parameters of read_table.
common_options = together(
    click.option("--encoding", help="Encoding of the CSV files (default UTF-8)."),
    click.option(
        "--sep",
        "separator",
        type=read_separator,
        metavar="CHARACTER",
        help="Field separator; detected automatically by default.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of the Excel files (default: the first)."),
    click.option(
        "--na",
        "missing",
        multiple=True,
        metavar="TEXT",
        help='What else stands for a missing value, such as "?"; may be repeated.',
    ),
    click.option(
        "--header-row",
        type=click.IntRange(1),
        help="Row of a CSV or Excel file that has the names of the columns (default: the first).",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="CODE",
        help="Leave out a note or warning by the code that --json gives it; may be repeated.",
    ),
    click.option("--quiet", is_flag=True, help="Print neither notes nor a summary."),
    click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON, nothing else."),
    debug_option,
)
# Options of ``fit`` and ``predict``.
model_options = together(
    click.option(
        "--level", type=float, default=0.95, help="Level of the intervals (default 0.95)."
    ),
    click.option(
        "--jobs",
        "n_jobs",
        type=read_jobs,
        metavar="INTEGER",
        help="Threads, -1 for all cores; no result depends on it.",
    ),
)

# Columns, for options that name one or several.
columns_option = partial(click.option, multiple=True, metavar="A,B,C")
column_option = partial(click.option, default="", metavar="COLUMN")


# Options of ``fit`` and ``check``, with the names of parameters of TablePreparer.
preparer_options = together(
    columns_option("--drop", help="Leave columns out; may be repeated."),
    columns_option("--keep", help="Use columns that look like identifiers."),
    columns_option("--categorical", help="Treat columns of numbers as categories."),
    columns_option(
        "--numeric", help="Read columns of text, such as codes with leading zeros, as numbers."
    ),
    click.option(
        "--id",
        "identifiers",
        multiple=True,
        metavar="COLUMN",
        help="Identifier of the rows: not used, but written beside the predictions; may be "
        "repeated. Columns that look like identifiers are written too.",
    ),
    click.option(
        "--date-order",
        type=click.Choice(["year", "month", "day"]),
        default=None,
        help="What comes first in dates that can be read in two ways.",
    ),
    click.option(
        "--rare",
        type=click.Choice(["drop", "merge", "error"]),
        default="drop",
        help="Classes with a single row: leave them out (default), make them one class, or "
        "reject the table.",
    ),
)
# Which of a command's options are parameters of read_table, and which of TablePreparer.
FORM = ("encoding", "separator", "sheet", "missing", "header_row")
COLUMNS = ("drop", "keep", "categorical", "numeric", "identifiers", "date_order", "ignore")


def take(options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command that have these names."""
    return {name: options[name] for name in names}


class Command(click.Command):
    """A command that knows how it was called, and that ends in one line where it fails.

    ``ctx.meta["command"]`` does the same again, without what changes only what is printed.
    ``ctx.obj()`` is to be called when work is done and before anything is written: chains answer
    Ctrl-C with what they have, which is not the result that was asked for.

    Attributes
    ----------
    kept : str
        What an interrupted command leaves behind, for the message.
    """

    kept = "nothing was written"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words, which are kept."""
        words, kept = iter(args), ["bayesknn", str(ctx.info_name)]
        for word in words:
            if word == "--jobs":
                next(words, None)
            elif word.partition("=")[0] not in (
                "--force",
                "--quiet",
                "--json",
                "--debug",
                "--jobs",
            ):
                kept.append(word)
        ctx.meta["command"] = shlex.join(kept)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error is one line, after its traceback if that is asked for."""
        debug = ctx.params.pop("debug")
        try:
            with _watch_interrupts() as ctx.obj, warnings.catch_warnings():
                warnings.showwarning = partial(_show_warning, warnings.showwarning)
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of our output has left; click ends quietly
            if debug:
                click.echo(traceback.format_exc(), err=True, nl=False)
            is_fit = any(each.name == "max_neighbors" for each in self.params)
            advice = "; a smaller --max-neighbors needs less" if is_fit else ""
            raise as_line(error, self.kept, advice) from None


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print what there is to know of a table, and what a reader must know before trusting it."""
    from bayesknn.tables.remarks import NOTE, WARNING, tell

    for severity in (NOTE, WARNING):
        print_lines((f"{severity}: {text}" for text in tell(remarks, severity)), err=True)


def _show_warning(
    otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any
) -> None:
    """Print a warning of the library as a line; those of Python and NumPy keep their place."""
    if issubclass(category, UserWarning):
        print_lines([f"warning: {' '.join(str(message).split())}"], err=True)
    else:
        otherwise(message, category, *where)


def print_json(summary: dict[str, Any]) -> None:
    """Print a summary for a machine to read."""
    click.echo(json.dumps(summary, indent=2, allow_nan=False))
