"""How every kernel is compiled: numba, cached on disk where that is possible.

Exactness matters here, so there is no ``fastmath``: a sum is added in the order it is
written, and two kernels that write the same sum get the same bits.

numba's cache looks at the file of a kernel and not at the modules it imports: who edits a helper
deletes the cache (``make clean``). An installation writes every file anew.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

# Folders that hold the machine code of the kernels imported so far.
_CACHES: set[str] = set()


if TYPE_CHECKING:
    # Kernels are typed by numba; this is the one decorator that mypy leaves functions alone for.
    from typing import no_type_check as inline_kernel
    from typing import no_type_check as kernel
else:

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
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            return numba.njit(**options)(function)
        # With NUMBA_DISABLE_JIT, numba returns the function itself.
        if hasattr(compiled, "stats"):
            _CACHES.add(compiled.stats.cache_path)
        return compiled

    def inline_kernel(function: Callable) -> Any:
        """Compile a function that is put into its callers before numba types them."""
        return kernel(function, inline="always")


def is_first_use() -> bool:
    """Whether no kernel has been compiled for this installation yet."""
    return not any(any(Path(folder).glob("*.nbi")) for folder in _CACHES)
