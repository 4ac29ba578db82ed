"""The script of docs/scaling.md: Parquet folders are read, fitted and predicted by blocks."""

import re
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from bayesknn import BayesianKNeighborsClassifier

# Dask's own use of pandas.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*inplace keyword in DataFrame")

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


@pytest.fixture
def script(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    train = pd.DataFrame(rng.normal(size=(600, 2)) + y[:, None], columns=["x", "z"])
    new = pd.DataFrame(rng.normal(size=(90, 2)), columns=["x", "z"])
    train["label"] = np.array(["a", "b"])[y]
    dd.from_pandas(train, npartitions=3).to_parquet(tmp_path / "train")
    dd.from_pandas(new, npartitions=2).to_parquet(tmp_path / "new")
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text().split("### Parquet folders")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    return code, train, new


def run(code):
    with dask.config.set(scheduler="synchronous"):
        exec(compile(code, "script", "exec"), {"__name__": "__main__"})


def test_the_script_writes_what_the_fit_in_memory_predicts(script):
    code, train, new = script
    run(code)
    clf = BayesianKNeighborsClassifier("pseudo", max_neighbors=50, random_state=0)
    clf.fit(train[["x", "z"]], train["label"])
    found = dd.read_parquet("predicted").compute(scheduler="synchronous")
    assert found.columns.tolist() == ["P(a)", "P(b)"]
    np.testing.assert_allclose(found, clf.predict_proba(new), atol=1e-10)
    assert len(list(Path("predicted").glob("*.parquet"))) == 2
    assert not Path("predicted.unfinished").exists()


def test_a_script_that_is_interrupted_leaves_no_folder_that_looks_complete(script):
    code = script[0].replace("clf.predict_proba(new)", "stop(clf.predict_proba(new))")

    def stop(array):
        return array.map_blocks(interrupt, dtype=float)

    def interrupt(block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), dask.config.set(scheduler="synchronous"):
        exec(compile(code, "script", "exec"), {"__name__": "__main__", "stop": stop})
    assert not Path("predicted").exists()
