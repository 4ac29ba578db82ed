"""Who speaks at uncertain rows, and which columns matter, in both models."""

import numpy as np
import pytest

from bayesknn.report import analyse
from bayesknn.report.page import (
    list_contributions,
    list_influential,
    make_cases,
    make_importance,
    render_report,
)
from tests.report.tables import QUICK, draw_visits, mixed_table, two_columns

SETTINGS = {"pseudo": QUICK, "pooled": {"members": ("evidence", "discriminant"), "random_state": 0}}


def noisy_table(n, seed):
    """Return two classes that differ in one column of two, four standard deviations apart."""
    table = two_columns(n, seed)
    table["noise"] = np.random.default_rng(seed + 100).normal(size=n)
    return table.assign(x=table["x"] + 2.0 * table["y"])[["noise", "x", "y"]]


@pytest.fixture(scope="module", params=["pseudo", "pooled"])
def fitted(request):
    settings = SETTINGS[request.param]
    return {
        test: analyse(
            noisy_table(80, 0), "y", noisy_table(60, 1) if test else None,
            model=request.param, settings=settings,
        )
        for test in (False, True)
    }  # fmt: skip


@pytest.mark.parametrize("test", [False, True])
def test_those_who_speak_are_those_of_predict_influence(fitted, test):
    analysis = fitted[test]
    at = np.argsort(-analysis.predictions.expected_loss, kind="stable")[:8]
    points = analysis.model.preparer_.transform(analysis.predictions.frame)
    n = len(analysis.training.rows)
    rows, influence = analysis.classifier.predict_influence(points, n)
    found = list_influential(analysis, at, 3)
    assert len(found) == 8
    own_seen = 0
    for i, sides in zip(at, found, strict=True):
        shares = analysis.predictions.probabilities[i]
        assert [label for label, _, _ in sides] == [np.argmax(shares), np.argmin(shares)]
        for label, near, added in sides:
            wanted = [
                (j, value)
                for j, value in zip(rows[i], influence[i], strict=True)
                if j >= 0 and analysis.training.actual[j] == label and (test or j != i)
            ]
            assert wanted[:3] == list(zip(near, added, strict=True))
        own_seen += i in rows[i]
    if not test:
        # It would have spoken for itself: leaving it out is what keeps it away.
        assert own_seen == 8


def test_rows_of_its_group_do_not_speak_for_a_row_that_is_left_out_with_them():
    table = draw_visits()
    analysis = analyse(table, "y", group="patient", settings=QUICK)
    at, patients = np.arange(20), table["patient"].to_numpy()
    for i, sides in zip(at, list_influential(analysis, at, 150), strict=True):
        near = np.concatenate([rows for _, rows, _ in sides])
        assert len(near) and patients[i] not in patients[near]


@pytest.mark.parametrize("test", [False, True])
def test_a_column_that_tells_the_classes_apart_ranks_above_noise(fitted, test):
    found = make_importance(fitted[test])
    names, means, errors = zip(*found["columns"], strict=True)
    assert names == ("x", "noise")
    assert (found["on_test"], found["n_rows"]) == (test, 60 if test else 80)
    assert means[0] - means[1] > 5 * np.hypot(*errors)


def test_columns_are_those_of_the_table():
    table = mixed_table()
    analysis = analyse(table, "kind", settings=QUICK)
    names = [name for name, _, _ in make_importance(analysis)["columns"]]
    assert set(names) == {"length", "<b>width</b>", "town"}


def test_rows_of_no_known_class_are_not_judged_on():
    """A test row has a category and another a class that training did not see, one has none."""
    table = mixed_table()
    test = mixed_table(40, 1).astype({"kind": object, "town": object})
    test.loc[0, "town"], test.loc[1, "kind"], test.loc[2, "kind"] = "elsewhere", "new", None
    # All others are of two of the three classes.
    test = test[test["kind"] != "plain"].reset_index(drop=True)
    analysis = analyse(table, "kind", test, settings=QUICK)
    found = make_importance(analysis)
    assert found["on_test"]
    assert found["n_rows"] == np.isin(test["kind"], table["kind"]).sum()
    without = analyse(table, "kind", test.drop(columns="kind"), settings=QUICK)
    assert not make_importance(without)["on_test"]


@pytest.mark.parametrize("test", [False, True])
def test_as_many_rows_are_listed_as_are_misclassified_and_undecided(fitted, test):
    analysis = fitted[test]
    found = analysis.predictions
    wrong, undecided = found.winners != found.actual, found.zones < 0
    told = make_cases(analysis)
    assert (told["n_wrong"], told["n_undecided"]) == (wrong.sum(), undecided.sum())
    assert wrong.any() and undecided.any()
    for why, mine, order in (
        ("misclassified", wrong, found.expected_loss),
        ("undecided", undecided, -found.expected_loss),
    ):
        listed = [row["at"] for row in told["rows"] if row["why"] == why]
        wanted = np.flatnonzero(mine)
        assert listed == wanted[np.argsort(order[wanted], kind="stable")][:10].tolist()


def test_rows_are_numbered_as_in_their_file():
    """A row without a class is no training row, but counts."""
    table = noisy_table(80, 0)
    lacking = table.astype({"y": float})
    lacking.loc[0, "y"] = np.nan
    plain = analyse(table.drop(index=0), "y", settings=QUICK)
    shifted = analyse(lacking, "y", settings=QUICK)
    numbers = [
        [a.training.rows[r] for row in make_cases(a)["rows"]
         for _, near, _ in row["sides"] for r in near]
        for a in (plain, shifted)
    ]  # fmt: skip
    assert numbers[0]
    assert numbers[1] == [j + 1 for j in numbers[0]]


def test_very_many_columns_are_not_ranked():
    n = 61
    rng = np.random.default_rng(0)
    table = two_columns(30).join(
        type(two_columns())(rng.normal(size=(30, n)), columns=[f"c{j}" for j in range(n)])
    )
    analysis = analyse(table, "y", settings=QUICK)
    assert make_importance(analysis) is None
    page = render_report(analysis, source="t", command="", files={})
    assert f"are not computed: {n + 2} columns would take too long" in page


@pytest.mark.parametrize("kind", ["pseudo", "pooled"])
def test_effects_are_means_over_rows_with_one_value_in_a_column(kind):
    table = mixed_table()
    analysis = analyse(table, "kind", model=kind, settings=SETTINGS[kind])
    effects = [effect for effect, _ in make_importance(analysis)["effects"]]
    assert {effect.name: effect.is_number for effect in effects} == {
        "length": True, "<b>width</b>": True, "town": False,
    }  # fmt: skip
    n = len(table)
    rows = analysis.training.frame[list(analysis.preparer.kinds_)]
    rows = rows.iloc[np.random.default_rng(0).choice(n, effects[0].n_rows, replace=False)]
    for effect in effects:
        assert len(effect.values) == len(set(effect.values)) > 1
        for value, mean in zip(effect.values, effect.probabilities, strict=True):
            moved = rows.copy()
            moved[effect.name] = value
            moved[effect.name] = moved[effect.name].astype(
                float if effect.is_number else rows[effect.name].dtype
            )
            wanted = analysis.model.proba_of_measured(moved).mean(axis=0)
            np.testing.assert_allclose(mean, wanted, atol=1e-10)


@pytest.mark.parametrize("test", [False, True])
def test_the_column_that_matters_contributes_most_to_the_listed_rows(fitted, test):
    analysis = fitted[test]
    listed = list_contributions(analysis, np.arange(30))
    first = [each[0][0] for each in listed]
    assert first.count("x") > 20
    assert [len(each) for each in listed] == [2] * 30
