"""Every figure, table and number of the paper by its id: compute what is not there yet.

Experiments of one family share a file; the order is that of ``published.toml``, the paper's. A
finished item is kept in the folder of the run, stamped with the version, the budget and the seed;
what bears another stamp counts as not there.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bayesknn._utils.checks import check_count
from bayesknn._utils.progress import progress
from bayesknn._version import __version__
from bayesknn.paper import (  # noqa: F401  Each declares its items.
    approximations,
    chain_figures,
    claims,
    column_choice,
    error_rates,
    missing_classes,
    path_sampling,
    perfect_sampling,
)
from bayesknn.paper.comparison import (
    DIFFERENCES,
    KINDS,
    NOT_PUBLISHED,
    NOTHING,
    Estimate,
    Item,
    Row,
    all_items,
    compare,
)
from bayesknn.paper.setting import BUDGETS, Setting
from bayesknn.plots.style import render
from bayesknn.report.folder import require_packages, write_file

REGISTRY = all_items()
WORK = "paper-work"
# Dots per inch of the figures.
DPI = 150


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
    is_new: bool = False


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
    out: str | os.PathLike[str],
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
    ...     run = run_paper(folder, "tiny", only=["tab:knn-ripley"], verbose=0)
    ...     run.rows[0].published, run.rows[0].ours, run.rows[0].verdict
    (0.15, 0.15, 'exact')
    """
    require_packages("matplotlib", "jinja2")
    folder = Path(out)
    if budget not in BUDGETS:
        raise ValueError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}")
    seed = check_count(seed, "seed", low=0)
    items = find_items(only)
    _check_folder(folder, force)
    setting = Setting(budget, seed, n_jobs)
    # What the name of a budget stands for may change between versions under development.
    numbers = f"{zlib.crc32(repr(setting.budget).encode()):08x}"
    stamp = {"version": __version__, "budget": budget, "numbers": numbers, "seed": seed}
    new: dict[str, Outcome] = {}
    with progress("Reproducing the paper", total=len(items), verbose=verbose) as advance:
        try:
            for item in items:
                outcome = None if force else _recall(item, folder, stamp)
                if outcome is None:
                    outcome = new[item.id] = _compute(item, setting, folder, stamp)
                advance(1)
                if report is not None:
                    report(outcome)
        finally:
            # Also after Ctrl-C or an error: the page then shows what is finished.
            every = [new.get(id) or _recall(REGISTRY[id], folder, stamp) for id in REGISTRY]
            run = PaperRun(folder, [outcome for outcome in every if outcome is not None])
            if run.outcomes:
                _write(folder / "comparison.csv", as_csv(run.rows))
                _write(folder / "comparison.json", as_json(run.rows, stamp))
                _write(run.page, make_page(folder, run.outcomes, stamp))
    return run


def _check_folder(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if folder.is_dir() and not force and any(folder.iterdir()) and not (folder / WORK).is_dir():
        raise ValueError(
            f"{folder} holds other things than an earlier run of the paper; name another "
            "folder, or pass force=True (--force) to write into it"
        )


def _compute(item: Item, setting: Setting, folder: Path, stamp: dict[str, Any]) -> Outcome:
    import matplotlib as mpl

    start = time.perf_counter()
    style: dict[Any, Any] = {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "legend.frameon": False,
        "legend.fontsize": "small",
    }
    with mpl.rc_context(style):
        result = item.function(setting)
        rows, figures = compare(item, result.estimates), []
        for at, figure in enumerate(result.figures):
            stem = folder / "figures" / f"{item.slug}{f'-{at + 1}' * bool(at)}"
            for kind in ("svg", "png"):
                _write(stem.with_suffix(f".{kind}"), render(figure, kind, DPI))
            figures.append(f"figures/{stem.name}.png")
    seconds = time.perf_counter() - start
    kept: dict[str, Any] = {"figures": figures, "notes": result.notes, "seconds": seconds}
    text = json.dumps({"stamp": stamp, "estimates": result.estimates, **kept}, indent=1)
    _write(folder / WORK / f"{item.slug}.json", text)
    return Outcome(item, rows, **kept, is_new=True)


def _recall(item: Item, folder: Path, stamp: dict[str, Any]) -> Outcome | None:
    """Return an item as it was kept, or None; the comparison is always made anew."""
    try:
        kept = json.loads((folder / WORK / f"{item.slug}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    is_drawn = all((folder / name).is_file() for name in kept["figures"])
    is_same = kept.pop("stamp") == stamp and set(kept["estimates"]) == set(item.quantities)
    if not (is_drawn and is_same):
        return None
    estimates = {name: Estimate(*values) for name, values in kept.pop("estimates").items()}
    return Outcome(item, compare(item, estimates), **kept)


def _write(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all."""
    with write_file(path, force=True) as place:
        place.write_bytes(content.encode() if isinstance(content, str) else content)


def count_verdicts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return the number of rows with each verdict, by the name of the kind of comparison."""
    verdicts = [row.verdict for row in rows]
    return {
        name: {verdict: verdicts.count(verdict) for verdict in each}
        for name, each in KINDS.values()
    }


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
    rows = [row for outcome in outcomes for row in outcome.rows]
    budget = "" if stamp["budget"] == "quick" else f" --{stamp['budget']}"
    return environment.get_template("paper.html").render(
        outcomes=outcomes,
        stamp=stamp,
        n_items=len(REGISTRY),
        counts=count_verdicts(rows),
        n_not_published=sum(row.verdict == NOT_PUBLISHED for row in rows),
        differences=DIFFERENCES,
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
    >>> from bayesknn.paper.comparison import Estimate, Item, Quantity, compare
    >>> from bayesknn.paper.run import show_values
    >>> item = Item("num:x", "", "", lambda setting: None, {"x": Quantity("", 0.087)})
    >>> row = compare(item, {"x": Estimate(0.0853, 0.0012, 0.0024)})[0]
    >>> show_values(item, row)
    {'published': '0.087', 'ours': '0.0853 ± 0.0012 (one run: 0.0024)'}
    """
    decimals = item.quantities[row.quantity].decimals
    unit = f" {row.unit}" * bool(row.unit)
    published, ours = (_show(value, decimals) for value in (row.published, row.ours))
    if row.error or row.spread:
        # One decimal more where there is an error to be seen in it.
        ours = f"{_show(row.ours, decimals + 1)} ± {row.error:.{decimals + 1}f}"
    ours += unit
    if row.spread:
        ours += f" (one run: {row.spread:.{decimals + 1}f})"
    if isinstance(row.published, str):
        published = f"“{published}”"
    elif published:
        published += unit
    if row.source == "independent":
        published += " (computed independently)"
    return {"published": published, "ours": ours}


def _show(value: Any, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_show(each, decimals) for each in value)
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _embed(path: Path) -> dict[str, Any]:
    """Return a PNG as an address, and the width at which its text is as large as the page's."""
    # 10 points are 15 pixels of a page.
    content = path.read_bytes()
    n_pixels = int.from_bytes(content[16:20], "big")
    address = "data:image/png;base64," + base64.b64encode(content).decode("ascii")
    return {"address": address, "width": round(n_pixels * 107 / DPI)}
