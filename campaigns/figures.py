"""The figures of the campaigns: kept in ``figures.json``, told in CONTRIBUTING."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures.json"
PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
_MARKS = ("<!-- campaigns: written by python -m campaigns --record -->\n", "<!-- /campaigns -->\n")


def record(name: str, found: dict[str, Any]) -> None:
    """Keep what a campaign found, and tell it in CONTRIBUTING."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if name == "mutants":
        found = _join(known.get(name, {"killed": [], "survivors": []}), found)
    known[name] = found
    FIGURES.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(page, tell(known)), encoding="utf-8")


def _join(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Join the verdicts of runs over parts of the mutants; a later one counts."""
    tried = {*found["killed"], *found["survivors"]}
    return {
        verdict: sorted({*before[verdict]} - tried | {*found[verdict]})
        for verdict in ("killed", "survivors")
    }


def fill(page: str, lines: list[str]) -> str:
    """Return a page with these lines between the marks."""
    begin, end = map(re.escape, _MARKS)
    text = "".join(f"{line}\n" for line in lines)
    page, n = re.subn(f"(?<={begin}).*(?={end})", lambda _: text, page, flags=re.DOTALL)
    assert n == 1, "CONTRIBUTING has lost the marks of the campaigns"
    return page


def tell(known: dict[str, Any]) -> list[str]:
    """Return a line for each campaign that was run."""
    lines = []
    if fuzz := known.get("fuzz"):
        arguments = fuzz["arguments"] + fuzz["estimator"]
        counts = [fuzz["csv"], fuzz["model"], arguments]
        csv, model, of_arguments = (f"{60 * n / fuzz['cpu_minutes']:,.0f}" for n in counts)
        lines.append(
            f"- `make fuzz`: {fuzz['csv']:,} CSV files, {fuzz['model']:,} model files and "
            f"{arguments:,} sets of arguments, {fuzz['outside']:,} of them by a process of their "
            f"own as well, in {fuzz['minutes']:.0f} minutes ({fuzz['cpu_minutes']:.0f} of CPU: "
            f"{csv}, {model} and {of_arguments} an hour of it); "
            f"faults: {len(fuzz['faults']) or 'none'}."
        )
    if faults := known.get("faults"):
        told = ", ".join(f"{n:,} {what}" for what, n in faults["moments"].items())
        lines.append(f"- `make faults`: {told}; faults: {len(faults['faults']) or 'none'}.")
    if mutants := known.get("mutants"):
        killed, survivors = mutants["killed"], mutants["survivors"]
        lines.append(
            f"- `make mutants`: {len(killed) + len(survivors)} of those listed tried so far; "
            f"survivors: {', '.join(survivors) or 'none'}."
        )
    return lines
