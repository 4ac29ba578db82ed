"""Published values next to ours: a verdict in one or two words, and a sentence.

An :class:`Item` holds its entry of ``published.toml`` and a function; the function sees only the
:class:`~bayesknn.paper.setting.Setting` and returns a :class:`Result`, so that no published value
can find its way into ours.

Three kinds of comparison have verdicts of their own. A published number is "exact" (nothing random
in ours, the same to the decimals published), "within error" (random, and no further away than
chance explains) or "differs". A sentence of the paper is "borne out" or "not borne out" by our
number. A check compares with a value that was computed independently of the paper and of this
package, and was not published: it is "confirmed" or "not confirmed". A quantity without any such
value is "not published".
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from bayesknn.paper.setting import Setting

NOTHING = "Nothing was published to compare it with."
# Of each kind of comparison: its name on the page, and its verdicts, the best one first.
KINDS = {
    "number": ("Published numbers", ("exact", "within error", "differs")),
    "sentence": ("Sentences of the paper", ("borne out", "not borne out")),
    "check": ("Our checks against independent values", ("confirmed", "not confirmed")),
}
NOT_PUBLISHED = "not published"
VERDICTS = (*(verdict for _, verdicts in KINDS.values() for verdict in verdicts), NOT_PUBLISHED)
# The verdicts that are listed first, with their explanations.
DIFFERENCES = tuple(verdicts[-1] for _, verdicts in KINDS.values())
# Standard errors that a random number may be away from the published one.
ALLOWED = 3
# What ``item`` declares, by id.
_DECLARED: dict[str, Item] = {}


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

    def __sub__(self, other: Estimate) -> Estimate:
        """Return the difference from an independent estimate."""
        return Estimate(self.value - other.value, math.hypot(self.error, other.error))


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
    holds: Callable[[Estimate], bool] | None = None
    why: str = ""
    remark: str = ""
    source: str = "paper"
    unit: str = ""

    @property
    def kind(self) -> str:
        """Key of ``KINDS``, empty if nothing was published."""
        if self.published is None:
            return ""
        if self.source == "independent":
            return "check"
        return "number" if self.holds is None else "sentence"


@dataclass
class Result:
    """What the function of an item returns.

    Attributes
    ----------
    estimates : dict of str to Estimate
        By the names of the item's quantities. A plain value is one without an error.
    figures : sequence of matplotlib Figure
    notes : list of str
        Sentences for the page: what the samplers warned of, what to look at.
    """

    estimates: dict[str, Any]
    figures: Sequence[Any] = ()
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, given in self.estimates.items():
            parts = given if isinstance(given, Estimate) else (given,)
            # As Python's own numbers and lists, for JSON.
            self.estimates[name] = Estimate(*(np.asarray(part).tolist() for part in parts))


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
    budget : sequence of str
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
    """Return published error rates by k: those of an item's numbers that are called k=..."""
    numbers = read_published()[id]["numbers"].items()
    return {int(name[2:]): number.get("paper") for name, number in numbers if name[:2] == "k="}


def item(id: str, **holds: Callable[[Estimate], bool]) -> Callable[[Any], Any]:
    """Declare, as a decorator, that a function computes an item.

    Parameters
    ----------
    id : str
    **holds : callable
        For each published sentence, by its name: whether an estimate bears it out.
    """
    entry = read_published()[id]
    quantities = {}
    for name, number in entry["numbers"].items():
        words = {key: number[key] for key in number if key not in ("paper", "independent")}
        source = "independent" if "independent" in number else "paper"
        quantities[name] = Quantity(
            published=number.get(source), source=source, holds=holds.get(name), **words
        )

    def declare(function: Callable[[Setting], Result]) -> Callable[[Setting], Result]:
        words = {key: entry[key] for key in entry if key != "numbers"}
        _DECLARED[id] = Item(function=function, quantities=quantities, **words)
        return function

    return declare


def all_items() -> dict[str, Item]:
    """Return every item by its id, in the order of the paper."""
    return {id: _DECLARED[id] for id in read_published()}


def is_positive(estimate: Estimate) -> bool:
    """Whether an estimate is above 0 by more than its error explains."""
    return estimate.value > ALLOWED * estimate.error


def is_zero(estimate: Estimate) -> bool:
    """Whether an estimate is no further from 0 than its error explains."""
    return abs(estimate.value) <= ALLOWED * estimate.error


class Row(NamedTuple):
    """One comparison; the columns of ``comparison.csv``."""

    id: str
    quantity: str
    what: str
    source: str
    kind: str
    published: Any
    ours: Any
    error: float
    spread: float
    unit: str
    verdict: str
    explanation: str


def compare(item: Item, estimates: dict[str, Estimate]) -> list[Row]:
    """Compare every quantity of an item with our estimates, one for each of them."""
    if set(estimates) != set(item.quantities):
        odd = sorted(set(estimates) ^ set(item.quantities))
        raise ValueError(f"{item.id}: {', '.join(odd)} computed or asked for, but not both")
    rows = []
    for name, quantity in item.quantities.items():
        verdict, explanation = _judge(quantity, estimates[name])
        source = "" if quantity.published is None else quantity.source
        rows.append(
            Row(
                item.id, name, quantity.what, source, quantity.kind, quantity.published,
                *estimates[name], quantity.unit, verdict, explanation,
            )
        )  # fmt: skip
    return rows


def _judge(quantity: Quantity, estimate: Estimate) -> tuple[str, str]:
    """Return the verdict on one quantity, and the sentence that goes with it."""
    published, decimals = quantity.published, quantity.decimals
    if not quantity.kind:
        return NOT_PUBLISHED, quantity.remark or NOTHING
    verdicts, noise, words = KINDS[quantity.kind][1], 0.0, "The same."
    if quantity.holds is not None:
        is_same = quantity.holds(estimate)
        words = "Our number bears the sentence out."
    elif not isinstance(published, int | float):
        is_same = estimate.value == published
    else:
        # From what the published value may have been before it was rounded.
        gap = max(abs(estimate.value - published) - 0.5 * 10.0**-decimals * (1 + 1e-9), 0.0)
        # The paper's values come from one run each.
        spread = estimate.spread if quantity.source == "paper" else 0.0
        noise = math.hypot(estimate.error, spread)
        is_same = gap <= ALLOWED * noise
        if noise > 0.0:
            allowed = f"{gap / noise:.1f} standard errors apart, where {ALLOWED} are allowed"
            words = f"{allowed}, besides the rounding of the value."
        elif isinstance(published, float):
            words = f"The same to {decimals} decimal{'s' * (decimals > 1)}."
    if not is_same:
        return verdicts[-1], quantity.why or "No reason is known."
    is_random = quantity.kind == "number" and noise > 0.0
    return verdicts[is_random], quantity.remark or words
