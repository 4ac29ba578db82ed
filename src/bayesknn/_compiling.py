"""A bar while kernels are compiled, which the first use of each does once.

Not in ``_jit.py``: the machine code of every kernel is valid for what is written there.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event

from bayesknn import _progress


class CompilationBar(event.Listener):
    """Is told by numba when a compilation starts and ends; those inside others are not counted.

    As with every bar, nothing is shown before two seconds nor where standard error is not a
    terminal.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._bar: _progress._DelayedBar | None = None
        self._closing: threading.Timer | None = None
        self._lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        """Show the bar, if there is none."""
        with self._lock:
            self._depth += 1
            if self._depth > 1 or not sys.stderr.isatty():
                return
            if self._closing is not None:
                self._closing.cancel()
            if self._bar is None:
                text = "Compiling, once; kernels done:"
                self._bar = _progress._DelayedBar(text, None, _progress.DELAY)

    def on_end(self, event: Any) -> None:
        """Count, and take the bar away if no other compilation follows soon."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._bar is not None:
                self._bar.advance(1)
                self._closing = threading.Timer(_progress.DELAY, self._close)
                self._closing.daemon = True
                self._closing.start()

    def _close(self) -> None:
        with self._lock:
            if self._depth == 0 and self._bar is not None:
                self._bar.close()
                self._bar = None


event.register("numba:compile", CompilationBar())
