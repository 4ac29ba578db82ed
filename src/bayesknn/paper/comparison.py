"""Comparison of our results with published values, each with a verdict and an explanation.

An :class:`Item` has its entry of ``published.toml`` and a function. The function receives only a
:class:`~bayesknn.paper.setting.Setting` and returns a :class:`Result`, so that our values cannot
depend on published values.

Each kind of comparison has its own verdicts:

- A published number is "exact" if ours is not random and equal to all published decimals, "within
  error" if ours is random and their difference is at most three standard errors, and otherwise
  "differs".
- A sentence of the paper is "borne out" or "not borne out" by our number.
- A check compares our number with an unpublished value that was computed independently of the paper
  and of this package: it is "confirmed" or "not confirmed".

A quantity with no value to compare with is "not published".
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
# Name on the page, and verdicts from best to worst, of each kind of comparison.
KINDS = {
    "number": ("Published numbers", ("exact", "within error", "differs")),
    "sentence": ("Sentences of the paper", ("borne out", "not borne out")),
    "check": ("Our checks against independent values", ("confirmed", "not confirmed")),
}
NOT_PUBLISHED = "not published"
VERDICTS = (*(verdict for _, verdicts in KINDS.values() for verdict in verdicts), NOT_PUBLISHED)
# Verdicts of disagreement. The page lists these comparisons at its top.
DIFFERENCES = tuple(verdicts[-1] for _, verdicts in KINDS.values())
# Largest difference that is attributed to chance, in standard errors. A smaller value would report
# correct results as different; a larger one would hide small biases.
ALLOWED = 3
# Items by id, filled by the decorator ``item``.
_DECLARED: dict[str, Item] = {}


class Estimate(NamedTuple):
    """A number computed here, with its Monte Carlo error.

    Attributes
    ----------
    value : float, int, str or list
    error : float
        Monte Carlo standard error of the value; 0 if no random numbers were used.
    run_sd : float
        Standard deviation of the value over single runs like the paper's: single chains, or single
        random partitions. The published value comes from one run, so this is its standard error.
    """

    value: Any
    error: float = 0.0
    run_sd: float = 0.0

    def __sub__(self, other: Estimate) -> Estimate:
        """Return the difference from an independent estimate, without the sd of single runs."""
        return Estimate(self.value - other.value, math.hypot(self.error, other.error))


@dataclass(frozen=True)
class Quantity:
    """A quantity that is computed and, if there is a published value, compared with it.

    Attributes
    ----------
    what : str
        Description of the quantity.
    published : float, int, str, list or None
        Published value, a sentence if ``holds`` is given, ``None`` if there is nothing to compare.
    decimals : int
        Number of decimals published. Both values are shown with as many.
    holds : callable, optional
        Function of our estimate that returns whether the published sentence is true.
    why : str
        Explanation shown if the values differ, one sentence.
    remark : str
        Remark shown if the values do not differ or there is no published value, one sentence.
    source : {"paper", "independent"}
        Source of the published value. "independent" values were computed independently of the
        paper and of this package.
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
        """Kind of comparison, a key of ``KINDS``; empty if there is no published value."""
        if self.published is None:
            return ""
        if self.source == "independent":
            return "check"
        return "number" if self.holds is None else "sentence"


@dataclass
class Result:
    """Return value of the function of an item.

    Attributes
    ----------
    estimates : dict of str to Estimate
        Estimate of each quantity of the item, by name. A plain number is taken as free of error.
    figures : sequence of matplotlib Figure
    notes : list of str
        Sentences for the page, such as warnings of the samplers.
    """

    estimates: dict[str, Any]
    figures: Sequence[Any] = ()
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, given in self.estimates.items():
            parts = given if isinstance(given, Estimate) else (given,)
            # tolist converts NumPy values to Python numbers and lists, which JSON needs.
            self.estimates[name] = Estimate(*(np.asarray(part).tolist() for part in parts))


