"""The report from Python: both classifiers, arrays, frames, pipelines, and what it refuses."""

import re

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.report import write_report
from tests.browser import check_page
from tests.report.tables import mixed_table, two_columns

PSEUDO = BayesianKNeighborsClassifier("pseudo", max_neighbors=10, beta_max=4.0, random_state=0)
POOL = PooledNeighborsClassifier(random_state=0)


def test_arrays_and_test_rows(tmp_path, monkeypatch):
    # One other classifier will do; test_cli_fit compares with all.
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr("bayesknn.report.comparison._list_candidates", lambda own: few)
    table = two_columns(80)
    X, y = table[["x", "z"]].to_numpy(), table["y"].to_numpy()
    clf = PSEUDO.fit(X[:60], y[:60])
    path = write_report(clf, X[:60], y[:60], X[60:], y[60:], out=tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    for words in ("20 test rows", "ROC curve", "Comparison with other", "x1", "Posterior of k"):
        assert words in text
    check_page(path, 1400)


def test_a_pool_of_a_frame_with_categories(tmp_path):
    table = mixed_table()
    X, y = table.drop(columns="kind"), table["kind"]
    clf = POOL.fit(X, y)
    path = write_report(clf, X, y, out=str(tmp_path / "r.html"), compare=False)
    text = path.read_text(encoding="utf-8")
    assert "Weights of the members" in text and "Comparison with other" not in text
    assert "Predicting kind from" in text
    share = float(re.search(r"they contribute ([\d.]+)\xa0% of the log odds", text)[1])
    assert share == pytest.approx(100 * clf.neighbor_share_, abs=0.5)
    assert 1 < share < 99


def test_a_pipeline(tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"].map({0: "low", 1: "high"})
    model = make_pipeline(StandardScaler(), PSEUDO).fit(X, y)
    path = write_report(model, X, y, out=tmp_path / "r.html", compare=False)
    assert "high" in path.read_text(encoding="utf-8")


def test_what_is_refused(tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"]
    with pytest.raises(ValueError, match="got a KNeighborsClassifier"):
        write_report(KNeighborsClassifier().fit(X, y), X, y, out=tmp_path / "r.html")
    with pytest.raises(NotFittedError):
        write_report(BayesianKNeighborsClassifier(), X, y, out=tmp_path / "r.html")
    with pytest.raises(ValueError, match="X has 60 rows and its classes are 59"):
        write_report(PSEUDO.fit(X, y), X, y[:-1], out=tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_it_says_what_decided_means(tmp_path):
    table = two_columns(80)
    X, y = table[["x", "z"]], np.asarray(table["y"])
    path = write_report(PSEUDO.fit(X, y), X, y, out=tmp_path / "r.html", compare=False)
    text = path.read_text(encoding="utf-8")
    assert "are expected to be wrong, and" in text
    assert "Act on" not in text
