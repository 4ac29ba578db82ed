"""Names from the data, cut where they would fill a table, and still told apart."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

# Columns of a telephone's screen, about: a Chinese letter takes two of them.
LENGTH = 32


def shorten(name: str, length: int = LENGTH) -> str:
    """Return a name of at most so many columns, cut in its middle: long names differ at their ends.

    Examples
    --------
    >>> from bayesknn.report.short_names import shorten
    >>> shorten("petal length"), shorten("a measure of the length of petals in cm", 20)
    ('petal length', 'a measure of … in cm')
    """
    if _width(name) <= length:
        return name
    tail = _cut(name[::-1], (length - 1) // 3)[::-1]
    return f"{_cut(name, length - 1 - _width(tail))}…{tail}"


def shorten_all(names: Sequence[str], length: int = LENGTH) -> list[str]:
    """Return short names that are as different as the names: those that are not carry a number.

    Examples
    --------
    >>> from bayesknn.report.short_names import shorten_all
    >>> shorten_all(["a" * 40 + "b" + "a" * 40, "a" * 81, "c"], 8)
    ['aaaaa…aa (1)', 'aaaaa…aa (2)', 'c']
    """
    short = [shorten(name, length) for name in names]
    times = Counter(short)
    return [
        name if times[name] == 1 else f"{name} ({number})" for number, name in enumerate(short, 1)
    ]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _cut(text: str, width: int) -> str:
    """Return the start of a text that takes at most so many columns."""
    while _width(text) > width:
        text = text[: min(len(text) - 1, width)]
    return text
