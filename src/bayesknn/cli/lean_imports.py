"""Imports of a process that runs one command and ends, without what no command uses.

Half of what ``bayesknn fit`` of a small table takes is importing, and much of that is done for
others: scikit-learn imports all of scipy.stats for functions of searches and of losses that we do
not call, skops lists every estimator that may be in a file, matplotlib writes documentation. Here
it is left out where that cannot be noticed later: what was left out can still be imported, and what
scikit-learn took from it is found when it is called.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any


def import_for_fit() -> None:
    """Import what ``bayesknn fit`` needs."""
    _import("bayesknn.report.page", "bayesknn.pooled", drawing=True)


def import_for_predict() -> None:
    """Import what ``bayesknn predict`` needs."""
    _import("bayesknn.report.predictions", "bayesknn.pooled", drawing=False)


def _import(*ours: str, drawing: bool) -> None:
    if "sklearn" in sys.modules:
        return  # the process is somebody else's
    # None of it is garbage, and the collector would walk through all of it again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        # Another version may want more of them at once: then it is imported as always, later.
        with suppress(Exception), stand_ins("scipy.stats", "numpy.f2py"):
            import_module("sklearn.linear_model")
            import_module("sklearn.model_selection")
            from bayesknn.report.pipeline import import_skops_alone

            import_skops_alone()
        if drawing:
            _import_matplotlib()
        for name in ours:
            import_module(name)
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


@contextmanager
def stand_ins(*names: str) -> Iterator[None]:
    """Put modules whose functions import the true ones when called in place of modules.

    Parameters
    ----------
    *names : str
        Modules inside packages; those that are imported already stay as they are.
    """
    placed = [name for name in names if name not in sys.modules]
    for name in placed:
        package, _, last = name.rpartition(".")
        sys.modules[name] = _StandIn(name)
        setattr(import_module(package), last, sys.modules[name])
    try:
        yield
    finally:
        for name in placed:
            package, _, last = name.rpartition(".")
            del sys.modules[name]
            delattr(sys.modules[package], last)


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> _Deferred:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Deferred(self.__name__, name)


class _Deferred:
    """A function or law of a module that is imported when it is called or looked into."""

    def __init__(self, module: str, name: str) -> None:
        self._home = module, name

    def __getattr__(self, name: str) -> Any:
        module, own = self._home
        return getattr(getattr(import_module(module), own), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__getattr__("__call__")(*arguments, **options)


def _import_matplotlib() -> None:
    """Import matplotlib's figures without the documentation of what can be set on them."""
    from matplotlib import artist

    kwdoc = artist.kwdoc
    artist.kwdoc = lambda artist: ""
    try:
        import_module("matplotlib.figure")
        import_module("matplotlib.backends.backend_svg")
    finally:
        artist.kwdoc = kwdoc