@dataclass(frozen=True)
class Item:
    """A figure, table or number of the paper, or something added to it.

    Attributes
    ----------
    id : str
        Identifier, explained at the top of ``published.toml``.
    title : str
    where : str
        Figure or table number and section in the paper.
    function : callable
        Function that takes a :class:`~bayesknn.paper.setting.Setting` and returns a
        :class:`Result`.
    quantities : dict of str to Quantity
    caption : str
        Description of the published figure or passage.
    budget : sequence of str
        Names of the numbers in ``setting.BUDGETS`` that determine the running time.
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
        """The id with a hyphen for the colon, used in file names."""
        return self.id.replace(":", "-")


@cache
def read_published() -> dict[str, dict[str, Any]]:
    """Return the entries of ``published.toml`` by id, in the order of the paper."""
    with open(Path(__file__).with_name("published.toml"), "rb") as file:
        return {entry["id"]: entry for entry in tomllib.load(file)["item"]}


def published_rates(id: str) -> dict[int, float]:
    """Return the published error rates of an item by k, from its numbers named ``k=...``."""
    numbers = read_published()[id]["numbers"].items()
    return {int(name[2:]): number.get("paper") for name, number in numbers if name[:2] == "k="}


def item(id: str, **holds: Callable[[Estimate], bool]) -> Callable[[Any], Any]:
    """Return a decorator that registers a function as the computation of an item.

    Parameters
    ----------
    id : str
        Key of an entry of ``published.toml``.
    **holds : callable
        For each quantity with a published sentence, a function of our estimate that returns whether
        the sentence is true.
    """
    entry = read_published()[id]
    quantities = {}
    for name, number in entry["numbers"].items():
        fields = {key: number[key] for key in number if key not in ("paper", "independent")}
        source = "independent" if "independent" in number else "paper"
        quantities[name] = Quantity(
            published=number.get(source), source=source, holds=holds.get(name), **fields
        )

    def declare(function: Callable[[Setting], Result]) -> Callable[[Setting], Result]:
        fields = {key: entry[key] for key in entry if key != "numbers"}
        _DECLARED[id] = Item(function=function, quantities=quantities, **fields)
        return function

    return declare


def all_items() -> dict[str, Item]:
    """Return all items by id, in the order of the paper."""
    return {id: _DECLARED[id] for id in read_published()}


def is_positive(estimate: Estimate) -> bool:
    """Return whether an estimate is more than ``ALLOWED`` standard errors above 0."""
    return estimate.value > ALLOWED * estimate.error


def is_zero(estimate: Estimate) -> bool:
    """Return whether an estimate is at most ``ALLOWED`` standard errors from 0."""
    return abs(estimate.value) <= ALLOWED * estimate.error


class Row(NamedTuple):
    """One comparison, a row of ``comparison.csv``; ``spread`` is ``run_sd`` of the estimate."""

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
    """Return the comparison of each quantity of an item with our estimate of it."""
    if set(estimates) != set(item.quantities):
        unmatched = sorted(set(estimates) ^ set(item.quantities))
        raise ValueError(f"{item.id}: {unmatched} must be in published.toml and in the result")
    rows = []
    for name, quantity in item.quantities.items():
        verdict, explanation = _evaluate(quantity, estimates[name])
        source = "" if quantity.published is None else quantity.source
        rows.append(
            Row(
                item.id, name, quantity.what, source, quantity.kind, quantity.published,
                *estimates[name], quantity.unit, verdict, explanation,
            )
        )  # fmt: skip
    return rows


def _evaluate(quantity: Quantity, estimate: Estimate) -> tuple[str, str]:
    """Return the verdict on one quantity and its explanation."""
    published, decimals = quantity.published, quantity.decimals
    if not quantity.kind:
        return NOT_PUBLISHED, quantity.remark or NOTHING
    verdicts, sd, text = KINDS[quantity.kind][1], 0.0, "The same."
    if quantity.holds is not None:
        is_same = quantity.holds(estimate)
        text = "Our number bears the sentence out."
    elif not isinstance(published, int | float):
        is_same = estimate.value == published
    else:
        # The gap is to the nearest number that rounds to the published value.
        gap = max(abs(estimate.value - published) - 0.5 * 10.0**-decimals * (1 + 1e-9), 0.0)
        # A value of the paper comes from one run and has the error of one run.
        run_sd = estimate.run_sd if quantity.source == "paper" else 0.0
        sd = math.hypot(estimate.error, run_sd)
        is_same = gap <= ALLOWED * sd
        if sd > 0.0:
            text = f"The difference is {gap / sd:.1f} standard errors; up to {ALLOWED} are chance."
        elif isinstance(published, float):
            text = f"The same to {decimals} decimal{'s' * (decimals > 1)}."
    if not is_same:
        return verdicts[-1], quantity.why or "No reason is known."
    is_random = quantity.kind == "number" and sd > 0.0
    return verdicts[is_random], quantity.remark or text
