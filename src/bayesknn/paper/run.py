"""Computation of the items of the paper, and the files of results in a folder.

An item is a figure, table or number of the paper; its order is that of ``published.toml``. The
result of each item is saved in the folder with the version, the budget and the seed. A later run
with the same version, budget and seed loads saved results and computes only the missing items.
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
from bayesknn.paper import (  # noqa: F401  Importing a module registers its items.
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
# Resolution of the PNG figures in dots per inch. Higher values make the page larger.
DPI = 150


def find_items(ids: Iterable[str] | None = None) -> list[Item]:
    """Return items by id, in the order of the paper.

    Parameters
    ----------
    ids : iterable of str, optional
        Ids of items; all items by default. The prefix ``fig:`` may be omitted.

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
            raise ValueError(f"{id!r} is not the id of a figure, table or number; {hint}")
        wanted.add(known)
    return [item for item in REGISTRY.values() if not wanted or item.id in wanted]


@dataclass(frozen=True)
class Outcome:
    """Results of one item.

    Attributes
    ----------
    item : Item
    rows : list of Row
        Comparisons of the item's quantities with published values.
    figures : list of str
        Paths of the PNG files relative to the folder.
    notes : list of str
        Warnings of the samplers and other remarks.
    seconds : float
        Running time.
    is_new : bool
        Whether the item was computed in this run, not loaded from the folder.
    """

    item: Item
    rows: list[Row]
    figures: list[str]
    notes: list[str]
    seconds: float
    is_new: bool = False


@dataclass(frozen=True)
class PaperRun:
    """Results that :func:`run_paper` has written to a folder.

    Attributes
    ----------
    folder : Path
    outcomes : list of Outcome
        Results in the folder that were computed with this version, budget and seed.
    """

    folder: Path
    outcomes: list[Outcome] = field(repr=False)

    @property
    def page(self) -> Path:
        """Path of the HTML page that shows the results."""
        return self.folder / "index.html"

    @property
    def rows(self) -> list[Row]:
        """Comparisons of all items, in the order of the paper."""
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
    """Reproduce the paper's figures, tables and numbers, and write them to a folder.

    The result of each item is saved in the folder with the version, the budget and the seed. A
    later run with the same version, budget and seed, for instance after an interruption, computes
    only the missing items.

    Parameters
    ----------
    out : path
        Folder, created if missing. It must be empty or hold the results of an earlier run.
    budget : {"quick", "full", "tiny"}, default="quick"
        Length of chains and number of repetitions. ``"quick"`` takes a few minutes on two cores,
        ``"full"`` has the numbers of the paper, ``"tiny"`` only tests that everything runs.
    only : iterable of str, optional
        Keys of :data:`bayesknn.paper.REGISTRY` to compute; all by default.
    seed : int, default=0
    n_jobs : int, optional
        Number of threads. Only running times depend on it.
    verbose : int, default=1
        0 turns the progress bar off.
    force : bool, default=False
        Recompute saved items, and allow a folder with other files in it.
    report : callable, optional
        Function called with the :class:`Outcome` of each item when it is complete.

    Returns
    -------
    PaperRun
        All results in the folder with this version, budget and seed.

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
    # The checksum of the budget's numbers is part of the stamp, because they may change while the
    # version under development does not.
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
            # The page is written even after Ctrl-C or an error; it then has the completed items.
            every = [new.get(id) or _recall(REGISTRY[id], folder, stamp) for id in REGISTRY]
            run = PaperRun(folder, [outcome for outcome in every if outcome is not None])
            if run.outcomes:
                _write(folder / "comparison.csv", as_csv(run.rows))
                _write(folder / "comparison.json", as_json(run.rows, stamp))
                _write(run.page, make_page(folder, run.outcomes, stamp))
    return run


def _check_folder(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out must be a folder, {folder} is a file")
    if folder.is_dir() and not force and any(folder.iterdir()) and not (folder / WORK).is_dir():
        raise ValueError(
            f"{folder} contains files, but no earlier run of the paper; choose another folder, or "
            "pass force=True (--force) to write into this one"
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
    """Return the saved results of an item, or None if there are none with this stamp.

    The published values may have changed, so the comparison with them is recomputed.
    """
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
    """Write a file atomically: after an error or an interruption the old file is unchanged."""
    with write_file(path, force=True) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def count_verdicts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return the number of rows with each verdict, for each kind of comparison by its name."""
    verdicts = [row.verdict for row in rows]
    return {
        name: {verdict: verdicts.count(verdict) for verdict in each}
        for name, each in KINDS.values()
    }


def as_csv(rows: list[Row]) -> str:
    """Return the rows as the content of a CSV file, with lists joined by semicolons."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in rows:
        writer.writerow(
            "; ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row
        )
    return text.getvalue()


def as_json(rows: list[Row], stamp: dict[str, Any]) -> str:
    """Return the rows and the version, budget and seed as the content of a JSON file."""
    return json.dumps({**stamp, "rows": [row._asdict() for row in rows]}, indent=1) + "\n"


def make_page(folder: Path, outcomes: list[Outcome], stamp: dict[str, Any]) -> str:
    """Return the HTML page that shows the results.

    Parameters
    ----------
    folder : Path
        Folder that contains the figures.
    outcomes : list of Outcome
    stamp : dict
        Values of ``version``, ``budget`` and ``seed``.

    Returns
    -------
    str
        HTML with embedded figures and no scripts. Its content policy forbids network requests.
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
    """Return the published value and ours, with its errors, as text for the page.

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
        # A random value has one decimal more than published, so that its error is visible.
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
    """Return a PNG file as a data URL, and its width on the page in CSS pixels.

    At this width, text of 10 points in the figure is as large as the text of the page, 15 pixels.
    """
    content = path.read_bytes()
    n_pixels = int.from_bytes(content[16:20], "big")
    address = "data:image/png;base64," + base64.b64encode(content).decode("ascii")
    return {"address": address, "width": round(n_pixels * 107 / DPI)}
