"""The version in everything that is saved, and what is said of a newer one."""

import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import bayesknn
from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
)
from bayesknn.cli import main
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import PathTable, path_table
from bayesknn.posterior import load_posterior, save_posterior

NEWER = "999.0.1"
TOLD = r"was written by bayesknn 999\.0\.1, which is newer than this one \("
MODULES = ("_utils.saving", "posterior.trees", "log_z.table")


def data(n=40):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


@pytest.fixture
def by_newer(monkeypatch):
    """Return a function that calls another as a newer version would."""

    def call(function, *arguments, **options):
        with monkeypatch.context() as patch:
            for module in MODULES:
                patch.setattr(f"bayesknn.{module}.__version__", NEWER)
            return function(*arguments, **options)

    return call


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.1.0.dev0", "0.1.0"), ("0.1.0", "0.1.1"), ("0.9.9", "0.10.0"), ("0.1.0", "1.0.0rc1"),
        ("1.0.0rc1", "1.0.0"), ("0.1.0", "0.1.1.dev0"), ("0.1", "0.1.1"),
    ],
)  # fmt: skip
def test_versions_are_put_in_order(older, newer, monkeypatch):
    """What a newer version saved is warned of, and nothing else is."""
    version = "bayesknn._utils.saving.__version__"
    monkeypatch.setattr(version, newer)
    later = pickle.dumps(ClassicalKNeighborsClassifier())
    pickle.loads(later)
    monkeypatch.setattr(version, older)
    with pytest.warns(UserWarning, match=f"by bayesknn {newer}, which is newer than .*{older}"):
        pickle.loads(later)
    earlier = pickle.dumps(ClassicalKNeighborsClassifier())
    monkeypatch.setattr(version, newer)
    pickle.loads(earlier)


ESTIMATORS = [
    BayesianKNeighborsClassifier("pseudo", random_state=0),
    PooledNeighborsClassifier(members=("evidence",), random_state=0),
    ClassicalKNeighborsClassifier(3),
    ColumnSelector(by="loo"),
]


@pytest.mark.filterwarnings("ignore:no column says more")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_a_pickled_estimator_says_who_wrote_it(estimator, by_newer):
    X, y = data()
    estimator.fit(X, y)
    assert estimator.__getstate__()["_bayesknn_version"] == bayesknn.__version__
    same = pickle.loads(pickle.dumps(estimator))
    assert vars(same).keys() == vars(estimator).keys()
    later = by_newer(pickle.dumps, estimator)
    with pytest.warns(UserWarning, match=f"the {type(estimator).__name__} {TOLD}"):
        read = pickle.loads(later)
    method = "predict" if hasattr(estimator, "predict") else "transform"
    np.testing.assert_array_equal(getattr(read, method)(X), getattr(estimator, method)(X))


@pytest.mark.parametrize("saved_format", [None, 1_000_000])
def test_a_model_in_another_format_is_to_be_fitted_again(saved_format):
    X, y = data()
    state = ClassicalKNeighborsClassifier(3).fit(X, y).__getstate__()
    del state["_bayesknn_format"]
    if saved_format is not None:
        state["_bayesknn_format"] = saved_format
    with pytest.raises(ValueError, match=f"saved in format {saved_format or 0}, and this bayesknn"):
        ClassicalKNeighborsClassifier().__setstate__(state)


def test_what_a_newer_version_wrote_and_this_one_cannot_read_is_an_error():
    X, y = data()
    state = BayesianKNeighborsClassifier("pseudo", random_state=0).fit(X, y).__getstate__()
    state["graph_"]["bayesknn class"] = "GraphOfTheFuture"
    with pytest.raises(ValueError, match="'GraphOfTheFuture', which is not a class of bayesknn"):
        BayesianKNeighborsClassifier().__setstate__(state)
    state["_bayesknn_version"] = NEWER
    with pytest.raises(ValueError, match=TOLD + r".*\), and cannot be read: update bayesknn"):
        BayesianKNeighborsClassifier().__setstate__(state)


def test_a_posterior_says_who_wrote_it(tmp_path, by_newer):
    X, y = data()
    path = tmp_path / "posterior.nc"
    clf = by_newer(BayesianKNeighborsClassifier("pseudo", random_state=0).fit, X, y)
    save_posterior(clf.posterior_, path)
    with pytest.warns(UserWarning, match=f"the posterior .*{TOLD}"):
        assert load_posterior(path).identical(clf.posterior_)


def test_a_table_says_who_wrote_it(tmp_path, by_newer):
    graph = NeighborGraph.from_points(data(20)[0], k_max=2)
    table = path_table(graph, 2, beta_max=1.0, random_state=0)
    path = tmp_path / "table.npz"
    table.save(path)
    PathTable.load(path)
    by_newer(table.save, path)
    with pytest.warns(UserWarning, match=f"the table .*{TOLD}"):
        read = PathTable.load(path)
    np.testing.assert_array_equal(read.log_normalizers, table.log_normalizers)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {"format": np.array("bayesknn path table 2")})
    with pytest.raises(ValueError, match=TOLD + r".*\), and cannot be read"):
        PathTable.load(path)


def test_the_command_line_notes_a_newer_version(tmp_path, by_newer):
    X, y = data()
    table = tmp_path / "t.csv"
    rows = np.column_stack([X, y])
    np.savetxt(table, rows, ["%.6f", "%.6f", "%d"], ",", header="a,b,y", comments="")
    out = tmp_path / "out"
    words = ["fit", str(table), "--target", "y", "--out", str(out), "--no-compare", "--quiet"]
    made = by_newer(CliRunner().invoke, main, words)
    assert made.exit_code == 0, made.output
    words = ["predict", str(out), str(table), "--out", str(tmp_path / "p.csv")]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 0, found.output
    assert "note: the PooledNeighborsClassifier was written by bayesknn 999.0.1" in found.stderr
