"""How a command ends: with exit code 0, or with one line on what was wrong.

Exit codes: 0 all is well, 1 something is missing on this machine or the work was interrupted, 2
the command or the data cannot be used as they are.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


class Refusal(click.ClickException):
    """One line on why a command will not run, and exit code 2 as for any other misuse."""

    exit_code = 2


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the errors that are written for the person with the data into one line."""
    try:
        yield
    except ValueError as error:
        raise Refusal(" ".join(str(error).split())) from None
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        raise click.ClickException(f"{error.strerror or error}{place}") from None
    except MemoryError:
        raise click.ClickException(
            "there is not enough memory for this table; --max-neighbors makes it smaller"
        ) from None
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from None


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
