"""How every kernel is compiled: numba, cached on disk where that is possible.

Exactness matters here, so there is no ``fastmath``: a sum is added in the order it is
written, and two kernels that write the same sum get the same bits.

numba's own cache looks at the file of a kernel and not at the modules it imports, so that after
an upgrade it would serve machine code with old helpers inside. Here the machine code is valid for
the sources of the kernel's module and of all that this module imports from the package.

A kernel that others call is compiled for them apart (:mod:`bayesknn._inside`), which is most of
what keeps the first use of the package short.
"""

import hashlib
import inspect
import os
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numba

# What _inside takes of numba is not public: where it was not tried, helpers are compiled as usual.
_KNOWS_NUMBA = numba.version_info.short == (0, 68)
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
# What stands at the beginning of a line: imports inside functions do not reach a kernel.
_IMPORT = re.compile(
    r"^(?:from bayesknn([\w.]*) import (\([^)]*\)|.*)|import bayesknn([\w.]*))", re.M
)


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
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            return _call_inside(numba.njit(**options)(function), options)
        path = inspect.getfile(function)
        if os.path.isfile(path):
            compiled._cache._cache_file._source_stamp = stamp_sources(path)
        return _call_inside(compiled, options)

    def inline_kernel(function: Callable) -> Any:
        """Compile a function that is put into its callers before numba types them."""
        return kernel(function, inline="always")


def _call_inside(compiled: Any, options: dict[str, Any]) -> Any:
    """Let other kernels call this one in a form that is compiled for them alone.

    It is not cached, since it is a part of their machine code. Nor is it compiled for constants:
    numba would compile it for ``n = 0``, too, wherever a caller's n starts from there.
    """
    resolve = compiled.get_call_template

    @cache
    def inside() -> Any:
        from bayesknn._inside import InsideCompiler

        return numba.njit(pipeline_class=InsideCompiler, **options)(compiled.py_func)

    def get_call_template(args: Any, kws: dict[str, Any]) -> Any:
        plain = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
        find = inside().get_call_template if _KNOWS_NUMBA else resolve
        return find(tuple(map(numba.types.unliteral, args)), plain)

    compiled.get_call_template = get_call_template
    if not _KNOWS_NUMBA:
        return compiled
    add_overload = compiled.add_overload

    def add_with_environments(result: Any) -> None:
        # What the helpers in it need to print or to raise with values, as numba does on loading.
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        add_overload(result)

    compiled.add_overload = add_with_environments
    compiled.get_overload = lambda signature: inside().get_overload(signature)
    return compiled


@cache
def stamp_sources(path: str) -> str:
    """Return a digest of a module and of all it imports from the package, directly or not.

    Examples
    --------
    >>> from bayesknn import _jit
    >>> len(_jit.stamp_sources(_jit.__file__))
    64
    """
    found = {path}
    waiting = [path]
    while waiting:
        new = _read(waiting.pop())[1] - found
        found |= new
        waiting += new
    digest = hashlib.sha256()
    for source in sorted(found):
        digest.update(_read(source)[0])
    return digest.hexdigest()


@cache
def _read(path: str) -> tuple[bytes, frozenset[str]]:
    """Digest of a source file, and the files of the package that it imports."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    imported = set()
    for module, names, plain in _IMPORT.findall(source):
        home = _PACKAGE + (module or plain).replace(".", os.sep)
        imported |= {f"{home}.py", os.path.join(home, "__init__.py")}
        # A name may be a module, too.
        imported |= {os.path.join(home, f"{name}.py") for name in re.findall(r"\w+", names)}
    return hashlib.sha256(source.encode()).digest(), _list_sources() & imported


@cache
def _list_sources() -> frozenset[str]:
    files = (os.path.join(home, name) for home, _, names in os.walk(_PACKAGE) for name in names)
    return frozenset(file for file in files if file.endswith(".py"))
