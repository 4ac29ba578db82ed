"""Preparation of columns, and models that are read without being executed."""

import io
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bayesknn.report import TableModel, analyse, load_model, save_model
from bayesknn.tables.remarks import tell
from tests.report.tables import QUICK, mixed_table, plan_columns


def prepare(frame, **options):
    return plan_columns(frame, "kind", indicators=True, **options)


def test_independent_rows_are_as_far_apart_in_numbers_as_in_categories():
    frame = mixed_table(300)
    points = prepare(frame).transform(frame).to_numpy()
    assert points.shape == (300, 5)
    first, second = points[:, :1], points[:, 2:]
    assert np.mean((first - first.T) ** 2) == pytest.approx(2.0)
    apart = frame["town"].to_numpy()[:, None] != frame["town"].to_numpy()
    squared = ((second[:, None] - second) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, 2.0 * apart)


def test_numbers_as_they_are():
    frame = mixed_table()
    points = prepare(frame, scale=False).transform(frame).to_numpy()
    np.testing.assert_array_equal(points[:, 0], frame["length"])


def test_rare_and_unseen_categories_share_an_indicator():
    frame = mixed_table(2000, n_towns=1000)
    pipeline = prepare(frame)
    assert pipeline.transform(frame).shape == (2000, 2 + 20)
    rare = frame["town"].value_counts().index[-1]
    new = frame.iloc[[0, 0]].assign(town=[rare, "town of no one"])
    points = pipeline.transform(new).to_numpy()
    np.testing.assert_array_equal(points[0], points[1])


def test_missing_values_are_filled():
    frame = mixed_table()
    frame.loc[0, "length"] = np.nan
    frame.loc[1, "town"] = None
    points = prepare(frame, scale=False, impute=True).transform(frame).to_numpy()
    assert points[0, 0] == np.nanmedian(frame["length"])
    assert points.shape[1] == 2 + 4
    assert points[1, 2:].sum() == 1


@pytest.fixture(scope="module", params=["euclidean", "gower"])
def found(request):
    return analyse(mixed_table(), "kind", settings={**QUICK, "metric": request.param})


def test_a_model_comes_back_as_it_was(found, tmp_path):
    path = tmp_path / "model.skops"
    save_model(found.model, path)
    # With types that skops does not know, which load_model lists.
    name = "bayesknn.model_file.table_model.TableModel"
    assert skops.io.get_untrusted_types(file=path) == [name]
    for place in (path, str(path), tmp_path):
        model = load_model(place)
        kinds = {"length": "number", "<b>width</b>": "number", "town": "text"}
        assert (model.target_, model.preparer_.kinds_) == ("kind", kinds)
        assert model.preparer_.columns_ == found.model.preparer_.columns_
        assert model.preparer_.columns_["town"].kind.levels == ("town 0", "town 1", "town 2")
        assert model.preparer_.remarks_ == found.model.preparer_.remarks_
        new = mixed_table(20, seed=1)
        one, other = (each.predict_summary(new) for each in (model, found.model))
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        np.testing.assert_array_equal(one.intervals, other.intervals)
        np.testing.assert_array_equal(model.predict_proba(new), one.probabilities)


def test_the_model_of_the_command_is_that_of_python(found):
    frame = mixed_table()
    preparer = found.model.preparer
    model = TableModel(preparer, found.model.classifier)
    model.fit(frame.drop(columns="kind"), frame["kind"].rename("kind"))
    new = mixed_table(20, seed=1)
    np.testing.assert_allclose(
        model.predict_proba(new.iloc[:, ::-1]), found.model.predict_proba(new), atol=1e-8
    )


def test_indicators_may_be_called_as_other_columns_are():
    """Classifiers get a frame, whose columns need names of their own."""
    frame = mixed_table()
    frame["town_town 0"] = np.arange(len(frame)) % 7
    frame["town_town"] = np.array(["0", "1"])[np.arange(len(frame)) % 2]
    analysis = analyse(frame, "kind", settings=QUICK)
    assert len(analysis.classifier.feature_names_in_) == 3 + 3 + 2
    assert analysis.scores["leave-one-out"].error < 0.5


def test_saving_leaves_the_settings_of_the_model_alone(found, tmp_path):
    classifier = found.model.classifier_
    classifier.set_params(n_jobs=2, verbose=1)
    save_model(found.model, tmp_path / "model.skops")
    assert (classifier.n_jobs, classifier.verbose) == (2, 1)
    saved = load_model(tmp_path).classifier_
    assert (saved.n_jobs, saved.verbose) == (None, 0)


