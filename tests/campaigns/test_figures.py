"""What CONTRIBUTING says of the campaigns is what they have found."""

import json

import pytest

from campaigns.figures import FIGURES, PAGE, fill, tell
from campaigns.mutant_list import MUTANTS
from campaigns.mutants import ROOT


def test_contributing_tells_what_was_recorded():
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page, tell(known)) == page
    assert fill(page, ["- other figures"]) != page


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies_once_and_its_tests_are_there(mutant):
    source = (ROOT / "src" / "bayesknn" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert all((ROOT / test.split("::")[0]).is_file() for test in mutant.tests)


def test_figures_are_of_mutants_that_are_there():
    mutants = json.loads(FIGURES.read_text(encoding="utf-8"))["mutants"]
    names = {mutant.name for mutant in MUTANTS}
    assert mutants["listed"] == len(names)
    assert {*mutants["killed"], *mutants["survivors"]} <= names
