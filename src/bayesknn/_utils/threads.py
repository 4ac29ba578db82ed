"""Compiled kernels in threads, and the BLAS without any.

Kernels release the interpreter, and each writes its own columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def run_in_threads(
    function: Callable[[int, int], object],
    n_items: int,
    chunk: int,
    n_jobs: int | None,
    advance: Callable[[float], object] | None = None,
) -> None:
    """Call ``function(start, stop)`` over ``range(n_items)`` in chunks.

    Parameters
    ----------
    function : callable
        Must write its results where no other chunk writes.
    n_items, chunk : int
        Chunks also bound how long Ctrl-C waits, so they are used with one thread too.
    n_jobs : int, optional
        As in joblib; None is one thread unless a ``joblib.parallel_config`` says otherwise.
    advance : callable, optional
        Called with the size of each chunk that is done.

    Examples
    --------
    >>> from bayesknn._utils.threads import run_in_threads
    >>> squares = [0] * 5
    >>> def fill(start, stop):
    ...     squares[start:stop] = [i * i for i in range(start, stop)]
    >>> run_in_threads(fill, 5, 2, n_jobs=2)
    >>> squares
    [0, 1, 4, 9, 16]
    """
    from joblib import Parallel, delayed, effective_n_jobs

    def run(start: int) -> None:
        stop = min(start + chunk, n_items)
        function(start, stop)
        if advance is not None:
            advance(stop - start)

    starts = range(0, n_items, chunk)
    if len(starts) == 1 or effective_n_jobs(n_jobs) == 1:
        for start in starts:
            run(start)
        return
    Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(run)(start) for start in starts)


def one_blas_thread() -> Any:
    """Return a context in which the BLAS uses one thread: on small matrices more of them wait."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
