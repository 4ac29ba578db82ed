"""Among rows decided at level .95 the named class is truly the likeliest for 95 % or more."""

import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from tests.graph.titanic import TITANIC, expand_titanic
from tests.sureness.laws import draw

LEVEL = 0.95
MODELS = {
    "pseudo": BayesianKNeighborsClassifier("pseudo", random_state=0),
    "coherent": BayesianKNeighborsClassifier(random_state=0),
    "pool": PooledNeighborsClassifier(random_state=0),
}


def draw_titanic(n, seed, m=400):
    """Draw people with replacement, and whether they survive by the table's frequencies."""
    kinds = expand_titanic()[0]
    chances = np.repeat([b / (a + b) for a, b in TITANIC.values()], np.sum([*TITANIC.values()], 1))
    rng = np.random.default_rng([seed, n])
    rows = rng.integers(len(kinds), size=n + m)
    labels = (rng.random(n) < chances[rows[:n]]).astype(int)
    new = rows[n:]
    return kinds[rows[:n]], labels, kinds[new], np.column_stack([1 - chances[new], chances[new]])


def judge(model, law, n, seeds, of="probability"):
    """Count the rows that are decided, and those of them where the class is not the likeliest."""
    n_decided = n_wrong = 0
    for seed in seeds:
        X, y, new, truth = (draw_titanic(n, seed) if law == "titanic" else draw(law, n, seed))[:4]
        zones = MODELS[model].fit(X, y).predict_zone(new, LEVEL, uncertain=-1, of=of)
        decided = zones != -1
        named = np.where(decided, zones, 0).astype(int)
        is_best = truth[np.arange(len(new)), named] > truth.max(axis=1) - 1e-9
        n_decided += np.sum(decided)
        n_wrong += np.sum(decided & ~is_best)
    return n_decided, n_wrong


def check(model, laws, n, seeds):
    for law in laws:
        n_decided, n_wrong = judge(model, law, n, seeds)
        # A rule that never decides would be right, too.
        assert n_decided > 0
        assert n_wrong <= (1 - LEVEL) * n_decided, (law, n_decided, n_wrong)


@pytest.mark.parametrize("model", ["pseudo", "pool"])
def test_decided_rows_are_right_about_the_likeliest_class(model):
    check(model, ["ripley", "xor", "mix6", "titanic"], 250, range(2))


def test_the_paper_s_rule_does_not_hold_it():
    """Intervals of parameters: on classes of different spread every third named class is wrong."""
    n_decided, n_wrong = judge("pseudo", "spread10", 120, range(2), of="parameters")
    assert n_wrong > 0.15 * n_decided


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 250])
@pytest.mark.parametrize("model", MODELS)
def test_decided_rows_are_right_on_more_laws(model, n):
    check(model, ["ripley", "sine1", "xor", "mix6", "titanic"], n, range(6))
