"""Progress bars for work that takes more than two seconds (rich), and silence otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import is_installed

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def progress(
    description: str, total: float | None = None, *, verbose: int = 1, delay: float = 2.0
) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on standard error if the work outlasts ``delay``.

    Nothing is shown when ``verbose`` is 0, standard error is closed or no terminal, or rich is not
    installed. The bar vanishes when the work ends. Before the work starts, the logger ``bayesknn``
    has the description, whatever ``verbose`` is.
    Work within other work has its bar below that of the other.

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
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (verbose and is_terminal and is_installed("rich")):
        yield lambda steps: None
        return
    from rich.progress import Progress

    bars = Progress(console=_open_console(sys.stderr), transient=True)
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


@lru_cache(maxsize=1)
def _open_console(stream: Any) -> Console:
    """Return the one console of a stream, which knows the bars of other work that is shown."""
    from rich.console import Console

    return Console(file=stream)
