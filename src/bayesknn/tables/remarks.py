"""Remarks about a table: what a reader must know, each with a code that programs can act on.

A remark about a column is a sentence of three parts, ``column 'x' WHAT WHERE THEN``, so that the
same remark about several columns can be one sentence. No part of the package reads the sentences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from bayesknn._utils.words import say_of_columns

# Severities. A skipped check has looked at nothing; its text says why.
NOTE, WARNING, SKIPPED = "note", "warning", "skipped"

# Codes that ``--ignore`` takes; docs/command_line.md describes them.
CODES = (
    "ambiguous-number", "categories-merged", "class-unknown", "classes-alike", "classes-rare",
    "classes-unlabelled", "codes", "column-dropped", "column-empty", "column-shifted",
    "comparison-skipped", "dates", "duplicates", "error-too-small", "file", "fit", "gaps",
    "groups", "header", "identifier", "leak", "losses", "numbers", "numbers-as-categories",
    "rows-unlike", "text-differs", "trend", "units", "unseen",
)  # fmt: skip


class Remark(NamedTuple):
    """One thing to know about a table, a column or a fit.

    Attributes
    ----------
    code : str
        One of ``CODES``.
    severity : {"note", "warning", "skipped"}
        ``"skipped"`` is of a check that does not apply; its text says why.
    column : str
        The column, empty if it is about the whole table.
    text : str
        A sentence for people, without a full stop.
    parts : tuple of three str
        Of a remark about a column, what is said, where in the column, and what follows.
    details : dict of str to float or None
        Numbers that the sentence rests on, and how long they took.
    """

    code: str
    severity: str
    column: str
    text: str
    parts: tuple[str, str, str] = ("", "", "")
    details: dict[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attributes by name, without parts, and without details if there are none."""
        named = self._asdict()
        kept = [*self._fields[:4], *["details"] * bool(self.details)]
        return {name: named[name] for name in kept}


def on_column(
    code: str, column: str, what: str, where: str = "", then: str = "", severity: str = NOTE
) -> Remark:
    """Return a remark about a column: ``column 'x' WHAT WHERE THEN``.

    Examples
    --------
    >>> from bayesknn.tables.remarks import on_column
    >>> on_column("gaps", "x", "has no value", "in 2 rows", ": filled").text
    "column 'x' has no value in 2 rows: filled"
    """
    (text,) = say_of_columns({column: where}, f" {what}", then)
    return Remark(code, severity, column, text, (what, where, then))


def on_table(code: str, text: str, severity: str = NOTE) -> Remark:
    """Return a remark about a whole table, or about a fit."""
    return Remark(code, severity, "", text)


def leave_out(remarks: Iterable[Remark], ignored: Collection[str]) -> list[Remark]:
    """Return the remarks whose codes are not ignored, each text once."""
    return list({each.text: each for each in remarks if each.code not in ignored}.values())


def check_codes(codes: Iterable[str]) -> tuple[str, ...]:
    """Return codes of remarks, or raise ValueError with those that there are."""
    codes = tuple(codes)
    for code in codes:
        if code not in CODES:
            raise ValueError(f"there is no remark {code!r} to ignore; there are {', '.join(CODES)}")
    return codes


def to_json(remarks: Iterable[Remark]) -> dict[str, Any]:
    """Return remarks, and the sentences of notes and warnings, as JSON has them."""
    remarks = list(remarks)
    sentences = {"messages": tell(remarks, NOTE), "warnings": tell(remarks, WARNING)}
    return {**sentences, "remarks": [each.to_json() for each in remarks]}


def tell(remarks: Iterable[Remark], severity: str) -> list[str]:
    """Return the sentences of one severity; what is said of several columns is one sentence.

    Examples
    --------
    >>> from bayesknn.tables.remarks import on_column, tell
    >>> tell([on_column("gaps", name, "is empty") for name in "ab"], "note")
    ["each of 2 columns ('a', 'b') is empty"]
    """
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for remark in remarks:
        if remark.severity == severity:
            what, where, then = remark.parts
            key: tuple[str, ...] = (what, then) if what else (remark.text,)
            groups.setdefault(key, {})[remark.column] = where
    sentences: list[str] = []
    for key, columns in groups.items():
        sentences += key if len(key) == 1 else say_of_columns(columns, f" {key[0]}", key[1])
    return sentences
