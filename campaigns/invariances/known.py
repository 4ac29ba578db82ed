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


def _is_pooled(case: Any) -> bool:
    return case.options["kind"] == "pooled"


def _has_dates(case: Any) -> bool:
    return case.options["form"] in ("day first", "day first, slashes", "month first")


def _has_commas(case: Any) -> bool:
    forms = {case.options["form"], case.options["other"]}
    return "plain" in forms and bool({"decimal comma", "euros", "thousands with points"} & forms)


KNOWN: tuple[Known, ...] = (
    Known("", "sample_weight is 0", "a weight of 0 is to be a row left out", _is_pooled),
    Known("order", "permuted", "folds and trees of the pool follow positions", _is_pooled),
    Known("order", "renamed", "folds and trees of the pool follow the order of names", _is_pooled),
    Known("format", "row", "the order of day and month is not remembered", _has_dates),
    Known("format", "row", "the decimal comma is not remembered: 1.234 may be 1,234", _has_commas),
    Known("format", "sentinel as a float: missing", "-999.0 is not the missing value -999"),
    Known("nothing to learn", "", "a left-out row takes its part of its class along"),
)
