"""The README's Python runs as it stands, and its numbers are those that come out."""

import importlib
import re
from pathlib import Path

import pytest

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.predictive import log_score

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_ten_lines_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line]) <= 10
    exec(compile(blocks[0], "README.md", "exec"), {})
    first, *_, undecided = capsys.readouterr().out.splitlines()
    # What the comments in the README say.
    right, said = re.search(r"# ([\d.]+) right", README)[1], re.search(r"# ([\d.]+) of the", README)
    assert abs(float(first.split()[0]) - float(right)) < 0.01
    assert abs(float(undecided) - float(said[1])) < 0.02


@pytest.mark.parametrize(
    "likelihood, claim", [("coherent", 0.258), ("pseudo", 0.224), ("holmes-adams", 0.215)]
)
def test_the_log_losses_are_those_measured(likelihood, claim):
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier(likelihood, random_state=0)
    clf.fit(ripley.X_train, ripley.y_train)
    loss = -log_score(clf.predict_proba(ripley.X_test), ripley.y_test)
    # The coherent one has a Monte Carlo error.
    assert abs(loss - claim) < (0.002 if likelihood == "coherent" else 0.0006)
    assert f"{claim:.3f}".removeprefix("0") in README


def test_the_log_loss_of_the_pool_is_that_measured():
    ripley = load_ripley()
    pool = PooledNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
    assert abs(-log_score(pool.predict_proba(ripley.X_test), ripley.y_test) - 0.2238) < 0.001
    assert ".224 for\nthe pool" in README


def test_the_comparison_is_that_measured(monkeypatch):
    """As ``python docs/measure readme`` writes it from what the benchmarks left."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "docs" / "measure"))
    prediction = importlib.import_module("prediction")
    assert prediction.write_case(prediction.read()) in README


def test_files_that_are_linked_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
