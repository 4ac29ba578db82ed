"""Without the extras: the classifiers work, and what needs an extra names it in one sentence."""

import subprocess
import sys
import textwrap
from importlib.metadata import requires

import pytest

# What a plain `pip install bayesknn` brings, with what that needs in turn.
CORE = {"numpy", "scipy", "numba", "scikit-learn", "joblib"}
BLOCKED = (
    "arviz_base", "arviz_stats", "xarray", "xarray_einstats", "h5netcdf", "h5py", "click", "rich",
    "matplotlib", "pandas", "pyarrow", "polars", "jinja2", "markupsafe", "skops", "dask",
    "distributed", "openpyxl",
)  # fmt: skip
BLOCK = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
DATA = """
import numpy as np
from bayesknn import BayesianKNeighborsClassifier
rng = np.random.default_rng(0)
y = np.arange(60) % 2
X = rng.normal(size=(60, 2)) + y[:, None]
"""


def run(code):
    code = BLOCK + DATA + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_the_core_needs_five_packages():
    core = [line for line in requires("bayesknn") if "extra ==" not in line]
    assert {line.split(">")[0].strip() for line in core} == CORE


def test_the_classifiers_work_without_any_extra():
    ran = run(
        """
        import pickle
        from bayesknn import (
            ClassicalKNeighborsClassifier, ColumnSelector, PooledNeighborsClassifier,
        )
        from bayesknn.datasets import load_ripley
        from bayesknn.labels import sample_labels
        from bayesknn.posterior import grid_posterior
        load_ripley()
        clf = BayesianKNeighborsClassifier(random_state=0, max_neighbors=9, verbose=1).fit(X, y)
        other = pickle.loads(pickle.dumps(clf))
        assert (other.predict_proba(X) == clf.predict_proba(X)).all()
        assert clf.predict_interval(X).shape == (60, 2, 2)
        assert len(clf.predict_zone(X)) == len(clf.predict_typicality(X)) == 60
        assert clf.loo_proba_.shape == (60, 2) and clf.k_probabilities_.sum() > 0.99
        assert len(clf.sample_labels(X, n_draws=3)) == 3
        assert sample_labels(clf.graph_, 1.0, 3, 2, n_draws=1, random_state=0).shape == (1, 60)
        pool = PooledNeighborsClassifier(members=("evidence",), random_state=0).fit(X, y)
        assert pool.predict_interval(X).shape == (60, 2, 2)
        assert ClassicalKNeighborsClassifier(3).fit(X, y).predict(X).shape == (60,)
        ColumnSelector(by="loo").fit(X, y).transform(X)
        print("done")
        """
    )
    assert ran.stdout == "done\n", ran.stderr


NEEDS = {
    "clf.posterior_": "posterior",
    "clf.set_params(likelihood='coherent', inference='exchange').fit(X, y)": "posterior",
    "clf.set_params(inference='metropolis', n_draws=10**9).fit(X, y)": "posterior",
    "bayesknn.posterior.load_posterior('none.nc')": "posterior",
    "bayesknn.plots.PosteriorDisplay.from_estimator(clf)": "p(osterior|lot)",
    "bayesknn.plots.DecisionRegionDisplay.from_estimator(clf, X, y)": "plot",
    "bayesknn.datasets.load_pima(as_frame=True)": "report",
    "bayesknn.model_file.saved.load_model('.')": "persist",
    "bayesknn.report.read_table": "report",
    "bayesknn.distributed.DistributedNeighborsClassifier().fit(X, y)": "distributed",
}


@pytest.fixture(scope="module")
def answers():
    """Return the error of every statement, from one process without the extras."""
    ran = run(
        f"""
        import bayesknn, bayesknn.distributed, bayesknn.plots, bayesknn.model_file.saved
        from sklearn.base import clone
        fitted = BayesianKNeighborsClassifier(likelihood="pseudo", random_state=0).fit(X, y)
        for statement in {list(NEEDS)!r}:
            clf = fitted if "set_params" not in statement else clone(fitted)
            try:
                eval(statement)
                print("no error")
            except Exception as error:
                print(type(error).__name__, error)
        """
    )
    assert ran.returncode == 0, ran.stderr
    return dict(zip(NEEDS, ran.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("statement", NEEDS)
def test_a_missing_extra_is_named(answers, statement):
    from re import fullmatch

    pattern = rf"ModuleNotFoundError .* needs? .*pip install 'bayesknn\[{NEEDS[statement]}\]'"
    assert fullmatch(pattern, answers[statement]), answers[statement]


def test_the_command_without_click_names_the_extra():
    ran = run("from bayesknn.__main__ import main; main()")
    assert ran.returncode == 1
    assert ran.stderr == (
        "Error: the command line needs click, which is not installed: pip install 'bayesknn[cli]'\n"
    )


def test_the_module_runs_the_command():
    ran = subprocess.run(
        [sys.executable, "-m", "bayesknn", "--version"], capture_output=True, text=True, check=False
    )
    assert ran.stdout.startswith("bayesknn, version ")
