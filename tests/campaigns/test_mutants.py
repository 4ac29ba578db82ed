"""Test that every listed mutant applies to the source and that its tests exist."""

from collections import Counter

from campaigns.mutant_list import MUTANTS
from campaigns.mutants import ROOT


def test_mutants_apply_once_and_their_tests_exist():
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
