"""Tests of the figure of the posterior predictive check."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.criticism import Statistic
from bayesknn.plots import PredictiveCheckDisplay


def test_a_panel_for_each_statistic_with_its_tail_in_words(ripley):
    clf = BayesianKNeighborsClassifier(max_neighbors=30, beta_max=4.0, random_state=0)
    clf.fit(ripley.X_train, ripley.y_train)
    display = PredictiveCheckDisplay.from_estimator(clf, n_draws=50, random_state=0)
    for ax, (name, statistic) in zip(display.axes_.flat, display.statistics.items(), strict=True):
        assert ax.get_xlabel() == name
        assert ax.get_title(loc="left") == str(statistic)
        assert ax.lines[0].get_xdata()[0] == statistic.observed
        heights = [patch.get_height() for patch in ax.patches]
        assert sum(heights) == len(statistic.drawn) == 50


def test_given_axes_and_many_statistics():
    same = Statistic(3.0, np.full(20, 3.0))
    ax = Figure().subplots()
    assert PredictiveCheckDisplay({"one": same}).plot(axes=[ax]).axes_[0, 0] is ax
    many = PredictiveCheckDisplay({str(i): same for i in range(40)}).plot()
    assert sum(ax.axison for ax in many.axes_.flat) == 16
    with pytest.raises(ValueError, match="axes"):
        PredictiveCheckDisplay({"one": same, "two": same}).plot(axes=[ax])
