"""How a command ends: with exit code 0, or with one line on what was wrong.

Exit codes: 0 all is well, 1 something is missing on this machine or went wrong in it, 2 the
command or the data cannot be used as they are, 130 the work was interrupted (Ctrl-C).
"""

from __future__ import annotations

import errno
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

debug_option = click.option("--debug", is_flag=True, help="Show where an error comes from.")


class Refusal(click.ClickException):
    """One line on why a command will not run, and exit code 2 as for any other misuse."""

    exit_code = 2


class Interrupted(click.ClickException):
    """Ctrl-C, with the exit code that shells give it."""

    exit_code = 130


@contextmanager
def one_line_errors(debug: bool = False) -> Iterator[Callable[[], None]]:
    """Turn errors into one line; the traceback is shown before it if asked for.

    Parameters
    ----------
    debug : bool, default=False
        Whether to show tracebacks.

    Yields
    ------
    stop_if_interrupted : callable
        To be called when work is done and before anything is written: chains answer Ctrl-C with
        what they have, which is not the result that was asked for.
    """
    try:
        with _watch_interrupts() as stop_if_interrupted:
            yield stop_if_interrupted
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise  # the reader of our output has left; click ends quietly
        if debug:
            click.echo(traceback.format_exc(), err=True, nl=False)
        raise _as_line(error) from None


def _as_line(error: BaseException) -> click.ClickException:
    from bayesknn.exceptions import CoalescenceError

    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted; nothing was written")
    if isinstance(error, ValueError):
        return Refusal(text)
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        return click.ClickException(f"{error.strerror or error}{place}")
    if isinstance(error, MemoryError):
        return click.ClickException(
            "there is not enough memory for this table; --max-neighbors makes it smaller"
        )
    if isinstance(error, ModuleNotFoundError | CoalescenceError):
        return click.ClickException(text)
    return click.ClickException(
        f"internal error, a fault of bayesknn ({type(error).__name__}: {text}); --debug shows "
        "where it is"
    )


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

    tell = sys.unraisablehook

    def tell_but_interrupts(ignored: Any) -> None:
        # Raised in the middle of a callback it stops nothing; Python would say so at length.
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            tell(ignored)

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield stop_if_interrupted
        return
    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = tell_but_interrupts
    try:
        yield stop_if_interrupted
    finally:
        sys.unraisablehook = tell
        signal.signal(signal.SIGINT, before or signal.default_int_handler)


def read_jobs(value: str) -> int:
    """Read a number of threads, or -1 for all cores."""
    try:
        jobs = int(value)
    except ValueError:
        jobs = 0
    # More than any machine has; beyond it the system runs out of threads.
    if jobs != -1 and not 1 <= jobs <= 1024:
        raise click.BadParameter(
            f"{value} is not a number of threads: pass 1 to 1,024, or -1 for all cores"
        )
    return jobs


def read_separator(value: str) -> str:
    """Read one character, or ``tab``."""
    found = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(found) != 1 or found.isalnum() or found in '"\n\r.+-':
        raise click.BadParameter(f"{value!r} separates no fields: pass one character, or tab")
    return found


# Options that several commands have.
FILE = click.Path(path_type=Path)
encoding_option = click.option("--encoding", help="Encoding of the CSV files (default UTF-8).")
separator_option = click.option(
    "--sep",
    type=read_separator,
    metavar="CHARACTER",
    help="Field separator; detected automatically by default.",
)
sheet_option = click.option(
    "--sheet", metavar="NAME", help="Sheet of the Excel files (default: the first)."
)
missing_option = click.option(
    "--na",
    "missing",
    multiple=True,
    metavar="TEXT",
    help='What else stands for a missing value, such as "?"; may be repeated.',
)
level_option = click.option(
    "--level", type=float, default=0.95, help="Level of the intervals (default 0.95)."
)
jobs_option = click.option(
    "--jobs",
    "n_jobs",
    type=read_jobs,
    metavar="INTEGER",
    help="Threads, -1 for all cores; no result depends on it.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print a summary as JSON, nothing else."
)


def repeat_command(ctx: click.Context, leave_out: tuple[str, ...]) -> str:
    """Return the command that does the same again, each option that was given in full.

    Parameters
    ----------
    ctx : click.Context
        Of the command under way.
    leave_out : tuple of str
        Parameters that change what is printed, not what is done.
    """
    words = ["bayesknn", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value = ctx.params.get(name)
        source = ctx.get_parameter_source(name)
        if name in leave_out or value is None or source is click.core.ParameterSource.DEFAULT:
            continue
        words += _as_words(parameter, value)
    return shlex.join(words)


def _as_words(parameter: click.Parameter, value: Any) -> list[str]:
    if isinstance(parameter, click.Argument):
        return [_text(value)]
    option = parameter.opts[0]
    if isinstance(value, bool):
        return [option if value else parameter.secondary_opts[0]]
    if parameter.nargs > 1:
        return [option, *map(_text, value)]
    if getattr(parameter, "multiple", False):
        return [word for part in value for word in (option, _text(part))]
    return [option, _text(value)]


def _text(value: Any) -> str:
    return value.as_posix() if isinstance(value, Path) else str(value)
