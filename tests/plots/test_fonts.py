"""Names in any script are drawn by a font that has them, or escaped; nothing is drawn as a box."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.text import Text

from bayesknn.plots import ApproximationDisplay, ColumnPathDisplay, ZoneMapDisplay
from bayesknn.plots.fonts import _find_families, _has_shape, spell

# matplotlib brings DejaVu and STIX: the watch is only in STIX, no font has the second.
ONLY_STIX = "\u231a"
NOWHERE = "\u0378"


@pytest.fixture(autouse=True)
def fonts_of_matplotlib(monkeypatch):
    """Know no fonts but those that matplotlib brings, as a server does."""
    own = [entry for entry in fontManager.ttflist if "mpl-data" in entry.fname]
    monkeypatch.setattr(fontManager, "ttflist", own)
    _find_families.cache_clear()
    yield
    _find_families.cache_clear()


def draw(display):
    """Draw in full; a missing glyph is a warning, which is an error in the tests."""
    axes = getattr(display, "axes_", [getattr(display, "ax_", None)])
    axes[0].figure.canvas.draw()
    return {text.get_text(): text for text in axes[0].findobj(Text)}


def test_the_fonts_are_as_the_tests_suppose():
    def has(name, letter):
        path = next(entry.fname for entry in fontManager.ttflist if entry.name == name)
        return _has_shape(path, letter)

    assert has("STIXGeneral", ONLY_STIX) and not has("DejaVu Sans", ONLY_STIX)
    with pytest.warns(UserWarning, match="Glyph 888 .* missing"):
        figure = Figure()
        figure.text(0, 0, NOWHERE)
        FigureCanvasAgg(figure).draw()


def test_letters_that_no_font_has_are_escaped():
    assert spell("a\u00e4\u03b2 \n") == "a\u00e4\u03b2 \n"
    assert spell(f"{NOWHERE}{ONLY_STIX}") == f"\\u0378{ONLY_STIX}"
    assert spell("\U0001f469\u200d\U0001f52c\ufe0f") == "\\U0001f469\\U0001f52c"


def test_a_font_of_boxes_is_no_font(monkeypatch):
    entry = fontManager.ttflist[0]
    boxes = SimpleNamespace(name="Last Resort HE", fname=entry.fname, style="normal", weight=400)
    monkeypatch.setattr("bayesknn.plots.fonts._has_shape", lambda path, letter: letter == "\u82b1")
    monkeypatch.setattr(fontManager, "ttflist", [boxes])
    assert _find_families(frozenset("\u82b1")) == ()
    boxes.name = "Some Song"
    _find_families.cache_clear()
    assert _find_families(frozenset("\u82b1\u74e3")) == ("Some Song",)


def test_a_font_that_cannot_be_opened_has_nothing(tmp_path):
    (tmp_path / "bad.ttf").write_text("no font")
    assert not _has_shape(str(tmp_path / "bad.ttf"), "a")


@pytest.mark.parametrize("name", ["\u82b1\u74e3", f"a{ONLY_STIX}", "\U0001f41d"])
def test_no_boxes_in_maps_curves_and_paths(name):
    x = np.linspace(0, 1, 5)
    second = np.tile(x, (5, 1))
    zones = ZoneMapDisplay(
        x, x, np.dstack([1 - second, second]), second > 0.5, ["a", name], [name, "b"]
    ).plot()
    found = draw(zones)
    assert {spell(name), f"class {spell(name)}", f"P(class {spell(name)})"} <= set(found)
    if ONLY_STIX in name:
        assert any("STIX" in family for family in found[name].get_fontfamily())
    path = ColumnPathDisplay([name, "b"], [1.0, 2.0], [0.1, 0.1], 0.0, {name: (1.5, 0.1)})
    assert {f"+ {spell(name)}", spell(name)} <= set(draw(path.plot()))
    curves = ApproximationDisplay([0.0, 1.0, 2.0], {name: [0.5, 0.5]}, [1, 2], {name: [0.4, 0.6]})
    assert spell(name) in draw(curves.plot())
