"""Expected failures: known faults, with the reason why each is not mended yet.

A run fails if one of them is never seen in it, because it is then mended and its line must go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Known(NamedTuple):
    """A fault that is expected.

    Attributes
    ----------
    invariance : str
        Empty for any of them.
    what : str
        Part of the name of the comparison.
    reason : str
        What is wrong, and what mends it.
    applies : callable
        Whether a case shows it.
    """

    invariance: str
    what: str
    reason: str
    applies: Callable[[Any], bool] = lambda case: True


def _is_bayesian(case: Any) -> bool:
    return case.options["classifier"] != "pooled"


_OWN_CLASS = (
    "the model's probability given all other labels: of equal classes the row's own is smaller"
)
KNOWN: tuple[Known, ...] = tuple(
    Known("nothing to learn", f": {score}", _OWN_CLASS, _is_bayesian)
    for score in ("error", "AUC", "log-loss")
)