def test_unseen_categories_are_counted(found):
    """Few categories have no indicator in common, and Gower's distance has no indicators."""
    new = mixed_table(4, seed=1).assign(town=["town 0", "nowhere", "town 1", "somewhere"])
    plan = found.model.preparer_
    remarks = plan.examine(new, plan.measure(new))
    assert len(found.model.predict_proba(new)) == 4
    assert tell(remarks, "note") == [
        "column 'town' holds categories that training did not see in 2 rows, such as 'nowhere' and "
        "'somewhere': they count as none of the known ones"
    ]
    many = prepare(mixed_table(2000, n_towns=1000))
    (remark,) = many.examine(new, many.measure(new))
    assert remark.text.endswith("'somewhere': they count as rare ones")


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_is_refused_unread(tmp_path):
    path, trace = tmp_path / "model.skops", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Trap(trace)))
    with pytest.raises(ValueError, match=r"model.skops is not a model of bayesknn fit: "):
        load_model(path)
    assert not trace.exists()


def test_types_that_no_model_of_ours_has_are_refused_by_name(tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(make_pipeline(FunctionTransformer(pd.read_pickle)), path)
    with pytest.raises(ValueError, match=r"is refused: it holds pandas.*read_pickle"):
        load_model(path)


def other_classifier():
    """Fit a model like ours, with a classifier of scikit-learn's in it."""
    frame = mixed_table()
    return TableModel(classifier=LogisticRegression()).fit(
        frame.drop(columns="kind"), frame["kind"].to_numpy(dtype=object)
    )


@pytest.mark.parametrize(
    "thing", [LogisticRegression(), {"a": 1}, make_pipeline(None), other_classifier()]
)
def test_harmless_things_that_are_not_models(tmp_path, thing):
    path = tmp_path / "model.skops"
    skops.io.dump(thing, path)
    with pytest.raises(ValueError, match="is refused: it (does not hold a model that|holds sk)"):
        load_model(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("member", ["schema.json", "array"])
def test_a_padded_member_is_refused_unread(found, tmp_path, monkeypatch, member, compression):
    path = tmp_path / "model.skops"
    save_model(found.model, path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in contents if (name == member) == (member == "schema.json"))
    contents[name] += b" " * 60_000_000
    with zipfile.ZipFile(path, "w", compression) as archive:
        for each, content in contents.items():
            archive.writestr(each, content)
    monkeypatch.setattr("skops.io.load", lambda *_, **__: pytest.fail("read"))
    monkeypatch.setattr("skops.io.get_untrusted_types", lambda **_: pytest.fail("read"))
    with pytest.raises(ValueError, match="model.skops is refused: it"):
        load_model(path)


def test_damaged_files(found, tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(ValueError, match="there is no model at"):
        load_model(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is not a model of bayesknn fit"):
        load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ValueError, match="is refused: it does not hold a model") as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_a_model_that_was_changed_is_refused(found, tmp_path, monkeypatch):
    """Compiled code trusts the arrays: an empty one in a tree once read beyond its end."""
    path = tmp_path / "model.skops"
    save_model(found.model, path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
        seal = archive.comment
    empty = io.BytesIO()
    np.save(empty, np.empty(0))
    contents[next(name for name in contents if name.endswith(".npy"))] = empty.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = seal
        for name, content in contents.items():
            archive.writestr(name, content)
    monkeypatch.setattr("skops.io.load", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(ValueError, match="is refused: it does not hold a model .* damaged since"):
        load_model(path)


def test_a_model_that_fills_in_values_comes_back(tmp_path):
    frame = mixed_table()
    frame.loc[3, "length"], frame.loc[5, "town"] = np.nan, None
    path = tmp_path / "model.skops"
    save_model(analyse(frame, "kind", impute=True, settings=QUICK).model, path)
    assert load_model(path).preparer_.encoder_.impute


def test_a_model_that_cannot_be_sealed_is_not_emptied(found, tmp_path, monkeypatch):
    """Where it cannot open a file to append to it, zipfile begins an empty one in its place."""
    openly = io.open

    def refuse(file, mode="r", *args, **options):
        if mode == "r+b":
            raise OSError("No space left on device")
        return openly(file, mode, *args, **options)

    monkeypatch.setattr("io.open", refuse)
    save_model(found.model, tmp_path / "model.skops")
    load_model(tmp_path / "model.skops")
