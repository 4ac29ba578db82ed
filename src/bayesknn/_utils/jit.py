"""How kernels are compiled, numba, cached on disk where that is possible, and run in threads.

Exactness matters here, so there is no ``fastmath``: a sum is added in the order it is
written, and two kernels that write the same sum get the same bits.

numba's cache looks at the file of a kernel and not at the modules it imports: who edits a helper
deletes the cache (``make clean``). An installation writes every file anew.
"""

import errno
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import types
from numba.core import event
from numba.extending import typeof_impl

from bayesknn._utils.progress import progress

__all__ = [
    "announce_compiling",
    "count_compiled",
    "find_cache",
    "hold_interrupts",
    "inline_kernel",
    "kernel",
    "one_blas_thread",
    "run_in_threads",
]

if TYPE_CHECKING:
    # Kernels are typed by numba; this is the one decorator that mypy leaves functions alone for.
    from typing import no_type_check as inline_kernel
    from typing import no_type_check as kernel
else:

    def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Compile a function with :func:`numba.njit`, caching the machine code if it can.

        numba refuses to decorate with ``cache=True`` where neither the package's folder nor the
        user's cache folder can be written; there the function is compiled in every process, as it
        is where the disk is full.

        Parameters
        ----------
        function : callable, optional
            The function, when used as a plain decorator.
        **options
            Passed to :func:`numba.njit`.

        Examples
        --------
        >>> from bayesknn._utils.jit import kernel
        >>> @kernel(nogil=True)
        ... def _double(x):
        ...     return 2 * x
        >>> _double(21)
        42
        """
        if function is None:
            return lambda function: kernel(function, **options)
        options.setdefault("nogil", True)
        try:
            return _Kernel(numba.njit(cache=True, **options)(function))
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            return numba.njit(**options)(function)

    def inline_kernel(function: Callable[..., Any]) -> Any:
        """Compile a function that is put into its callers before numba types them."""
        return kernel(function, inline="always")


class _Kernel:
    """A compiled function that runs where numba cannot write its cache because the disk is full.

    numba raises the error after it has compiled a function and before it calls it. The next call
    finds the function compiled, and so each call that fails leaves one more function compiled.

    Parameters
    ----------
    dispatcher : numba dispatcher
        What :func:`numba.njit` returns.
    """

    def __init__(self, dispatcher: Any):
        # With its attributes, by which numba puts an inline kernel into its callers.
        update_wrapper(self, dispatcher)
        self.dispatcher = dispatcher

    def __call__(self, *arguments: Any) -> Any:
        while True:
            try:
                return self.dispatcher(*arguments)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise


@typeof_impl.register(_Kernel)
def _type_kernel(value: _Kernel, _context: Any) -> Any:
    """Return the type by which a compiled function calls another."""
    return types.Dispatcher(value.dispatcher)


@contextmanager
def announce_compiling() -> Iterator[None]:
    """Show a bar from the first kernel that has to be compiled to the end of this work."""
    with ExitStack() as bar, event.install_listener("numba:compile", _Announcer(bar)):
        yield


class _Announcer(event.Listener):
    """Hears of every kernel that numba compiles, and of none that it reads from its cache."""

    def __init__(self, bar: ExitStack):
        self.bar = bar
        self.is_open = False

    def on_start(self, event: Any) -> None:
        if not self.is_open:
            self.is_open = True
            self.bar.enter_context(progress("Compiling, once after installation"))

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def count_compiled() -> Iterator["CompileClock"]:
    """Count the functions that numba compiles in the block, and their CPU seconds."""
    with event.install_listener("numba:compile", CompileClock()) as clock:
        yield clock


class CompileClock(event.Listener):
    """Functions that numba compiled, those that they call included, and the CPU seconds."""

    def __init__(self) -> None:
        self.n_functions, self.seconds = 0, 0.0
        self._depth, self._begin = 0, 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begin = time.process_time()
        self._depth += 1
        self.n_functions += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.process_time() - self._begin


def find_cache() -> Path | None:
    """Return the folder of the compiled functions of this module; None if none can be written."""
    try:
        folder = numba.njit(cache=True)(find_cache).stats.cache_path
    except RuntimeError:
        return None
    return None if folder is None else Path(folder)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; a second one does not wait.

    A SIGINT that arrives while a kernel returns crashes numba. Other threads never hear it, and
    nothing is done there.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        held.append((number, frame))
        if len(held) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        before(*held[0])


def run_in_threads(
    function: Callable[[int, int], object],
    n_items: int,
    chunk: int,
    n_jobs: int | None,
    advance: Callable[[float], object] | None = None,
) -> None:
    """Call ``function(start, stop)`` over ``range(n_items)`` in chunks.

    Kernels release the interpreter.

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
    >>> from bayesknn._utils.jit import run_in_threads
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
    return _find_libraries().limit(limits=1, user_api="blas")


@cache
def _find_libraries() -> Any:
    """Return the controller of the loaded BLAS libraries; to look for them takes 3 ms each time."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
