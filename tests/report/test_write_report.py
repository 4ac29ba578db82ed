"""The report from Python: both classifiers, arrays, frames, pipelines, and what it refuses."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn._utils.saving import fingerprint
from bayesknn.model import UniformPrior
from bayesknn.report import write_report
from bayesknn.report.fitted import analyse_fitted
from tests.browser import check_page
from tests.report.tables import mixed_table, two_columns

PSEUDO = BayesianKNeighborsClassifier("pseudo", max_neighbors=10, beta_max=4.0, random_state=0)
POOL = PooledNeighborsClassifier(random_state=0)


def test_arrays_and_test_rows(tmp_path, monkeypatch):
    # One other classifier will do; test_cli_fit compares with all.
    few = {"baseline: class frequencies": DummyClassifier(strategy="prior")}
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: few)
    table = two_columns(80)
    X, y = table[["x", "z"]].to_numpy(), table["y"].to_numpy()
    clf = PSEUDO.fit(X[:60], y[:60])
    path = write_report(clf, X[:60], y[:60], X[60:], y[60:], out=tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    for words in ("20 test rows", "ROC curve", "Comparison with other", "x1", "Posterior of k"):
        assert words in text
    check_page(path, 1400)


def test_checks_of_the_model_and_its_prior(tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"]
    clf = clone(PSEUDO).set_params(likelihood="coherent").fit(X, y)
    text = write_report(clf, X, y, out=tmp_path / "r.html", compare=False).read_text("utf-8")
    section = re.search(r'<section id="criticism">.*?</section>', text, re.DOTALL)[0]
    for words in (
        "Would another prior have changed the answer?",
        "class frequencies alone",
        "intervals contained the probability",
        "points of the largest class",
    ):
        assert words in section
    other = clf.reweight(UniformPrior(5, 4.0))
    assert f"{other.log_evidence_:.2f}" in section
    check_page(tmp_path / "r.html", 1400)
    # Chains, and a classifier that was saved, have no grid.
    saved = pickle.loads(pickle.dumps(clf))
    text = write_report(saved, X, y, out=tmp_path / "r.html", compare=False).read_text("utf-8")
    assert "criticism" not in text and "Posterior of k" in text


def test_a_pool_of_a_frame_with_categories(tmp_path):
    table = mixed_table()
    X, y = table.drop(columns="kind"), table["kind"]
    clf = POOL.fit(X, y)
    path = write_report(clf, X, y, out=str(tmp_path / "r.html"), compare=False)
    text = path.read_text(encoding="utf-8")
    assert "Members of the ensemble" in text and "Comparison with other" not in text
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


def test_a_class_prior_that_is_an_array(tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"]
    clf = clone(PSEUDO).set_params(class_prior=[0.25, 0.75]).fit(X, y)
    text = write_report(clf, X, y, out=tmp_path / "r.html", compare=False).read_text("utf-8")
    assert "0 25.0\xa0%, 1 75.0\xa0%" in text


@pytest.fixture
def one_other(monkeypatch):
    """One other classifier, one that looks at the columns."""
    few = {"logistic regression": LogisticRegression()}
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: few)


def test_arrays_with_holes_and_categories(tmp_path, one_other):
    """What the pool takes: numbers and text in one array, and what is missing of either."""
    y = np.arange(60) % 2
    x = np.random.default_rng(0).normal(size=60) + 3 * y
    holes = np.column_stack([np.where(np.arange(60) % 7, x, np.nan), x[::-1]])
    words = np.where(np.arange(60) % 9, np.where(y, "b", "a"), None)
    for X in (holes, np.column_stack([words, x[::-1]]), pd.DataFrame({"w": words, "x": x[::-1]})):
        clf = PooledNeighborsClassifier(["evidence"], random_state=0).fit(X, y)
        analysis = analyse_fitted(clf, X, y, X[:5], y[:5], compared=True)
        assert analysis.test.scores.n == 5
        # Either first column alone tells the classes apart, the second nothing.
        assert analysis.comparison.results["logistic regression"].scores.error < 0.25
    write_report(clf, X, y, out=tmp_path / "r.html", compare=False)


def test_categories_of_several_types_are_compared(one_other):
    y = np.arange(60) % 2
    X = pd.DataFrame({"w": ["a", 3] * 30, "x": np.arange(60) % 7})
    clf = PooledNeighborsClassifier(["evidence"], random_state=0).fit(X, y)
    analysis = analyse_fitted(clf, X, y, X, y, compared=True)
    assert analysis.preparer.kinds_ == {"w": "text", "x": "number"}
    assert analysis.comparison.results["logistic regression"].scores.error == 0
    assert analysis.test.scores.error == 0


def test_the_pipeline_of_the_report_is_compared_as_it_is(one_other):
    """It leaves out the column of large noise, which standardising would bring in."""
    y = np.arange(80) % 2
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80) + 4 * y, rng.normal(size=(80, 20))])
    model = make_pipeline(ColumnTransformer([("first", "passthrough", [0])]), PSEUDO).fit(X, y)
    found = analyse_fitted(model, X, y, compared=True).comparison
    wanted = cross_val_predict(
        model, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=0), method="predict_proba"
    )
    own = found.results[found.own].scores
    assert own.log_loss == pytest.approx(log_loss(y, wanted))
    # Nor are numbers standardised that the user's model takes as they are.
    X[:, 1:] *= 1000
    found = analyse_fitted(clone(PSEUDO).fit(X, y), X, y, compared=True).comparison
    assert found.results[found.own].scores.error > 0.2


class Jittered(TransformerMixin, BaseEstimator):
    """Centred columns; those of training with noise, as an encoder of categories has folds."""

    def fit(self, X, y=None):
        self.mean_ = np.asarray(X).mean(axis=0)
        return self

    def transform(self, X):
        return np.asarray(X) - self.mean_

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X) + 0.1 * np.random.default_rng(0).normal(size=X.shape)


def change_cell(X):
    other = X.copy()
    other.loc[17, "z"] += 1e-9
    return other


@pytest.mark.parametrize("change", [lambda X: X[::-1], change_cell, lambda X: X + 1.0])
@pytest.mark.parametrize(
    "steps",
    [(), (StandardScaler(),), (PCA(2),), (Jittered(),)],
    ids=["alone", "scaled", "rotated", "jittered"],
)
def test_other_rows_than_those_of_training_are_rejected(steps, change):
    """With the same labels, so that only X can show it."""
    table = two_columns(60)
    X, y = table[["x", "z"]], np.asarray(table["y"])
    model = make_pipeline(*steps, PSEUDO) if steps else PSEUDO
    model = clone(model).fit(X, y)
    assert len(analyse_fitted(model, X, y).training.rows) == 60
    given = change(X).reset_index(drop=True)
    with pytest.raises(ValueError, match="X is not what the model was fitted to, or in another"):
        analyse_fitted(model, given, y)


def test_every_row_of_a_large_table_is_compared():
    """All rows but each third differ, the first of 3,000 included among those that do not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), np.arange(3000) % 2
    other = X.copy()
    other[np.arange(3000) % 3 > 0] += 1.0
    frame = pd.DataFrame({"a": X[:, 0], "w": np.where(X[:, 1] > 0, "up", "down")})
    words = frame.assign(w=np.where(np.arange(3000) == 1001, "else", frame["w"]))
    for one, two in ((X, other), (frame, words), (csr_array(X), csr_array(other))):
        assert fingerprint(one, y) == fingerprint(one.copy(), y) != fingerprint(two, y)


