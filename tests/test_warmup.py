"""`bayesknn.warmup`: what default fits use is compiled, and reported."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import bayesknn
from bayesknn.cli import main

# Default fits and predictions of other numbers of rows, columns and classes.
FITS = """
import numpy as np
from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier, warmup
from bayesknn._utils.jit import count_compiled
from bayesknn.datasets import load_glass, load_ripley
assert all(step.n_functions > 10 and step.seconds > 0 for step in warmup())
with count_compiled() as compiled:
    for data in (load_ripley(), load_glass()):
        for kind in (BayesianKNeighborsClassifier, PooledNeighborsClassifier):
            clf = kind(random_state=1).fit(data.X_train, data.y_train)
            clf.predict_interval(data.X_test), clf.predict_zone(data.X_test)
    X = np.random.default_rng(0).normal(size=(2_600, 4))
    clf = PooledNeighborsClassifier(random_state=1).fit(X, X[:, 0] > 0)
    clf.predict_interval(X[:1_000])
assert compiled.n_functions == 0, compiled.n_functions
print("done")
"""


@pytest.mark.slow  # Half a minute of compiling.
def test_after_a_warmup_default_fits_compile_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-W", "ignore", "-c", FITS]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.strip() == "done", run.stderr


def test_a_second_warmup_compiles_nothing_and_the_command_prints_it():
    first, second = bayesknn.warmup(), bayesknn.warmup()
    assert [step.what for step in first] == [step.what for step in second]
    assert all(step.n_functions == 0 and step.seconds == 0 for step in second)
    lines = CliRunner().invoke(main, ["warmup"]).output.splitlines()
    assert lines[:-1] == [f"{step.what}: all compiled before" for step in second]
    assert lines[-1].startswith("Kept in ")
    assert CliRunner().invoke(main, ["warmup", "--quiet"]).output == ""
