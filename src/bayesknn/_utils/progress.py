"""Progress of work that takes more than two seconds: a bar (rich), or a line in a log."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import is_installed

if TYPE_CHECKING:
    from rich.console import Console

# Seconds of work before a line is written to a log. Shorter ones fill logs with lines about work
# that is over when they are read; longer ones leave a reader in doubt whether anything happens.
_LOG_DELAY = 10.0


@contextmanager
def progress(
    description: str, total: float | None = None, *, verbose: int = 1, delay: float = 2.0
) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on standard error if the work outlasts ``delay``.

    Nothing is shown when ``verbose`` is 0 or standard error is closed. In a terminal and in a
    notebook there is a bar, which vanishes when the work ends; work within other work has its bar
    below that of the other. Elsewhere, and without rich, work of ten seconds writes its
    description as one line. Before the work starts, the logger ``bayesknn`` has the description,
    whatever ``verbose`` is.

    Parameters
    ----------
    description : str
        What is being done, as a person would say it: "Sampling".
    total : float, optional
        How many steps there are; ``None`` if that is not known.
    verbose : int, default=1
        0 for silence.
    delay : float, default=2.0
        Seconds of work before anything is shown.

    Yields
    ------
    advance : callable
        ``advance(steps)``: that many more steps are done; any thread may call it.
    """
    logging.getLogger("bayesknn").info("%s", description)
    # A process that is started without standard error has None in its place.
    if not verbose or sys.stderr is None:
        yield lambda steps: None
        return
    if not (sys.stderr.isatty() or _is_notebook()) or not is_installed("rich"):
        with _write_line(description, sys.stderr, max(delay, _LOG_DELAY)):
            yield lambda steps: None
        return
    from rich.progress import Progress

    # A notebook shows what is written to its own console, which rich finds.
    console = None if _is_notebook() else _open_console(sys.stderr)
    bars = Progress(console=console, transient=True)
    task = bars.add_task(description, total=total)
    # By a timer, so that the bar appears even while one long step is under way.
    timer = threading.Timer(delay, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda steps: bars.advance(task, steps)
    finally:
        timer.cancel()
        timer.join()
        if bars.live.is_started:
            bars.stop()


@contextmanager
def _write_line(description: str, stream: Any, delay: float) -> Iterator[None]:
    """Write a line to a log if the work in the block outlasts ``delay``."""

    def write() -> None:
        with suppress(ValueError, OSError):  # the log may be closed by now
            stream.write(f"{description} ...\n")
            stream.flush()

    timer = threading.Timer(delay, write)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _is_notebook() -> bool:
    """Whether IPython runs in a kernel, whose output is no terminal and shows bars all the same."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@lru_cache(maxsize=1)
def _open_console(stream: Any) -> Console:
    """Return the one console of a stream, which knows the bars of other work that is shown."""
    from rich.console import Console

    return Console(file=stream)
