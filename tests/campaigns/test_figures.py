"""What CONTRIBUTING says of the campaigns is what they have found."""

import json
from collections import Counter

from campaigns.figures import FIGURES, PAGE, fill, tell
from campaigns.mutant_list import MUTANTS
from campaigns.mutants import ROOT


def test_contributing_tells_what_was_recorded():
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page, tell(known)) == page
    assert fill(page, ["- other figures"]) != page


def test_mutants_apply_once_and_their_tests_are_there():
    for name, n in Counter(mutant.name for mutant in MUTANTS).items():
        assert n == 1, name
    for mutant in MUTANTS:
        source = (ROOT / "src" / "bayesknn" / mutant.file).read_text(encoding="utf-8")
        assert source.count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new
        for test in mutant.tests:
            file, _, function = test.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not function or f"def {function.partition('[')[0]}(" in text, (
                f"{mutant.name}: {test}"
            )


def test_figures_are_of_mutants_that_are_there():
    mutants = json.loads(FIGURES.read_text(encoding="utf-8"))["mutants"]
    names = {mutant.name for mutant in MUTANTS}
    assert {*mutants["killed"], *mutants["survivors"]} <= names
