"""The comparison with what users would pick instead: on which rows, and when there is none."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import comparison, plan_columns
from bayesknn.report.comparison import POOL, compare

N = 120
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
FRAME = pd.DataFrame({"x": RNG.normal(size=N) + 3 * Y, "z": RNG.normal(size=N), "y": Y})
PLAN = plan_columns(FRAME, "y")


def compared(labels=Y, rows=slice(None)):
    frame = FRAME[["x", "z"]].iloc[rows]
    return compare(frame, np.asarray(labels)[rows], PLAN, "pseudo", scale=True, seed=0)


def test_on_large_tables_some_rows_are_enough(monkeypatch):
    monkeypatch.setattr(comparison, "MAX_ROWS", 60)
    rows = np.random.default_rng(0).choice(N, 60, replace=False)
    some = compared()
    assert len(some.scores) == 5
    assert some.scores[POOL].error < 0.2
    # The same rows without a limit give the same scores.
    monkeypatch.undo()
    assert compared(rows=rows).scores[POOL] == some.scores[POOL]


@pytest.mark.parametrize("limit", [N, 60])
def test_classes_of_few_rows_are_not_compared(monkeypatch, limit):
    monkeypatch.setattr(comparison, "MAX_ROWS", limit)
    # Enough of the rare class in the table, none among the rows that are chosen.
    left_out = np.setdiff1d(np.arange(N), np.random.default_rng(0).choice(N, 60, replace=False))
    labels = np.zeros(N, int)
    labels[left_out[: comparison.MIN_CLASS - (limit == N)]] = 1
    assert compared(labels) is None
