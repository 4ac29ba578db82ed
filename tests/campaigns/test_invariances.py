"""Tests of the invariances on a few cases each; `make invariances` draws thousands."""

import pytest

from campaigns.invariances.cases import FACTORS, cover
from campaigns.invariances.nothing import Noise, nothing_to_learn
from campaigns.invariances.registry import INVARIANCES
from campaigns.invariances.run import match_known, run, run_row, sum_up

# Number of rows of options that are tested for each invariance, 5 by default. More rows find more
# faults. A row takes about half a second, a row of "command" three seconds, a row of "refusal" much
# less.
N_ROWS = {"command": 2, "format": 21, "groups": 2, "report": 3, "refusal": 20, "prior range": 15}


@pytest.mark.parametrize("name", [name for name in INVARIANCES if name != "nothing to learn"])
def test_a_slice_holds(name):
    n_rows, n_comparisons = len(INVARIANCES[name].rows), 0
    for row in range(0, n_rows, n_rows // N_ROWS.get(name, 5)):
        outcome = run_row(name, row, n_cases=2, seed=0, shrink=False)
        assert outcome.fault == ""
        n_comparisons += outcome.n_comparisons
    assert n_comparisons > 0


@pytest.mark.parametrize(("classifier", "n_tables"), [("pooled", 16), ("pseudo", 6)])
def test_nothing_to_learn_from_few_tables(classifier, n_tables):
    """The test uses few tables of noise, and four times as many if their p-value is small."""
    case = Noise({"classifier": classifier, "sizes": "equal", "n_tables": n_tables}, 0)
    faults = [each for each in nothing_to_learn(case) if each.is_fault]
    assert [each for each in faults if match_known("nothing to learn", case, each) is None] == []


@pytest.mark.parametrize("kind", FACTORS)
def test_every_two_levels_of_two_factors_meet(kind):
    factors = FACTORS[kind]
    rows = cover(factors)
    for one in factors:
        for other in factors:
            pairs = {(row[one], row[other]) for row in rows}
            if one != other:
                assert len(pairs) == len(factors[one]) * len(factors[other])
    assert len(rows) < 30


def test_a_known_fault_that_no_longer_occurs_fails_the_run(monkeypatch):
    from campaigns.invariances import run
    from campaigns.invariances.known import Known

    monkeypatch.setattr(run, "KNOWN", (Known("units", "nothing", "a reason"),))
    assert run.sum_up([], ["units"])["faults"] == [
        "units: 'nothing' no longer fails: remove it from KNOWN"
    ]
    assert sum_up([], ["order"])["invariances"]["order"]["cases"] == 0


def test_a_run_of_refused_calls_ends(monkeypatch):
    """The process that makes the calls outlived its pool, which then waited for it for ever."""
    refusal = INVARIANCES["refusal"]
    monkeypatch.setitem(INVARIANCES, "refusal", refusal._replace(rows=refusal.rows[:2]))
    summary = run(n_cases=20, only="refusal", show=lambda line: None)
    assert summary["invariances"]["refusal"]["cases"] >= 2 and summary["faults"] == []
