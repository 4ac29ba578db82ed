"""Invariances of formats in files, and of numbers that the report and the classifier both have."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from campaigns.invariances.cases import Case, cover
from campaigns.invariances.compared import Compared, find_difference
from campaigns.invariances.laws import fit

# Formats in which numbers, dates, booleans and categories are written.
_NUMBERS = {
    "plain": lambda v: f"{v:.3f}",
    "whole": lambda v: f"{v:.0f}",
    "decimal comma": lambda v: f"{v:.2f}".replace(".", ","),
    "thousands": lambda v: f"{v:,.2f}",
    "whole thousands": lambda v: f"{v:,.0f}",
    "thousands with points": lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")),
    "whole thousands with points": lambda v: f"{v:,.0f}".replace(",", "."),
    "dollars": lambda v: f"${v:,.2f}",
    "euros": lambda v: f"{v:.2f} €".replace(".", ","),
    "per cent": lambda v: f"{v % 100:.1f}%",
    "sentinel": lambda v: "-999" if v < 30 else f"{v:.1f}",
    "sentinel as a float": lambda v: "-999.0" if v < 30 else f"{v:.1f}",
}
_DATES = {
    "iso date": "%Y-%m-%d",
    "day first": "%d.%m.%Y",
    "day first, slashes": "%d/%m/%Y",
    "month first": "%m/%d/%Y",
    "date and time": "%Y-%m-%d %H:%M",
}
_WORDS = {
    "upper-case booleans": ("TRUE", "FALSE"),
    "lower-case booleans": ("true", "false"),
    "codes": ("007", "021", "100"),
    "words": ("low", "high", "None"),
    "digits": ("1", "2", "3"),
}
FORMS = cover(
    {
        "form": (*_NUMBERS, *_DATES, *_WORDS),
        "other": ("plain", "decimal comma", "thousands"),
        "missing": (None, "", "NA", "null"),
        "separator": (",", ";", "\t"),
    }
)


class Sheet(NamedTuple):
    """Text of the cells of a table.

    Attributes
    ----------
    options : dict of str to str
    rows : list of list of str
        Rows of cells; the first row has the names of the columns.
    """

    options: dict[str, Any]
    rows: list[list[str]]


@st.composite
def sheets(draw: st.DrawFn, options: dict[str, Any]) -> Sheet:
    """Draw a table of two feature columns in the formats of the options, and a target."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(30, 60))
    rng = np.random.default_rng(seed)
    columns = [_write_cells(options[name], n, rng) for name in ("form", "other")]
    if options["missing"] is not None:
        for i in np.flatnonzero(rng.random(n) < 0.2):
            columns[0][i] = options["missing"]
    columns.append([f"class {g}" for g in rng.integers(0, 2, n)])
    return Sheet(options, [["first", "second", "target"], *map(list, zip(*columns, strict=True))])


def _write_cells(form: str, n: int, rng: np.random.Generator) -> list[str]:
    if form in _NUMBERS:
        return [_NUMBERS[form](v) for v in np.exp(rng.normal(5, 3, n))]
    if form in _DATES:
        days = pandas.Timestamp("2021-03-31 08:15") + pandas.to_timedelta(
            rng.integers(0, 900, n), "D"
        )
        return [day.strftime(_DATES[form]) for day in days]
    return [_WORDS[form][i] for i in rng.integers(0, len(_WORDS[form]), n)]


