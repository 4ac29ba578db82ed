r"""Names in any script: fonts of this machine that have their letters, and escapes where none has.

The font of a figure rarely has Chinese letters, and matplotlib cannot draw a coloured emoji: where
a glyph is missing it draws a box. The fonts that its font manager finds are asked instead, and a
letter that none of them can draw is written as Python writes it, such as ``\u82b1``.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Any


def make_legible(ax: Any) -> None:
    """Give every text of the axes, the legend's too, fonts that have its letters.

    Tick labels come from a formatter, which writes them anew: :func:`spell` them beforehand.
    """
    from matplotlib.text import Text

    for text in ax.findobj(Text):
        if not text.get_text().isascii():
            families = text.get_fontfamily()
            lacking = frozenset(text.get_text()) - _covered(tuple(families), text.get_text())
            text.set_fontfamily([*families, *_find_families(lacking)])
            text.set_text(spell(text.get_text(), tuple(families)))


def spell(text: str, families: tuple[str, ...] = ("sans-serif",)) -> str:
    r"""Return a text in which letters that no font of this machine can draw are escaped.

    Parameters
    ----------
    text : str
    families : tuple of str
        Fonts to ask before all others.

    Returns
    -------
    str

    Examples
    --------
    >>> from bayesknn.plots.fonts import spell
    >>> spell("width in \u03bcm \u0378")
    'width in μm \\u0378'
    """
    lacking = frozenset(text) - _covered(families, text)
    lacking -= _covered(_find_families(lacking), "".join(lacking))
    return "".join(_escape(letter) if letter in lacking else letter for letter in text)


def _escape(letter: str) -> str:
    # What joins or varies emoji has no shape of its own.
    if unicodedata.category(letter) == "Cf" or "VARIATION SELECTOR" in unicodedata.name(letter, ""):
        return ""
    return letter.encode("unicode_escape").decode()


def _covered(families: tuple[str, ...], letters: str) -> frozenset[str]:
    """Return the letters that at least one of the fonts can draw."""
    from matplotlib.font_manager import FontProperties, findfont

    found = {letter for letter in letters if letter.isspace()}
    for family in families:
        path = str(findfont(FontProperties(family=[family])))
        found |= {letter for letter in letters if _has_shape(path, letter)}
    return frozenset(found)


@functools.lru_cache(maxsize=1000)
def _find_families(letters: frozenset[str]) -> tuple[str, ...]:
    """Return fonts that together have as many of the letters as can be, the fullest first."""
    from matplotlib.font_manager import fontManager

    if not letters:
        return ()
    paths = {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        # The font of last resort has a labelled box for every letter.
        and not entry.name.lower().replace(" ", "").startswith((".", "lastresort"))
    }
    has = {name: {a for a in letters if _has_shape(path, a)} for name, path in paths.items()}
    chosen: list[str] = []
    while has:
        # Of fonts that have as many, one without serifs.
        best = min(has, key=lambda name: (-len(has[name]), "Sans" not in name, name))
        if not has[best]:
            break
        chosen.append(best)
        taken = has.pop(best)
        has = {name: rest - taken for name, rest in has.items()}
    return tuple(chosen)


def _has_shape(path: str, letter: str) -> bool:
    """Whether a font can draw a letter: a font of coloured pictures has it, but no outline."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
        if not font.get_char_index(ord(letter)):
            return False
        font.load_char(ord(letter))
        return len(font.get_path()[0]) > 0
    except (OSError, RuntimeError):
        return False
