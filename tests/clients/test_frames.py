"""Tables of others: in, out, and by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

NAMES = ["xs", "ys"]


def make(package, X):
    if package == "pandas":
        return pd.DataFrame(X, columns=NAMES)
    columns = dict(zip(NAMES, np.ascontiguousarray(X.T), strict=True))
    if package == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    import pyarrow as pa

    return pa.table(columns)


@pytest.mark.client("polars")
def test_polars(clf, ripley):
    """Frames and series in fit, predict and the contributions of columns, without a warning."""
    check_frames(clf, ripley, "polars")


@pytest.mark.client("pyarrow")
def test_pyarrow(clf, ripley):
    """Tables and arrays in fit, predict and the contributions of columns, without a warning."""
    check_frames(clf, ripley, "pyarrow")


def check_frames(clf, ripley, package):
    X, y, new, _ = ripley
    expected = clf.fit(X, y).predict_proba(new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.fit(make(package, X), y)
        assert clf.feature_names_in_.tolist() == NAMES
        assert_array_equal(clf.predict_proba(make(package, new)), expected)
        parts = clf.predict_contributions(make(package, new[:2]), background=make(package, X))
    assert_array_equal(parts, clf.predict_contributions(make("pandas", new[:2]), make("pandas", X)))


@pytest.mark.client("pyarrow")
@pytest.mark.parametrize("labels", [["no", "yes"], [False, True]], ids=["text", "booleans"])
def test_pyarrow_labels(clf, ripley, labels):
    """``pa.array`` of text or booleans as labels."""
    import pyarrow as pa

    X, y, new, _ = ripley
    words = [labels[each] for each in y]
    assert_array_equal(clf.fit(X, pa.array(words)).predict(new), clf.fit(X, words).predict(new))


@pytest.mark.client("pyarrow")
def test_pyarrow_record_batch(clf, ripley):
    """Columns of a ``pa.RecordBatch`` in another order are refused, as those of a table are."""
    import pyarrow as pa

    X, y, new, _ = ripley
    batch = pa.RecordBatch.from_arrays([pa.array(c) for c in X.T], names=NAMES)
    other = pa.RecordBatch.from_arrays([pa.array(c) for c in new.T[::-1]], names=NAMES[::-1])
    clf.fit(batch, y)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(other)


@pytest.mark.client("narwhals")
def test_narwhals(clf, ripley):
    """A frame that narwhals made native again."""
    import narwhals as nw

    X, y, new, _ = ripley
    frames = [nw.from_native(make("polars", part)).select(*NAMES).to_native() for part in (X, new)]
    assert_array_equal(clf.fit(frames[0], y).predict_proba(frames[1]),
                       clf.fit(X, y).predict_proba(new))  # fmt: skip


@pytest.mark.client("dask")
def test_dask(clf, ripley):
    """Predictions of Dask arrays are Dask arrays, block by block."""
    import dask.array as da

    X, y, new, _ = ripley
    found = clf.fit(X, y).predict_proba(da.from_array(new, chunks=(10, 2)))
    assert isinstance(found, da.Array)
    assert_array_equal(found.compute(), clf.predict_proba(new))


@pytest.mark.client("dask-ml")
def test_dask_ml(clf, ripley):
    """``ParallelPostFit`` predicts a Dask array block by block."""
    import dask.array as da
    from dask_ml.wrappers import ParallelPostFit

    X, y, new, _ = ripley
    wrapped = ParallelPostFit(clf).fit(X, y)
    found = wrapped.predict_proba(da.from_array(new, chunks=(10, 2)))
    assert_array_equal(found.compute(), clf.fit(X, y).predict_proba(new))


@pytest.mark.client("skrub")
def test_skrub(clf, ripley):
    """``tabular_pipeline`` around the classifier, on numbers, text and dates."""
    from skrub import tabular_pipeline

    X, y, _, _ = ripley
    frame = pd.DataFrame(X, columns=NAMES).assign(
        colour=np.where(X[:, 0] > 0, "red", "blue"),
        day=pd.date_range("2026-01-01", periods=len(X)),
    )
    assert tabular_pipeline(clf).fit(frame, y).score(frame, y) > 0.8


@pytest.mark.client("category-encoders")
def test_category_encoders(clf, ripley):
    """``TargetEncoder`` before the classifier in a pipeline."""
    from category_encoders import TargetEncoder
    from sklearn.pipeline import make_pipeline

    X, y, _, _ = ripley
    frame = pd.DataFrame({"side": np.where(X[:, 0] > 0, "r", "l"), "ys": X[:, 1]})
    assert make_pipeline(TargetEncoder(), clf).fit(frame, y).score(frame, y) > 0.7


@pytest.mark.client("feature-engine")
def test_feature_engine(clf, ripley):
    """``Winsorizer`` before the classifier in a pipeline."""
    from feature_engine.outliers import Winsorizer
    from sklearn.pipeline import make_pipeline

    X, y, _, _ = ripley
    frame = pd.DataFrame(X, columns=NAMES)
    assert make_pipeline(Winsorizer(), clf).fit(frame, y).score(frame, y) > 0.8
