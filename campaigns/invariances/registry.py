"""Registry of the invariances: the check, the options of its cases and their strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from campaigns.invariances import engine, files, laws, nothing, relatives
from campaigns.invariances.cases import ROWS, cases
from campaigns.invariances.compared import Compared


class Invariance(NamedTuple):
    """An invariance and the cases for which it holds.

    Attributes
    ----------
    check : callable
        Function that takes a case and yields comparisons.
    rows : list of dict
        Rows of options, for each of which cases are drawn.
    draw : callable
        Function that takes a row of options and returns a strategy of cases.
    size : int
        Number of tables in a case, for those that simulate several.
    """

    check: Callable[[Any], Iterator[Compared]]
    rows: list[dict[str, Any]]
    draw: Callable[[dict[str, Any]], Any] = cases
    size: int = 1


def _rows(*kinds: str, **levels: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the rows of options with these kinds of classifier and these levels of factors."""
    chosen = [row for row in ROWS if row["kind"] in kinds]
    return [
        row for row in chosen if all(row.get(name) in wanted for name, wanted in levels.items())
    ]


_MODELS, _ALL = ("bayesian", "pooled"), ("bayesian", "pooled", "classical")
# Rows of options without duplicates of different classes. Duplicate rows have equal distances to
# all others, so that the order of the rows decides between their classes.
_UNTIED = [
    {**row, "rows": "distinct" if row["kind"] == "bayesian" else "duplicates"}
    for row in _rows(*_ALL)
]
INVARIANCES = {
    "way of calling": Invariance(laws.way_of_calling, _rows(*_ALL)),
    "command": Invariance(laws.command, _rows(*_MODELS, sample_weight=(None,))),
    "own prior": Invariance(laws.own_prior, _rows(*_MODELS)),
    "scale of weights": Invariance(laws.scale_of_weights, _rows("pooled")),
    "order of new rows": Invariance(laws.order_of_new_rows, _rows(*_ALL)),
    "order": Invariance(laws.order, _UNTIED),
    "units": Invariance(laws.units, _rows(*_ALL)),
    "precomputed": Invariance(
        laws.precomputed, _rows("bayesian", "classical", metric=("euclidean", "manhattan"))
    ),
    "format": Invariance(files.formats, files.FORMS, files.sheets),
    "report": Invariance(files.report, _rows(*_MODELS)),
    "groups": Invariance(relatives.groups, _rows(*_MODELS)),
    "routes": Invariance(engine.routes, engine.ROUTES, engine.small_graphs),
    "prior range": Invariance(
        engine.prior_range, _rows("bayesian", likelihood=("pseudo", "holmes-adams"))
    ),
    "nothing to learn": Invariance(
        nothing.nothing_to_learn, nothing.NOTHING, nothing.noise, nothing.N_TABLES
    ),
    "refusal": Invariance(engine.refusal, engine.REFUSED, engine.wrong_calls),
}
