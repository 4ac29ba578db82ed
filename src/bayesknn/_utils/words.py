"""How names, numbers and lists stand in a sentence or a table, of the page and of messages."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

# Of anything that a table or a sentence lists: what a reader takes in at a glance.
MAX_LISTED = 12


def shorten(name: str, length: int = 32) -> str:
    """Cut a name in its middle to at most ``length`` columns: long names differ at their ends.

    32 columns are about a telephone's screen; a Chinese letter takes two of them.

    Examples
    --------
    >>> from bayesknn._utils.words import shorten
    >>> shorten("petal length"), shorten("a measure of the length of petals in cm", 20)
    ('petal length', 'a measure of … in cm')
    """
    if _width(name) <= length:
        return name
    tail = _cut(name[::-1], (length - 1) // 3)[::-1]
    return f"{_cut(name, length - 1 - _width(tail))}…{tail}"


def shorten_all(names: Sequence[str], length: int = 32) -> list[str]:
    """Return short names that are as different as the names: those that are not carry a number.

    Examples
    --------
    >>> from bayesknn._utils.words import shorten_all
    >>> shorten_all(["a" * 40 + "b" + "a" * 40, "a" * 81, "c"], 8)
    ['aaaaa…aa (1)', 'aaaaa…aa (2)', 'c']
    """
    short = [shorten(name, length) for name in names]
    times = Counter(short)
    return [
        name if times[name] == 1 else f"{name} ({number})" for number, name in enumerate(short, 1)
    ]


def percent(proportion: float, digits: int = 0) -> str:
    r"""Return a proportion in per cent, as text that no line is broken in.

    Examples
    --------
    >>> from bayesknn._utils.words import percent
    >>> percent(0.125, 1), percent(0.9999)
    ('12.5\xa0%', '>99\xa0%')
    """
    step = 10.0 ** (-2 - digits)
    # Nearly all is not all, and next to nothing is not nothing.
    if 0 < proportion < step / 2:
        return f"<{100 * step:.{digits}f}\xa0%"
    if 1 - step / 2 < proportion < 1:
        return f">{100 * (1 - step):.{digits}f}\xa0%"
    return f"{100 * proportion:.{digits}f}\xa0%"


def free_name(name: str, taken: Collection[str], form: str = "({})") -> str:
    """Return a name that is not taken, changed by ``form`` until it is not.

    Examples
    --------
    >>> from bayesknn._utils.words import free_name
    >>> free_name("other", ["a", "b"]), free_name("other", ["other", "(other)"])
    ('other', '((other))')
    """
    while name in taken:
        name = form.format(name)
    return name


def count(n: int, one: str, many: str = "") -> str:
    """Return a number of things with their name in the singular or the plural.

    Examples
    --------
    >>> from bayesknn._utils.words import count
    >>> count(1, "row"), count(2000, "row"), count(2, "class", "classes")
    ('1 row', '2,000 rows', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def join(names: Sequence[Any], most: int = MAX_LISTED) -> str:
    """Return the first of some names, and how many more there are.

    Examples
    --------
    >>> from bayesknn._utils.words import join
    >>> join(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def say_of_columns(where: Mapping[str, str], what: str, then: str = "") -> list[str]:
    """Return one sentence about columns and where in them something is; none about no column.

    Examples
    --------
    >>> from bayesknn._utils.words import say_of_columns
    >>> say_of_columns({"a": "in 2 rows"}, " is empty", ": filled")
    ["column 'a' is empty in 2 rows: filled"]
    >>> say_of_columns({"a": "in 2 rows", "b": "in 1 row"}, " is empty", ": filled")
    ["each of 2 columns ('a' in 2 rows, 'b' in 1 row) is empty: filled"]
    """
    places = [f"{shorten(name)!r} {place}".rstrip() for name, place in where.items()]
    if len(where) > 1:
        return [f"each of {len(where):,} columns ({join(places)}){what}{then}"]
    return [f"column {name!r}{what} {place}".rstrip() + then for name, place in where.items()]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _cut(text: str, width: int) -> str:
    """Return the start of a text that takes at most ``width`` columns."""
    while _width(text) > width:
        text = text[: min(len(text) - 1, width)]
    return text
