"""A pool with a model of another package as one more member: weights, groups, saving, loading."""

import numpy as np
import pandas as pd
import pytest

from bayesknn import PooledNeighborsClassifier
from bayesknn.model_file.saved import load_model, save_model
from bayesknn.model_file.table_model import TableModel


@pytest.mark.client("lightgbm")
def test_lightgbm_is_a_member(tmp_path):
    """A classifier of its own as a member of the pool: weights, groups, saving and loading."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    frame = pd.DataFrame(X, columns=list("abcd"))
    estimator = lightgbm.LGBMClassifier(n_estimators=20, min_child_samples=5, n_jobs=1, verbose=-1)
    clf = PooledNeighborsClassifier(("discriminant", ("gbm", estimator)), random_state=0)
    plain = clf.fit(frame, y).predict_proba(frame)[:, 1].mean()
    weights, groups = np.where(y == "same", 5.0, 1.0), np.repeat(np.arange(50), 3)
    assert clf.fit(frame, y, weights).predict_proba(frame)[:, 1].mean() > plain + 0.05
    assert np.isfinite(clf.fit(frame, y, groups=groups).loo_proba_).all()
    model = TableModel(classifier=clf).fit(frame, y)
    save_model(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="LGBMClassifier") as error:
        load_model(tmp_path / "m.skops")
    types = str(error.value).partition("it holds ")[2].partition(", a type")[0].split(", ")
    loaded = load_model(tmp_path / "m.skops", trusted=types)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
