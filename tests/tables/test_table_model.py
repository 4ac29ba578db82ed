"""One model for the command, Python and saved files."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.model_file.predictions import predict_new
from bayesknn.report import (
    TableModel,
    TablePreparer,
    load_model,
    read_table,
    save_model,
    write_report,
)
from bayesknn.report.fitted import analyse_fitted
from bayesknn.tables.table import as_table
from tests.report.tables import mixed_table, run, two_columns

ROBUST = PooledNeighborsClassifier(("evidence", "additive"), n_folds=3, random_state=0)
PSEUDO = BayesianKNeighborsClassifier(
    "pseudo", max_neighbors=8, beta_max=4.0, n_draws=50, random_state=0
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fit a table with dates, commas, words and gaps by the command."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    table = mixed_table(60)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 60), "D")
    table.insert(0, "day", days.strftime("%d.%m.%Y"))
    table["length"] = [f"{1000 * v:,.2f}" for v in table["length"]]
    table.to_csv(folder / "train.csv", index=False)
    table.iloc[::-5].to_csv(folder / "new.csv", index=False)
    words = ("--target", "kind", "--out", folder / "out", "--no-compare")
    result = run("fit", folder / "train.csv", *words)
    assert result.exit_code == 0, result.output
    return folder


def test_the_command_and_python_give_the_same_numbers(folder):
    loaded = load_model(str(folder / "out"))
    X, y, _ = read_table(folder / "train.csv").split("kind")
    model = TableModel(TablePreparer(), PooledNeighborsClassifier(random_state=0)).fit(X, y)
    new = pd.read_csv(folder / "new.csv", dtype=str)
    wanted = loaded.predict_proba(new)
    np.testing.assert_allclose(model.predict_proba(new), wanted, atol=1e-8)
    np.testing.assert_allclose(
        model.predict_interval(read_table(folder / "new.csv")), loaded.predict_interval(new),
        atol=1e-8,
    )  # fmt: skip
    told = run("predict", folder / "out", folder / "new.csv")
    printed = pd.read_csv(io.StringIO(told.stdout))
    mine = model.predict_table(folder / "new.csv").round(6)
    pd.testing.assert_frame_equal(mine, printed, check_dtype=False, atol=2e-6)
    # One row alone, and columns in another order.
    np.testing.assert_allclose(model.predict_proba(new[1:2][new.columns[::-1]]), wanted[1:2])


@pytest.mark.parametrize("classifier", [ROBUST, PSEUDO])
def test_every_prediction_is_forwarded(classifier):
    table = two_columns(60).assign(town=["a", "b", "c"] * 20)
    X, y = table.drop(columns="y"), table["y"]
    model = TableModel(classifier=classifier).fit(X, y)
    points = model.preparer_.transform(X)
    for name in (
        "predict", "predict_proba", "predict_log_proba", "predict_interval", "predict_zone",
        "predict_typicality", "predict_counts",
    ):  # fmt: skip
        wanted = getattr(model.classifier_, name)(points)
        np.testing.assert_array_equal(getattr(model, name)(X), wanted, err_msg=name)
    assert model.predict_contributions(X[:3], X).shape == (3, 3)
    assert hasattr(model, "sample_labels") == hasattr(classifier, "sample_labels")
    assert model.score(X, y) == model.classifier_.score(points, y)
    assert model.target_ == "y"


def test_one_warning_a_call_names_what_differs():
    table = two_columns(60).assign(town=["a", "b", "c"] * 20)
    X = table.drop(columns="y")
    model = TableModel(classifier=ROBUST).fit(X, table["y"])
    with pytest.warns(UserWarning, match="training") as caught:
        model.predict_proba(X.assign(town="z", x=99.0))
    (warning,) = caught
    assert "'x' holds values outside the range of training" in str(warning.message)
    assert "'town' holds categories that training did not see" in str(warning.message)


def test_a_file_is_warned_of_as_by_the_command(folder, tmp_path):
    new = pd.read_csv(folder / "new.csv", dtype=str)
    new.assign(day="01.01.2000").to_csv(tmp_path / "new.csv", index=False)
    told = run("predict", folder / "out", tmp_path / "new.csv", "--json")
    with pytest.warns(UserWarning, match="'day' holds values outside the range") as caught:
        load_model(folder / "out").predict_table(tmp_path / "new.csv")
    assert str(caught[0].message) == "; ".join(json.loads(told.stdout)["warnings"])


def test_a_feature_called_as_the_classes_are_is_not_scored_by(tmp_path):
    """Unnamed classes are called "class": new rows were scored by the feature of that name."""
    table = two_columns(60).rename(columns={"z": "class"})
    X, y = table[["x", "class"]], table["y"].to_numpy()
    model = TableModel(classifier=PSEUDO).fit(X[:50], y[:50])
    assert model.target_ == "class_"
    X.to_csv(tmp_path / "new.csv", index=False)
    assert "actual" not in model.predict_table(tmp_path / "new.csv")


@pytest.mark.parametrize("classifier", [ROBUST, PSEUDO])
def test_categories_that_training_did_not_see_are_warned_of_once(classifier):
    """By the preparer, which hands on what it knows: the classifier is silent."""
    table = two_columns(60).assign(town=["a", "b", "c"] * 20)
    if classifier is PSEUDO:
        classifier = clone(PSEUDO).set_params(metric="gower")
    model = TableModel(classifier=classifier).fit(table[["x", "town"]], table["y"])
    with pytest.warns(UserWarning, match="'town' holds categories") as caught:
        model.predict_proba(table[["x"]].assign(town="z"))
    assert len(caught) == 1


@pytest.mark.parametrize("classifier", [ROBUST, TableModel(classifier=ROBUST)])
def test_a_report_warns_on_its_page(classifier, tmp_path, recwarn):
    table = two_columns(60).assign(town=["a", "b", "c"] * 20)
    X, y = table[["x", "town"]], table["y"]
    model = clone(classifier).fit(X, y)
    path = write_report(model, X, y, X.assign(town="z"), y, out=tmp_path / "r.html", compare=False)
    assert "holds categories that training did not see in 60 rows" in path.read_text("utf-8")
    assert not recwarn.list


def test_classes_without_a_value_are_rejected(tmp_path):
    table = two_columns(30)
    y = np.array(table["y"].tolist(), dtype=object)
    model = TableModel(classifier=PSEUDO).fit(table[["x"]], y)
    with pytest.raises(ValueError, match="y is None"):
        write_report(model, table[["x"]], None, out=tmp_path / "r.html")
    y[3] = None
    with pytest.raises(ValueError, match="y "):
        model.fit(table[["x"]], y)


@pytest.mark.parametrize("classifier", [ROBUST, PSEUDO])
def test_a_report_of_a_table_model(classifier, tmp_path):
    """Of the cells as they were read, with the remarks and the numbers of the command."""
    table = two_columns(60).assign(day=pd.date_range("2024-01-01", periods=60).strftime("%d.%m.%Y"))
    X, y = table[["day", "x"]], table["y"]
    model = TableModel(classifier=classifier).fit(X[:50], y[:50])
    analysis = analyse_fitted(model, X[:50], y[:50], X[50:], y[50:])
    test = analysis.test.probabilities
    with pytest.warns(UserWarning, match="'day' holds values outside"):
        np.testing.assert_allclose(test, model.predict_proba(X[50:]))
    assert analysis.scores["test"].n == 10
    codes = [each.code for each in analysis.remarks]
    assert codes[: len(model.preparer_.remarks_)] == [r.code for r in model.preparer_.remarks_]
    assert "column-shifted" in codes
    page = write_report(
        model, X[:50], y[:50], X[50:], y[50:], out=tmp_path / "r.html", compare=False
    )
    text = page.read_text(encoding="utf-8")
    for words in ("10 test rows", "day", "outside the range of training"):
        assert words in text
    with pytest.raises(ValueError, match="is not what the model was fitted to"):
        write_report(model, X[1:51], y[:50], out=tmp_path / "r.html")


def test_a_file_of_an_earlier_format_is_to_be_fitted_again(folder, tmp_path):
    import zipfile

    from bayesknn.model_file.schema import seal

    schema = {"__class__": "Model", "__module__": "bayesknn.report.model"}
    schema |= {"__loader__": "ObjectNode", "content": {}, "__id__": 1}
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
        archive.comment = seal(archive)
    with pytest.raises(ValueError, match="format 2.* fit it again"):
        load_model(path)


def test_weights_of_rows(tmp_path):
    table = two_columns(60).assign(w=np.linspace(0.5, 2.0, 60)[::-1] ** 2)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "y", "--no-compare", "--out", tmp_path / "out")
    result = run(*words, "--weights", "w", "--quiet")
    assert result.exit_code == 0, result.output
    clf = load_model(tmp_path / "out").classifier_
    X, y = table[["x", "z"]], table["y"]
    wanted = PooledNeighborsClassifier(random_state=0).fit(X, y, sample_weight=table["w"])
    np.testing.assert_allclose(clf.loo_proba_, wanted.loo_proba_, atol=1e-8)
    refused = run(*words, "--weights", "w", "--model", "pseudo", "--force")
    assert (
        refused.exit_code == 2 and "--weights is an option of the default model" in refused.stderr
    )


def test_words_for_a_missing_value_are_no_class_and_no_group_of_new_rows(tmp_path):
    table = two_columns(60).assign(g=[f"g{i}" for i in np.arange(60) // 4])
    preparer = TablePreparer(missing=["?"], group="g")
    model = TableModel(preparer, PSEUDO).fit(table.drop(columns="y"), table["y"])
    new = table[:10].astype(str)
    new.loc[[2, 3], "y"] = new.loc[[4, 5, 6], "g"] = "?"
    new.to_csv(tmp_path / "new.csv", index=False)
    predictions = predict_new(model, read_table(tmp_path / "new.csv"), 0.95)
    np.testing.assert_array_equal(np.flatnonzero(predictions.actual < 0), [2, 3])
    assert predictions.scores.n == 8
    assert predictions.n_groups == 6
    frame = model.predict_table(tmp_path / "new.csv")
    assert frame["actual"].tolist() == np.where(new["y"] == "?", "", new["y"]).tolist()


@pytest.mark.parametrize("names", ["abcd", ["1", "2", "30", "40"]])
def test_new_rows_of_merged_classes_are_of_the_class_that_they_became(names, tmp_path):
    table = two_columns(62).assign(y=[*names[:2] * 30, *names[2:]])
    new = table[50:].assign(y=[*table["y"][51:], "z"])
    for name, rows in (("train", table), ("new", new)):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    X, y, _ = read_table(tmp_path / "train.csv").split("y", "merge")
    save_model(TableModel(classifier=PSEUDO).fit(X, y), tmp_path / "model.skops")
    model = load_model(tmp_path / "model.skops")
    predictions = predict_new(model, read_table(tmp_path / "new.csv"), 0.95)
    wanted = [*new["y"].replace(dict.fromkeys(names[2:], "other"))]
    assert predictions.actual_names.tolist() == wanted
    indices = {name: g for g, name in enumerate(predictions.names)}
    assert predictions.actual.tolist() == [indices.get(name, -1) for name in wanted]
    assert (predictions.actual == -1).sum() == 1


def test_columns_of_groups_and_weights_are_those_of_the_fit():
    table = two_columns(60).assign(
        g=[f"g{i}" for i in np.arange(60) // 4], w=np.linspace(0.5, 2.0, 60)[::-1] ** 2
    )
    X, y = table.drop(columns="y"), table["y"]
    model = TableModel(TablePreparer(group="g", weights="w"), ROBUST).fit(X, y)
    given = TableModel(TablePreparer(drop=["g", "w"]), ROBUST)
    given.fit(X, y, groups=table["g"], sample_weight=table["w"])
    np.testing.assert_array_equal(model.classifier_.groups_, given.classifier_.groups_)
    np.testing.assert_array_equal(model.classifier_.loo_proba_, given.classifier_.loo_proba_)
    # An argument has precedence over the column.
    equal = model.fit(X, y, groups=table["g"], sample_weight=np.ones(60)).classifier_.loo_proba_
    assert np.abs(equal - given.classifier_.loo_proba_).max() > 1e-6
    with pytest.raises(ValueError, match="'g' has no value in 1 row"):
        model.fit(X.assign(g=X["g"].where(X["g"].index != 3)), y)


def test_new_rows_are_scored_without_the_column_of_weights():
    table = two_columns(80).assign(w=np.linspace(0.5, 2.0, 80) ** 2)
    X, y = table[:60].drop(columns="y"), table["y"][:60]
    model = TableModel(TablePreparer(weights="w"), ROBUST).fit(X, y)
    weighted, plain = (
        predict_new(model, as_table(new), 0.95)
        for new in (table[60:], table[60:].drop(columns="w"))
    )
    assert weighted.scores == plain.scores
    told = " ".join(run("fit", "--help").stdout.split())
    assert "their rows are scored without it" in told


@pytest.mark.parametrize(
    ("option", "message"),
    [("--group", "'town' has no value in 2 rows"), ("--weights", "'town' holds no numbers")],
)
def test_a_check_reads_groups_and_weights_as_a_fit_does(option, message, tmp_path):
    table = two_columns(60).assign(town=[None, None, *"ab" * 29])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "--target", "y", option, "town")
    checked, fitted = run("check", *words), run("fit", *words, "--out", tmp_path / "out")
    assert checked.exit_code == 2 and message in checked.stderr
    assert checked.stderr == fitted.stderr


def test_a_threshold_decides_between_two_classes(tmp_path):
    table = two_columns(60)
    model = TableModel(classifier=ROBUST).fit(table[["x", "z"]], table["y"].rename("y"))
    save_model(model, tmp_path / "model.skops")
    table.to_csv(tmp_path / "t.csv", index=False)
    told = run("predict", tmp_path, tmp_path / "t.csv", "--threshold", "1=0.2").stdout
    frame = pd.read_csv(io.StringIO(told))
    assert (frame["decision"] == (frame["probability 1"] >= 0.2)).all()
    assert (frame["decision"] != frame["class"]).any()
    for option, message in (("2=0.2", "there is no class '2'"), ("x", "CLASS=P")):
        refused = run("predict", tmp_path, tmp_path / "t.csv", "--threshold", option)
        assert refused.exit_code == 2 and message in refused.stderr
