"""The page: every figure and table beside what was published, in one file that needs no other."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn.paper.comparison import NOTHING, VERDICTS, Row, show_number
from bayesknn.paper.item import Item, read_published

if TYPE_CHECKING:
    from bayesknn.paper.run import Outcome

DPI = 150
"""At which the figures are drawn."""


def make_page(folder: Path, outcomes: list[Outcome], stamp: dict[str, Any]) -> str:
    """Write the page about finished items.

    Parameters
    ----------
    folder : Path
        Where their figures are.
    outcomes : list of Outcome
    stamp : dict
        ``version``, ``budget`` and ``seed``.

    Returns
    -------
    str
        HTML with the figures inside; it has no script and its content policy forbids requests.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    verdicts = [row.verdict for outcome in outcomes for row in outcome.rows]
    budget = "" if stamp["budget"] == "quick" else f" --{stamp['budget']}"
    return environment.get_template("paper.html").render(
        outcomes=outcomes,
        stamp=stamp,
        n_items=len(read_published()),
        counts={verdict: verdicts.count(verdict) for verdict in VERDICTS},
        seconds=sum(outcome.seconds for outcome in outcomes),
        pictures={name: _embed(folder / name) for each in outcomes for name in each.figures},
        show=show_values,
        nothing=NOTHING,
        command=f"bayesknn paper{budget} --seed {stamp['seed']}",
    )


def show_values(item: Item, row: Row) -> dict[str, str]:
    """Write the published value and ours, with its errors, for people.

    Examples
    --------
    >>> from bayesknn.paper.comparison import compare
    >>> from bayesknn.paper.item import Estimate, Item, Quantity, Result
    >>> from bayesknn.paper.page import show_values
    >>> item = Item("num:x", "", "", lambda setting: None, {"x": Quantity("", 0.087)})
    >>> row = compare(item, Result({"x": Estimate(0.0853, 0.0012, 0.0024)}))[0]
    >>> show_values(item, row)
    {'published': '0.087', 'ours': '0.0853 ± 0.0012 (one run: 0.0024)'}
    """
    quantity = item.quantities[row.quantity]
    decimals = quantity.decimals
    unit = f" {row.unit}" * bool(row.unit)
    if row.error or row.spread:
        # One decimal more where there is an error to be seen in it.
        ours = show_number(row.ours, decimals + 1)
        ours += f" ± {row.error:.{decimals + 1}f}{unit}"
        if row.spread:
            ours += f" (one run: {row.spread:.{decimals + 1}f})"
    else:
        ours = show_number(row.ours, decimals) + unit
    published = show_number(row.published, decimals)
    if isinstance(row.published, str):
        published = f"“{published}”"
    elif published:
        published += unit
    if row.source == "independent":
        published += " (computed independently)"
    return {"published": published, "ours": ours}


def _embed(path: Path) -> dict[str, Any]:
    """Return a PNG as an address, and the width at which its text is as large as the page's."""
    # 10 points are 15 pixels of a page.
    content = path.read_bytes()
    n_pixels = int.from_bytes(content[16:20], "big")
    address = "data:image/png;base64," + base64.b64encode(content).decode("ascii")
    return {"address": address, "width": round(n_pixels * 107 / DPI)}
