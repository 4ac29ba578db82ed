"""Packages that only a part of bayesknn needs: an extra installs them, and an error names it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

# Here, because the command line lists them before it imports NumPy. The classes of the likelihoods
# are in ``bayesknn.likelihood.LIKELIHOODS``.
LIKELIHOOD_NAMES = ("coherent", "pseudo", "holmes-adams")
SEARCHES = ("auto", "brute", "kd_tree", "ball_tree", "blocked")


def require(module: str, needing: str, extra: str, name: str | None = None) -> Any:
    """Import and return a module, or say which extra brings it.

    Parameters
    ----------
    module : str
    needing : str
        Subject and verb of the sentence: "plots need".
    extra : str
        As in ``pip install 'bayesknn[extra]'``.
    name : str, optional
        Of the package, where it is not that of the module.

    Examples
    --------
    >>> from bayesknn._utils.extras import require
    >>> require("no_such_module", "dreams need", "sleep")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: dreams need no_such_module, which is not installed: pip install 'bayesknn[sleep]'
    """  # noqa: E501
    try:
        return import_module(module)
    except ModuleNotFoundError:
        package = name or module.partition(".")[0]
        raise ModuleNotFoundError(
            f"{needing} {package}, which is not installed: pip install 'bayesknn[{extra}]'"
        ) from None


def is_installed(module: str) -> bool:
    """Whether a module could be imported; it is not.

    Examples
    --------
    >>> from bayesknn._utils.extras import is_installed
    >>> is_installed("numpy"), is_installed("no_such_module")
    (True, False)
    """
    try:
        return find_spec(module) is not None
    except (ValueError, ModuleNotFoundError):  # None in sys.modules: it must not be imported
        return False
