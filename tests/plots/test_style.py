"""Tests of colours, axes and fonts of all figures, and of the late import of matplotlib."""

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
from bayesknn.plots import (
    ColumnPathDisplay,
    DecisionRegionDisplay,
    LeaveOneOutDisplay,
    ZoneMapDisplay,
)


def draw_classes(n_classes):
    """Draw a map with a vertical stripe and a point for each class; return its axes."""
    x, classes = np.arange(n_classes), np.arange(n_classes)
    winners = np.tile(classes, (2, 1))
    display = DecisionRegionDisplay(x, [0, 1], winners, classes)
    return display.plot(np.column_stack([x, x]), classes).ax_


def test_every_class_has_a_marker_and_a_colour_of_its_own():
    lines = [line for line in draw_classes(8).lines if line.get_label().startswith("class")]
    assert len({line.get_marker() for line in lines}) == 8
    colours = [to_rgb(line.get_color()) for line in lines]
    assert len(set(colours)) == 8
    # The first two colours differ in lightness, so that they can be distinguished in grey.
    assert abs(np.dot(colours[0], [0.3, 0.6, 0.1]) - np.dot(colours[1], [0.3, 0.6, 0.1])) > 0.2


def test_regions_have_the_colours_of_their_points_mixed_with_white():
    ax = draw_classes(3)
    shades = np.asarray(ax.images[0].get_array())[0]
    for line, shade in zip(ax.lines[-3:], shades, strict=True):
        strength = (1 - shade[:3]) / (1 - np.array(to_rgb(line.get_color())))
        assert 0.1 < strength.min() and np.ptp(strength) < 0.02


def test_a_figure_uses_given_axes_or_makes_new_ones():
    display = LeaveOneOutDisplay([0.2, 0.1]).plot()
    assert display.ax_ in display.figure_.axes
    ax = Figure().subplots()
    assert display.plot(ax=ax).ax_ is ax and display.figure_ is ax.figure


def test_more_classes_than_colours_raise():
    with pytest.raises(ValueError, match="at most 8 classes, got 9"):
        draw_classes(9)


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


def letters_of(text):
    """Return the code points that at least one font of a text contains."""
    families = set(text.get_fontfamily()) & set(fontManager.get_font_names())
    assert len(families) > 1, "there are fonts to fall back on"
    paths = [findfont(FontProperties(family=[family])) for family in families]
    return {letter for path in paths for letter in get_font(path).get_charmap()}


@pytest.mark.parametrize("name", ["\u82b1\u74e3", "a\u231a", "\U0001f41d\u0378"])
def test_names_in_any_script_are_drawn(name):
    # If a letter is in none of the fonts, matplotlib must warn about it.
    figures = draw_maps_and_paths(name)
    assert len(figures) == 2
    for figure in figures:
        texts = [text for text in figure.findobj(Text) if name in text.get_text()]
        has_all = all(letters_of(text) >= {ord(letter) for letter in name} for text in texts)
        with nullcontext() if has_all else pytest.warns(UserWarning, match="Glyph .* missing"):
            figure.canvas.draw()
        assert texts


def test_every_display_is_exported():
    assert len(bayesknn.plots.__all__) == 8
    assert all(hasattr(bayesknn.plots, name) for name in bayesknn.plots.__all__)
