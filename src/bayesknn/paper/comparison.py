"""Published and ours side by side: the verdict, in one word and one sentence.

Three verdicts: "exact" (nothing random in ours, the same to the decimals published), "within
error" (random, and no further away than chance explains; for a sentence: our number bears it out)
and "differs". What has no published value has the verdict "not published".
"""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any, NamedTuple

from bayesknn.paper.item import Estimate, Item, Quantity, Result

NOTHING = "Nothing was published to compare it with."
VERDICTS = ("exact", "within error", "differs", "not published")


class Row(NamedTuple):
    """One comparison; the columns of ``comparison.csv``."""

    id: str
    quantity: str
    what: str
    source: str
    published: Any
    ours: Any
    error: float
    spread: float
    unit: str
    verdict: str
    explanation: str


def compare(item: Item, result: Result) -> list[Row]:
    """Compare every quantity of an item with what was found.

    Parameters
    ----------
    item : Item
    result : Result
        With an estimate for each of the quantities.

    Returns
    -------
    list of Row
    """
    if set(result.estimates) != set(item.quantities):
        odd = sorted(set(result.estimates) ^ set(item.quantities))
        raise ValueError(f"{item.id}: {', '.join(odd)} found or asked for, but not both")
    rows = []
    for name, quantity in item.quantities.items():
        estimate = result.estimates[name]
        verdict = judge(quantity, estimate)
        rows.append(
            Row(
                id=item.id,
                quantity=name,
                what=quantity.what,
                source=quantity.source if quantity.published is not None else "",
                published=quantity.published,
                ours=estimate.value,
                error=estimate.error,
                spread=estimate.spread,
                unit=quantity.unit,
                verdict=verdict,
                explanation=explain(quantity, estimate, verdict),
            )
        )
    return rows


def judge(quantity: Quantity, estimate: Estimate) -> str:
    """Return the verdict on one quantity."""
    if quantity.published is None:
        return "not published"
    if quantity.holds is not None:
        return "within error" if quantity.holds(estimate) else "differs"
    if not isinstance(quantity.published, int | float):
        return "exact" if estimate.value == quantity.published else "differs"
    gap, noise = _gap(quantity, estimate), _noise(quantity, estimate)
    if noise == 0.0:
        return "exact" if gap <= 0.0 else "differs"
    return "within error" if gap <= quantity.tolerance * noise else "differs"


def _gap(quantity: Quantity, estimate: Estimate) -> float:
    """Return the distance from what the published value may have been before it was rounded."""
    rounding = 0.5 * 10.0**-quantity.decimals * (1 + 1e-9)
    return max(abs(estimate.value - quantity.published) - rounding, 0.0)


def _noise(quantity: Quantity, estimate: Estimate) -> float:
    """Return the standard error of the difference; the paper's values come from one run each."""
    is_one_run = quantity.source == "paper"
    return math.hypot(estimate.error, estimate.spread) if is_one_run else estimate.error


def explain(quantity: Quantity, estimate: Estimate, verdict: str) -> str:
    """Return the sentence that goes with a verdict."""
    if verdict == "differs":
        return quantity.why or "No reason is known."
    if quantity.remark:
        return quantity.remark
    if verdict == "exact":
        if isinstance(quantity.published, int) or not isinstance(quantity.published, float):
            return "The same."
        return f"The same to {quantity.decimals} decimal{'s' * (quantity.decimals > 1)}."
    if quantity.holds is not None:
        return "Our number bears the sentence out."
    if verdict == "within error":
        gap = _gap(quantity, estimate) / _noise(quantity, estimate)
        allowed = f"{gap:.1f} standard errors apart, where {quantity.tolerance:g} are allowed"
        return f"{allowed}, besides the rounding of the published value."
    return NOTHING


def show_number(value: Any, decimals: int) -> str:
    """Write a value for people."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{decimals}f}" if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return ", ".join(show_number(each, decimals) for each in value)
    return str(value)


def as_csv(rows: list[Row]) -> str:
    """Write the rows as CSV; lists are joined by semicolons."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in rows:
        writer.writerow(
            "; ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row
        )
    return text.getvalue()


def as_json(rows: list[Row], stamp: dict[str, Any]) -> str:
    """Write the rows as JSON, with what they were computed with."""
    return json.dumps({**stamp, "rows": [row._asdict() for row in rows]}, indent=1) + "\n"
