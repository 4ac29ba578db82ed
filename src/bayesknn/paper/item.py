"""What an entry of the paper is: what was published, and what we found.

An :class:`Item` holds what ``published.toml`` says of it and a function; the function sees only the
:class:`~bayesknn.paper.setting.Setting` and returns a :class:`Result`, so that no published value
can find its way into ours. ``comparison.py`` puts the two side by side.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bayesknn.paper.setting import Setting


class Estimate(NamedTuple):
    """A number of ours.

    Attributes
    ----------
    value : float, int, str or list
    error : float
        Its Monte Carlo standard error; 0 where nothing was drawn.
    spread : float
        Standard deviation of what one run of the paper's kind would have found: of one of our
        chains, or of one random partition. It is the error of the published value, which came
        from one run.
    """

    value: Any
    error: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True)
class Quantity:
    """Something that is compared.

    Attributes
    ----------
    what : str
        What it is, in words.
    published : float, int, str, list or None
        The published value; a sentence where ``holds`` is given; ``None`` where there is none.
    decimals : int
        How many were published; both values are shown with as many.
    tolerance : float
        How many standard errors ours may be away. It has no use where nothing was drawn: then
        the values must agree to the decimals published.
    holds : callable, optional
        Whether our estimate bears the published sentence out.
    why : str
        The reason for a difference, if there is one; one sentence.
    remark : str
        One sentence for when there is no difference, or nothing was published.
    source : {"paper", "independent"}
        Where the published value stands; "independent" ones are those that were computed
        independently of the paper and of this package.
    unit : str
    """

    what: str
    published: Any = None
    decimals: int = 3
    tolerance: float = 3.0
    holds: Callable[[Estimate], bool] | None = None
    why: str = ""
    remark: str = ""
    source: str = "paper"
    unit: str = ""


@dataclass
class Result:
    """What the function of an item returns.

    Attributes
    ----------
    estimates : dict of str to Estimate
        By the names of the item's quantities.
    figures : dict of str to matplotlib Figure
        By a suffix of the file name, "" for the only one.
    notes : list of str
        Sentences for the page: what the samplers warned of, what to look at.
    """

    estimates: dict[str, Estimate]
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Item:
    """A figure, table or number of the paper, or something added to it.

    Attributes
    ----------
    id : str
        See ``published.toml``.
    title : str
    where : str
        The place in the paper.
    function : callable
        Takes a :class:`~bayesknn.paper.setting.Setting`, returns a :class:`Result`.
    quantities : dict of str to Quantity
    caption : str
        What the published figure or passage shows.
    budget : tuple of str
        The numbers of the budget (``setting.BUDGETS``) that decide how long it takes.
    """

    id: str
    title: str
    where: str
    function: Callable[[Setting], Result]
    quantities: dict[str, Quantity]
    caption: str = ""
    budget: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """Its id as a file name."""
        return self.id.replace(":", "-")


@cache
def read_published() -> dict[str, dict[str, Any]]:
    """Return the entries of ``published.toml`` by id, in the order of the paper."""
    with open(Path(__file__).with_name("published.toml"), "rb") as file:
        return {entry["id"]: entry for entry in tomllib.load(file)["item"]}


def published_rates(id: str) -> dict[int, float]:
    """Return a published table of error rates by k."""
    numbers = read_published()[id]["numbers"]
    return {int(name.removeprefix("k=")): number["paper"] for name, number in numbers.items()}


def make_item(
    id: str,
    function: Callable[[Setting], Result],
    **holds: Callable[[Estimate], bool],
) -> Item:
    """Join a function to what was published.

    Parameters
    ----------
    id : str
    function : callable
    **holds : callable
        For each published sentence, by its name: whether an estimate bears it out.

    Returns
    -------
    Item
    """
    entry = read_published()[id]
    quantities = {}
    for name, number in entry["numbers"].items():
        words = {key: number[key] for key in number if key not in ("paper", "independent")}
        source = "independent" if "independent" in number else "paper"
        quantities[name] = Quantity(
            published=number.get(source), source=source, holds=holds.pop(name, None), **words
        )
    if holds:
        raise ValueError(f"{id}: there is no number {', '.join(holds)} in published.toml")
    words = {key: entry[key] for key in ("id", "title", "where", "caption")}
    budget = tuple(entry.get("budget", ()))
    return Item(function=function, quantities=quantities, budget=budget, **words)