def test_the_paper_keeps_its_name_in_a_sentence(tmp_path, monkeypatch):
    other = BayesianKNeighborsClassifier("holmes-adams", max_neighbors=8, random_state=0)
    name = "Bayesian kNN (Cucala et al. 2009), holmes-adams likelihood"
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: {name: other})
    table = two_columns(60)
    clf = clone(PSEUDO).fit(table[["x", "z"]], table["y"])
    text = write_report(clf, table[["x", "z"]], table["y"], out=tmp_path / "r.html").read_text()
    assert f"<p>{name}, the best other classifier, is" in text


def test_missing_values_in_a_pipeline_are_filled_by_it(tmp_path):
    """The classifier alone would fill them with the mean."""
    table = two_columns(60)
    X, y = table[["x", "z"]].copy(), table["y"]
    X.loc[3, "x"] = np.nan
    model = make_pipeline(SimpleImputer(strategy="median"), clone(PSEUDO)).fit(X, y)
    assert analyse_fitted(model, X, y).messages == [
        "column 'x' has no value in 1 row: filled in by the pipeline"
    ]
    alone = PooledNeighborsClassifier(["evidence"], random_state=0).fit(X, y)
    assert analyse_fitted(alone, X, y).messages == [
        "column 'x' has no value in 1 row: filled with its mean"
    ]


def test_distances_are_not_compared(tmp_path):
    table = two_columns(40)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    distances = np.abs(x[:, None] - x)
    clf = clone(PSEUDO).set_params(metric="precomputed").fit(distances, y)
    text = write_report(clf, distances, y, out=tmp_path / "r.html").read_text("utf-8")
    assert "Comparison with other" not in text


def test_classes_of_another_kind_are_not_scored_as_some_class():
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"].to_numpy()
    clf = clone(PSEUDO).fit(X, y)
    for strange in (y.astype(str), np.where(np.arange(60) == 3, 7, y)):
        with pytest.raises(ValueError, match="y is not what the model was fitted to"):
            analyse_fitted(clf, X, strange)
    clf = clone(PSEUDO).fit(X, y.astype(float))
    given = np.where(np.arange(60) == 3, 7, y).astype(float)
    actual = analyse_fitted(clf, X, y.astype(float), X, given).test.actual
    np.testing.assert_array_equal(actual, np.where(np.arange(60) == 3, -1, y))


def test_it_says_what_decided_means(tmp_path):
    table = two_columns(80)
    X, y = table[["x", "z"]], np.asarray(table["y"])
    path = write_report(PSEUDO.fit(X, y), X, y, out=tmp_path / "r.html", compare=False)
    text = path.read_text(encoding="utf-8")
    assert "are expected to be wrong, and" in text
    assert "Act on" not in text
