"""Every figure, table and number of the paper by its id: compute what is not there yet.

Experiments of one family share a file; the order is that of ``published.toml``, the paper's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from bayesknn._utils.checks import check_count
from bayesknn._utils.progress import progress
from bayesknn.paper import (
    approximations,
    chain_figures,
    classical_tables,
    glass,
    path_sampling,
    perfect_sampling,
)
from bayesknn.paper.comparison import Row, as_csv, as_json, compare
from bayesknn.paper.item import Estimate, Item, Result, read_published
from bayesknn.paper.page import DPI, make_page
from bayesknn.paper.setting import BUDGETS, WORK, Setting, Store
from bayesknn.plots.style import render
from bayesknn.report.folder import require_packages

_FOUND = {
    item.id: item
    for family in (
        classical_tables, chain_figures, path_sampling, perfect_sampling, approximations, glass,
    )
    for item in family.ITEMS
}  # fmt: skip
REGISTRY = {id: _FOUND[id] for id in read_published()}


def find_items(ids: Iterable[str] | None = None) -> list[Item]:
    """Return items by id, in the order of the paper; all of them if no id is given.

    Parameters
    ----------
    ids : iterable of str, optional
        The paper's own labels, some without a prefix, are understood too: ``pseudoo``.

    Returns
    -------
    list of Item

    Examples
    --------
    >>> from bayesknn.paper import find_items
    >>> [item.title for item in find_items(["fig:levelset", "pseudoo"])]
    ['Level sets and zones', 'Chain on the pseudo-likelihood']
    """
    wanted = set()
    for id in [] if ids is None else ids:
        known = id if id in REGISTRY else f"fig:{id}"
        if known not in REGISTRY:
            close = get_close_matches(id, REGISTRY, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the ids are {', '.join(REGISTRY)}"
            raise ValueError(f"there is no {id!r} in the paper; {hint}")
        wanted.add(known)
    return [item for item in REGISTRY.values() if not wanted or item.id in wanted]


@dataclass(frozen=True)
class Outcome:
    """A finished item.

    Attributes
    ----------
    item : Item
    rows : list of Row
    figures : list of str
        PNG files, relative to the folder.
    notes : list of str
    seconds : float
    is_new : bool
        Whether it was computed in this run.
    """

    item: Item
    rows: list[Row]
    figures: list[str]
    notes: list[str]
    seconds: float
    is_new: bool


@dataclass(frozen=True)
class PaperRun:
    """What :func:`run_paper` wrote.

    Attributes
    ----------
    folder : Path
    outcomes : list of Outcome
        Everything in the folder that belongs to this version, budget and seed.
    """

    folder: Path
    outcomes: list[Outcome] = field(repr=False)

    @property
    def page(self) -> Path:
        """The page that shows them."""
        return self.folder / "index.html"

    @property
    def rows(self) -> list[Row]:
        """All comparisons, in the order of the paper."""
        return [row for outcome in self.outcomes for row in outcome.rows]


def run_paper(
    out: str | os.PathLike,
    budget: str = "quick",
    only: Iterable[str] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
    force: bool = False,
    report: Callable[[Outcome], None] | None = None,
) -> PaperRun:
    """Reproduce the paper in a folder.

    Finished items are kept there with the version, the budget and the seed; a run with the same
    ones goes on from there, after an interruption or with other ids.

    Parameters
    ----------
    out : path
        Made if missing. It must be empty or hold an earlier run.
    budget : {"quick", "full", "tiny"}, default="quick"
        A couple of minutes on two cores; the paper's own iteration numbers; a test.
    only : iterable of str, optional
        Ids of :data:`bayesknn.paper.REGISTRY`; all by default.
    seed : int, default=0
    n_jobs : int, optional
        Threads. Nothing but the running times depends on them.
    verbose : int, default=1
        0 for no progress bar.
    force : bool, default=False
        Compute again what is there, and write to a folder that holds other things.
    report : callable, optional
        Called with each :class:`Outcome` as it is finished.

    Returns
    -------
    PaperRun

    Examples
    --------
    >>> import tempfile
    >>> from bayesknn.paper import run_paper
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run_paper(folder, "tiny", only=["tab:knn-ripley"], verbose=0)
    ...     found.rows[0].published, found.rows[0].ours, found.rows[0].verdict
    (0.15, 0.15, 'exact')
    """
    require_packages("matplotlib", "jinja2")
    folder = Path(out)
    if budget not in BUDGETS:
        raise ValueError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}")
    seed = check_count(seed, "seed", low=0)
    items = find_items(only)
    _check_folder(folder, force)
    setting = Setting(budget, seed, n_jobs, folder)
    store = setting.store
    if force:
        store.forget([item.slug for item in items])
    new: set[str] = set()
    with progress("Reproducing the paper", total=len(items), verbose=verbose) as advance:
        try:
            for item in items:
                outcome = _recall(item, store, new)
                if outcome is None:
                    outcome = _compute(item, setting)
                    new.add(item.id)
                advance(1)
                if report is not None:
                    report(outcome)
        finally:
            # Also after Ctrl-C or an error: the page then shows what is finished.
            recalled = [_recall(item, store, new) for item in REGISTRY.values()]
            outcomes = [outcome for outcome in recalled if outcome is not None]
            if outcomes:
                _write(store, outcomes)
    return PaperRun(folder, outcomes)


def _check_folder(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if folder.is_dir() and not force and any(folder.iterdir()):
        if not (folder / WORK).is_dir():
            raise ValueError(
                f"{folder} holds other things than an earlier run of the paper; name another "
                "folder, or pass force=True (--force) to write into it"
            )


def _compute(item: Item, setting: Setting) -> Outcome:
    start = time.perf_counter()
    result = item.function(setting)
    rows = compare(item, result)
    figures = _save_figures(item, result, setting.store)
    seconds = time.perf_counter() - start
    setting.store.save_result(
        item.slug,
        {
            "estimates": result.estimates,
            "figures": figures,
            "notes": result.notes,
            "seconds": seconds,
        },
    )
    return Outcome(item, rows, figures, result.notes, seconds, True)


def _save_figures(item: Item, result: Result, store: Store) -> list[str]:
    names = []
    for suffix, figure in result.figures.items():
        stem = f"figures/{item.slug}{'-' * bool(suffix)}{suffix}"
        for kind in ("svg", "png"):
            store.write(f"{stem}.{kind}", render(figure, kind, DPI))
        names.append(f"{stem}.png")
    return names


def _recall(item: Item, store: Store, new: set[str]) -> Outcome | None:
    """Return an item as it was kept, or None; the comparison is always made anew."""
    kept = store.load_result(item.slug)
    if kept is None or set(kept["estimates"]) != set(item.quantities):
        return None
    estimates = {name: Estimate(*values) for name, values in kept["estimates"].items()}
    rows = compare(item, Result(estimates))
    return Outcome(item, rows, kept["figures"], kept["notes"], kept["seconds"], item.id in new)


def _write(store: Store, outcomes: list[Outcome]) -> None:
    rows = [row for outcome in outcomes for row in outcome.rows]
    store.write("comparison.csv", as_csv(rows).encode())
    store.write("comparison.json", as_json(rows, store.stamp).encode())
    store.write("index.html", make_page(store.folder, outcomes, store.stamp).encode())
