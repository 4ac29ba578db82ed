"""Conformal prediction and calibration around the classifiers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayesknn.datasets import load_ripley

RIPLEY = load_ripley()
X, Y = RIPLEY.X_train, RIPLEY.y_train
NEW, TRUE = RIPLEY.X_test[::4], RIPLEY.y_test[::4]


@pytest.mark.client("mapie")
def test_mapie_split_conformal(clf):
    """``SplitConformalClassifier``: sets of classes that hold the true one."""
    from mapie.classification import SplitConformalClassifier

    sets = SplitConformalClassifier(clf, confidence_level=0.9, prefit=False, random_state=0)
    sets.fit(X[::2], Y[::2]).conformalize(X[1::2], Y[1::2])
    labels, members = sets.predict_set(NEW)
    assert set(labels) <= {0, 1}
    # 125 points calibrate, 250 are counted: .8 is four standard deviations below .9.
    assert members[np.arange(len(TRUE)), TRUE, 0].mean() > 0.8


@pytest.mark.client("mapie")
def test_mapie_cross_conformal(clf):
    """``CrossConformalClassifier`` clones and fits the classifier in folds."""
    from mapie.classification import CrossConformalClassifier

    sets = CrossConformalClassifier(clf, confidence_level=0.9, cv=3, random_state=0)
    sets.fit_conformalize(X[::2], Y[::2])
    members = sets.predict_set(NEW)[1]
    assert members[np.arange(len(TRUE)), TRUE, 0].mean() > 0.8


@pytest.mark.client("venn-abers")
def test_venn_abers(clf):
    """``VennAbersCalibrator``: calibrated probabilities with their interval p0, p1."""
    from venn_abers import VennAbersCalibrator

    calibrator = VennAbersCalibrator(clf, inductive=True, cal_size=0.3, random_state=0)
    calibrator.fit(X, Y)
    p, ends = calibrator.predict_proba(NEW, p0_p1_output=True)
    assert_allclose(p.sum(axis=1), 1)
    (ends,) = ends
    assert np.all(ends[:, 0] <= ends[:, 1] + 1e-12)


@pytest.mark.client("crepes")
def test_crepes(clf):
    """``WrapClassifier``: calibrated prediction sets and p-values."""
    from crepes import WrapClassifier

    wrapped = WrapClassifier(clf)
    wrapped.fit(X[::2], Y[::2])
    wrapped.calibrate(X[1::2], Y[1::2], seed=0)
    members = wrapped.predict_set(NEW, labels=False, confidence=0.9, seed=0)
    assert members[np.arange(len(TRUE)), TRUE].mean() > 0.8


@pytest.mark.client("betacal")
def test_betacal(clf):
    """``BetaCalibration`` of the leave-one-out probabilities, or of held-out ones."""
    from betacal import BetaCalibration

    clf.fit(X[::2], Y[::2])
    known = getattr(clf, "loo_proba_", None)
    p, y = (clf.predict_proba(X[1::2]), Y[1::2]) if known is None else (known, Y[::2])
    calibrated = BetaCalibration("abm").fit(p[:, 1].reshape(-1, 1), y)
    assert np.all(np.isfinite(calibrated.predict(clf.predict_proba(NEW)[:, 1])))


@pytest.mark.client("relplot")
def test_relplot(clf):
    """``smECE``, the smooth calibration error, of the predicted probabilities."""
    import relplot

    p = clf.fit(X, Y).predict_proba(NEW)[:, 1]
    assert 0 <= relplot.smECE(p, TRUE) < 0.2


@pytest.mark.client("arviz")
def test_arviz():
    """``summary`` of the draws of ``posterior_``; fits are compared by ``loo_log_score_``."""
    import arviz

    from bayesknn import BayesianKNeighborsClassifier

    clf = BayesianKNeighborsClassifier(random_state=0).fit(X, Y)
    table = arviz.summary(clf.posterior_, var_names=["beta", "k"])
    assert float(table["mean"]["beta"]) == pytest.approx(clf.beta_mean_, rel=0.05)
    # Its `loo` needs smooth importance weights: the labels have one probability in all draws.
    assert "log_likelihood" not in clf.posterior_.children
    assert np.isfinite(clf.loo_log_score_)
