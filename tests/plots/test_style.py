"""What all pictures share, and that importing them does not import matplotlib."""

import subprocess
import sys
from contextlib import nullcontext

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

import bayesknn.plots
from bayesknn.plots import ColumnPathDisplay, ZoneMapDisplay
from bayesknn.plots.style import (
    COLOURS,
    FONTS,
    LINES,
    MARKERS,
    new_axes,
    new_grid,
    tint,
)


def test_there_is_a_marker_and_a_line_for_every_colour():
    assert len(COLOURS) == len(MARKERS) == len(LINES)
    assert len(COLOURS) == len(set(COLOURS)) == len(set(MARKERS)) == len(set(LINES))


def test_the_first_two_colours_differ_in_grey():
    grey = [np.dot(to_rgb(colour), [0.299, 0.587, 0.114]) for colour in COLOURS[:2]]
    assert abs(grey[0] - grey[1]) > 0.2


def test_tint_mixes_with_white():
    np.testing.assert_allclose(tint(1.0)[2], to_rgb(COLOURS[2]))
    np.testing.assert_allclose(tint(0.0), 1.0)
    assert tint(np.zeros((3, 5))).shape == (3, 5, len(COLOURS), 3)


def test_new_figure_when_no_axes_are_given():
    figure, ax = new_axes(None, figsize=(3, 2))
    assert ax in figure.axes
    assert figure.get_size_inches().tolist() == [3, 2]
    assert new_grid(None, 1, 3)[1].shape == (1, 3)


def test_a_grid_takes_the_axes_it_is_given():
    given = Figure().subplots(2, 2)
    figure, axes = new_grid(given.ravel(), 2, 2)
    assert figure is given[0, 0].figure
    assert axes.tolist() == given.tolist()
    with pytest.raises(ValueError, match=r"takes 1 x 2 axes, got 4: pass figure.subplots\(1, 2\)"):
        new_grid(given, 1, 2)


def test_matplotlib_waits_until_something_is_drawn():
    code = (
        "import sys, bayesknn.plots as plots\n"
        "plots.LeaveOneOutDisplay([0.2, 0.1])\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_matplotlib_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'bayesknn\[plot\]'"):
        bayesknn.plots.LeaveOneOutDisplay([0.2, 0.1]).plot()


def draw_maps_and_paths(name):
    x = np.linspace(0, 1, 5)
    second = np.tile(x, (5, 1))
    probabilities = np.dstack([1 - second, second])
    ZoneMapDisplay(x, x, probabilities, second > 0.5, ["a", name], [name, "b"]).plot()
    ColumnPathDisplay([name, "b"], [1.0, 2.0], [0.1, 0.1], 0.0, {name: (1.5, 0.1)}).plot()
    return [plt.figure(number) for number in plt.get_fignums()]


@pytest.mark.parametrize("name", ["\u82b1\u74e3", "a\u231a", "\U0001f41d\u0378"])
def test_names_in_any_script_are_drawn(name):
    # Where matplotlib does not bring a font of boxes, it says which letter no font has.
    there = [family for family in FONTS if family in fontManager.get_font_names()]
    paths = [findfont(FontProperties(family=[family])) for family in there]
    known = {letter for path in paths for letter in get_font(path).get_charmap()}
    has_all = {ord(letter) for letter in name} <= known
    figures = draw_maps_and_paths(name)
    assert len(figures) == 2
    for figure in figures:
        with nullcontext() if has_all else pytest.warns(UserWarning, match="Glyph .* missing"):
            figure.canvas.draw()
        shown = [text.get_text() for text in figure.findobj(Text)]
        assert any(name in text for text in shown)


def test_every_display_is_exported():
    assert len(bayesknn.plots.__all__) == 7
    assert all(hasattr(bayesknn.plots, name) for name in bayesknn.plots.__all__)
