"""The paper by one command: every figure, table and number, beside what was published.

``published.toml`` holds what was published; each family of experiments has a file; ``run`` computes
what is not there yet and writes the comparison and the page. Names are imported when they are asked
for, so that ``bayesknn paper --help`` answers at once.
"""

from importlib import import_module
from typing import Any

__all__ = ["REGISTRY", "find_items", "run_paper"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("bayesknn.paper.run"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