def formats(case: Sheet) -> Iterator[Compared]:
    """Yield differences between rows read from a short file and from the training file."""
    given: dict[str, Any] = {"missing": ["-999"]} if "sentinel" in case.options["form"] else {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        train, kinds = _read(case.rows, case, None, **given)
        if given:
            cells = [row[0] for row in case.rows[1:]]
            expected = [cell.startswith("-999") or cell in ("", "NA", "null") for cell in cells]
            missing = train["first"].isna().tolist()
            yield Compared(
                f"{case.options['form']}: missing values", find_difference(missing, expected), 0.0
            )
        n = len(case.rows) - 1
        for rows in (range(n), [0], [n // 2], [n - 1], range(n - 3, n)):
            some = [case.rows[0], *(case.rows[1 + i] for i in rows)]
            what = f"{case.options['form']}: {'one row' if len(rows) == 1 else 'rows'}"
            try:
                new, _ = _read(some, case, kinds, **given)
            except ValueError as error:
                yield Compared(f"{what}: {error}", np.inf, 0.0)
                continue
            for name in ("first", "second"):
                values = train[name].iloc[list(rows)]
                yield Compared(f"{what}: {name}", _find_gap(values, new[name]), 0.0)


def _read(rows: list[list[str]], case: Sheet, kinds: Any, **given: Any) -> tuple[Any, Any]:
    """Write rows to a CSV file and read it; return the typed columns and their kinds.

    The kinds are learned from the rows if ``kinds`` is None.
    """
    from bayesknn.report import read_table
    from bayesknn.tables.kinds import Text, learn_kinds

    separator = case.options["separator"]
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows)
    Path("rows.csv").write_text(text + "\n", encoding="utf-8")
    table = read_table("rows.csv", **given)
    if kinds is None:
        kinds, _ = learn_kinds(table.frame, has_semicolons=table.has_semicolons)
        kinds = {n: k.learn(table.frame[n]) if isinstance(k, Text) else k for n, k in kinds.items()}
    return pandas.DataFrame({n: kind.read(table.frame[n]) for n, kind in kinds.items()}), kinds


def _find_gap(first: pandas.Series, second: pandas.Series) -> float:
    """Return the difference of values, which may be missing."""
    if not (first.isna().to_numpy() == second.isna().to_numpy()).all():
        return np.inf
    a, b = first.dropna(), second.dropna()
    if a.dtype.kind == "f" and b.dtype.kind in "fi":
        return find_difference(a.to_numpy(float), b.to_numpy(float))
    return 0.0 if a.map(str).tolist() == b.map(str).tolist() else np.inf


# The report ----------------------------------------------------------------------------------


class _Tables(HTMLParser):
    """Parser of a report: rows of table cells by section of the page, and all text."""

    def __init__(self, page: str):
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {"": []}
        self.section, self.is_cell = "", False
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "section":
            self.section = dict(attrs).get("id") or ""
            self.rows.setdefault(self.section, [])
        elif tag == "tr":
            self.rows[self.section].append([])
        elif tag in ("td", "th") and self.rows[self.section]:
            self.rows[self.section][-1].append("")
            self.is_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.is_cell &= tag not in ("td", "th")
        if tag == "section":
            self.section = ""

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.is_cell:
            self.rows[self.section][-1][-1] += data.replace("\xa0", " ")


def report(case: Case) -> Iterator[Compared]:
    """Yield differences between numbers in the report and numbers computed from the classifier."""
    from bayesknn.report import write_report

    clf = fit(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(clf, case.frame, case.y, out=path, compare=False)
        page = _Tables(path.read_text(encoding="utf-8"))
    labels = np.searchsorted(clf.classes_, case.y)
    p, n = clf.loo_proba_, len(labels)
    # Scores are weighted by the sample weights times the factor of class_prior for the class.
    weight = np.ones(n) if case.weights is None else case.weights
    given = getattr(case.classifier, "class_prior", None)
    if given:
        old = case.frequencies
        weight = weight * np.array([given[name] / old[name] for name in case.y.tolist()])
    wrong = np.average(p.argmax(axis=1) != labels, weights=weight)
    with np.errstate(divide="ignore"):
        losses = -np.log(p[np.arange(n), labels])
    loss = np.average(losses, weights=weight)
    brier = np.average(((p - np.eye(p.shape[1])[labels]) ** 2).sum(axis=1), weights=weight)
    for row in page.rows["scores"]:
        if len(row) == 6 and row[1] == "leave-one-out":
            yield _printed("error of the table of scores", row[3], 100 * wrong)
            yield _printed("log-loss of the table of scores", row[4], loss)
            yield _printed("Brier score", row[5], brier)
    for row in page.rows[""]:
        if row[0] == "rows predicted wrong":
            yield _printed("error of the headline", row[1], 100 * wrong)
        if row[0] == "AUC":
            is_rare = labels == int(np.bincount(labels)[1] <= np.bincount(labels)[0])
            rare_p = p[:, int(is_rare[labels == 1].any())]
            area = roc_auc_score(is_rare, rare_p, sample_weight=weight)
            yield _printed("AUC", row[1], area)
        if match := re.match(r"typical probability .*log-loss ([\d.]+)", row[0]):
            yield _printed("log-loss of the headline", match[1], loss)
    decided = np.average(_find_zones(clf.loo_interval()) >= 0, weights=weight)
    text = " ".join(page.text)
    if match := re.search(r"([<>]?\d+)\s*% of the [\d,]+ training rows[ a-z()]* are decided", text):
        yield _printed("decided rows", match[1], 100 * decided)
    if hasattr(clf, "k_probabilities_") and case.options["kind"] == "bayesian":
        low, high = (
            int(np.searchsorted(np.cumsum(clf.k_probabilities_), q - 1e-12) + 1)
            for q in (0.025, 0.975)
        )
        if match := re.search(r"credible interval (\d+)–(\d+)", text):
            yield Compared("interval of k", abs(int(match[1]) - low) + abs(int(match[2]) - high), 0)
    yield Compared("numbers found", 0.0 if page.rows["scores"] else np.inf, 0.0)


def _find_zones(intervals: np.ndarray) -> np.ndarray:
    low, high = np.moveaxis(intervals, 2, 0)
    zones = np.full(len(low), -1)
    for g in range(low.shape[1]):
        zones[low[:, g] > np.delete(high, g, axis=1).max(axis=1)] = g
    return zones


def _printed(what: str, shown: str, value: float) -> Compared:
    """Return the comparison of the first number in a text with a value, to the digits printed."""
    match = re.search(r"[\d,]*\d(?:\.(\d+))?", shown)
    if match is None:
        return Compared(what, np.inf if np.isfinite(value) else 0.0, 0.0)
    digits = len(match[1] or "")
    return Compared(
        what, abs(float(match[0].replace(",", "")) - value), 0.51 * 10.0**-digits + 1e-9
    )
