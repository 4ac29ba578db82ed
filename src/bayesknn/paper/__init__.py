"""The paper by one command: every figure, table and number, beside what was published.

``registry`` maps each id to its function, published values and budget; each family of experiments
has a file; ``run`` computes what is not there yet and writes the comparison and the page. Names
are imported when they are asked for, so that ``bayesknn paper --help`` answers at once.
"""

from importlib import import_module
from typing import Any

_HOMES = {"REGISTRY": "registry", "find_items": "registry", "run_paper": "run"}

__all__ = ["REGISTRY", "find_items", "run_paper"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"bayesknn.paper.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
