"""Progress bars for work that takes more than two seconds (rich), and silence otherwise."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import is_installed

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY = 2.0


@contextmanager
def progress(
    description: str, total: float | None = None, *, verbose: int = 1, delay: float = DELAY
) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on standard error if the work outlasts ``delay``.

    Nothing is shown when ``verbose`` is 0, standard error is not a terminal or rich is not
    installed; rich is not even imported unless a bar appears. The bar vanishes when the work ends.
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
    if not verbose or not sys.stderr.isatty():
        yield lambda steps: None
        return
    bar = _DelayedBar(description, total, delay)
    try:
        yield bar.advance
    finally:
        bar.close()


class _DelayedBar:
    """A rich bar that a timer opens, so that it appears even while one long step is under way."""

    def __init__(self, description: str, total: float | None, delay: float):
        self.description = description
        self.total = total
        self.done = 0.0
        self.bar: Progress | None = None
        self.lock = threading.Lock()
        self.closed = False
        self.timer = threading.Timer(delay, self.open)
        self.timer.daemon = True
        self.timer.start()

    def open(self) -> None:
        with self.lock:
            if not self.closed and is_installed("rich"):
                self.bar, self.task = _join(self.description, self.total, self.done)

    def advance(self, steps: float) -> None:
        with self.lock:
            self.done += steps
            if self.bar is not None:
                self.bar.update(self.task, completed=self.done)

    def close(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.closed = True
            if self.bar is not None:
                _leave(self.bar, self.task)
                self.bar = None


# The bars that are shown: a terminal has room for one set of them.
_shown: list[Progress] = []
_shown_lock = threading.Lock()


def _join(description: str, total: float | None, done: float) -> tuple[Progress, Any]:
    """Add a bar to the set of bars, which is shown from the first one on."""
    with _shown_lock:
        if not _shown:
            _shown.append(_make_bars())
            _shown[0].start()
        task = _shown[0].add_task(description, total=total)
        _shown[0].update(task, completed=done)
        return _shown[0], task


def _leave(bars: Progress, task: Any) -> None:
    """Take a bar off the screen, and the set of bars with its last one."""
    with _shown_lock:
        bars.remove_task(task)
        if not bars.tasks:
            bars.stop()
            _shown.clear()


def _make_bars() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn("{task.percentage:3.0f} %", "{task.completed:g}"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
