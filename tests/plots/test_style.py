"""What all pictures share, and that importing them does not import matplotlib."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import bayesknn.plots
from bayesknn.plots.style import COLOURS, LINES, MARKERS, check_classes, new_axes, new_grid, tint


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


def test_more_classes_than_colours_are_refused():
    with pytest.raises(ValueError, match="9 classes, but only 8 colours"):
        check_classes(np.arange(9))


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


def test_every_display_is_exported():
    assert len(bayesknn.plots.__all__) == 10
    assert all(hasattr(bayesknn.plots, name) for name in bayesknn.plots.__all__)
