"""The README's Python runs as it stands, and its numbers are those that come out."""

import importlib
import re
from pathlib import Path

import pytest

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.datasets import load_ripley
from bayesknn.predictive import log_score

README = (Path(__file__).parent.parent / "README.md").read_text()


BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)


def test_every_block_of_python_shows_its_output():
    assert len(BLOCKS) == README.count("```python") == 2


@pytest.mark.parametrize(("code", "shown"), BLOCKS, ids=("paper", "table"))
def test_python_prints_what_is_shown(code, shown, capsys):
    """The same text; numbers to a unit of the last decimal, counts of test points to three."""
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = re.compile(r"\d+(?:\.(\d+))?")
    assert number.sub("#", printed) == number.sub("#", shown)
    for ours, theirs in zip(number.finditer(printed), number.finditer(shown), strict=True):
        digits = len(theirs[1] or "")
        allowed = 1.001 * 10**-digits if digits else 3
        assert abs(float(ours[0]) - float(theirs[0])) <= allowed, theirs[0]


@pytest.mark.parametrize(
    ("likelihood", "claim"), [("coherent", 0.258), ("pseudo", 0.224), ("holmes-adams", 0.215)]
)
def test_the_log_losses_are_those_measured(likelihood, claim):
    ripley = load_ripley()
    clf = BayesianKNeighborsClassifier(likelihood, random_state=0)
    clf.fit(ripley.X_train, ripley.y_train)
    loss = -log_score(clf.predict_proba(ripley.X_test), ripley.y_test)
    # The coherent one has a Monte Carlo error.
    assert abs(loss - claim) < (0.002 if likelihood == "coherent" else 0.0006)
    assert f"{claim:.3f}".removeprefix("0") in README


def test_measured_passages_are_those_of_the_kept_measurements(monkeypatch):
    """As ``python docs/measure readme`` writes them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "docs" / "measure"))
    assert importlib.import_module("readme").fill(README) == README


def test_the_paper_comes_first():
    first, second = README.index("BayesianKNeighborsClassifier"), README.index("bayesknn fit")
    assert README.index("Cucala") < first < second < README.index("the *pool*")


def test_files_that_are_linked_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
