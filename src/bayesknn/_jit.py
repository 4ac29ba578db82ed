"""How every kernel is compiled: numba, cached on disk where that is possible.

Exactness matters here, so there is no ``fastmath``: a sum is added in the order it is
written, and two kernels that write the same sum get the same bits.
"""

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable | None = None, /, **options: Any) -> Any:
    """Compile a function with :func:`numba.njit`, caching the machine code if it can.

    numba refuses to decorate with ``cache=True`` where neither the package's folder nor the
    user's cache folder can be written; there the function is compiled in every process.

    Parameters
    ----------
    function : callable, optional
        The function, when used as a plain decorator.
    **options
        Passed to :func:`numba.njit`.

    Examples
    --------
    >>> from bayesknn._jit import kernel
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
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return numba.njit(**options)(function)
