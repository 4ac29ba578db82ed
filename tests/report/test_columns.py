"""What columns are taken for, and the lines that refuse what cannot be used."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import plan_columns
from bayesknn.report.columns import check_new_rows, find_column, split_target

N = 40
Y = np.arange(N) % 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)


def table(**columns):
    return pd.DataFrame({**columns, "y": Y})


def test_numbers_words_and_what_says_nothing():
    frame = table(
        x=X,
        town=["a", "b"] * (N // 2),
        unit="cm",
        empty=np.full(N, np.nan),
        counter=np.arange(5, 5 + N),
        patient_id=RNG.permutation(1000)[:N],
        name=[f"person {i}" for i in range(N)],
    )
    plan = plan_columns(frame, "y")
    assert (plan.numeric, plan.categorical) == (["x"], ["town"])
    assert {name: reason.split(" (")[0] for name, reason in plan.dropped.items()} == {
        "unit": "it has the same value in every row",
        "empty": "it has no value in any row",
        "counter": "it counts the rows",
        "patient_id": "it is called an identifier and is different in every row",
        "name": "every row has a word of its own, so it names rows",
    }
    assert len(plan.messages) == 5
    assert plan.messages[0] == "column 'unit' is left out: it has the same value in every row"


def test_the_user_knows_better():
    frame = table(x=X, counter=np.arange(N), code=np.arange(N) % 4)
    frame["code"] = frame["code"].astype(str).astype("str")
    plan = plan_columns(frame, "y", keep=["counter"], drop=["x"], categorical=["code"])
    assert (plan.numeric, plan.categorical) == (["counter"], ["code"])
    assert plan.messages == []  # what was asked for need not be told


def test_a_thousand_categories_are_told():
    towns = [f"town {i % 1000}" for i in range(3000)]
    frame = pd.DataFrame({"x": RNG.normal(size=3000), "town": towns, "y": np.arange(3000) % 2})
    plan = plan_columns(frame, "y")
    assert plan.categorical == ["town"]
    assert plan.messages == [
        "column 'town' has 1,000 categories: the 19 most common ones keep an indicator of their "
        "own, the others share one"
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            np.where(np.arange(N) == 3, np.nan, X),
            r"has no value in 1 of 40 rows \(first in row 3\)",
        ),
        (np.where(np.arange(N) == 3, np.inf, X), "holds inf in row 3, too large to measure"),
        (np.where(np.arange(N) == 3, -1e200, X), "holds -1e[+]200 in row 3, too large"),
        (["?" if i == 3 else str(i) for i in range(N)], r"in 1 row, words such as '\?'"),
        (pd.date_range("2020", periods=N), "neither numbers nor categories: pass --drop 'a'"),
        ([[1]] * N, "neither numbers nor categories"),
        (X + 1j, "neither numbers nor categories"),
    ],
)
def test_columns_that_are_refused(column, message):
    with pytest.raises(ValueError, match=message) as error:
        plan_columns(table(a=column, x=X), "y")
    assert "column 'a'" in str(error.value)
    assert "\n" not in str(error.value)
    assert plan_columns(table(a=column, x=X), "y", drop=["a"]).used == ["x"]


def test_missing_values_pass_if_they_will_be_filled():
    frame = table(a=np.where(np.arange(N) == 3, np.nan, X))
    assert plan_columns(frame, "y", impute=True).numeric == ["a"]


def test_nothing_left_to_classify_by():
    with pytest.raises(ValueError, match="no column is left to classify by: 'u': it has the same"):
        plan_columns(table(u=1), "y")
    with pytest.raises(ValueError, match="no column is left to classify by: there is no other"):
        plan_columns(table(), "y")


def test_the_target_is_no_feature():
    with pytest.raises(ValueError, match="'y' is the target"):
        plan_columns(table(x=X), "y", drop=["y"])


def test_a_column_that_is_not_there_is_guessed():
    frame = pd.DataFrame({"species": [1], "length": [2]})
    with pytest.raises(ValueError, match="no column 'Species'; did you mean 'species'?"):
        find_column(frame, "Species")
    with pytest.raises(ValueError, match="no column 'LENGTH'; did you mean 'length'?"):
        find_column(frame, "LENGTH")
    with pytest.raises(ValueError, match="no column 'zzz'. The columns are 'species', 'length'"):
        find_column(frame, "zzz")


def test_axes_are_two_numeric_columns():
    plan = plan_columns(table(x=X, z=X[::-1], town=["a", "b"] * (N // 2)), "y")
    plan.check_axes(("x", "z"))
    with pytest.raises(ValueError, match="'town' is not a numeric column .* 'x', 'z'"):
        plan.check_axes(("x", "town"))
    with pytest.raises(ValueError, match="two different columns"):
        plan.check_axes(("x", "x"))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
        (["b", "a", "b", "a"], ["b", "a", "b", "a"]),
        (["1", "x", "1", "x"], ["1", "x", "1", "x"]),
    ],
)
def test_classes_are_whole_numbers_or_words(target, expected):
    rows, classes, without = split_target(pd.DataFrame({"y": target}), "y")
    assert classes.tolist() == expected
    assert rows.index.tolist() == [1, 2, 3, 4]
    assert without == []


def test_rows_without_a_class_keep_their_numbers():
    rows, classes, without = split_target(pd.DataFrame({"y": ["a", None, "a", None]}), "y")
    assert (rows.index.tolist(), classes.tolist(), without) == ([1, 3], ["a", "a"], [2, 4])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.5, 2.0, 1.5, 2.0], "holds 1.5: it measures something"),
        ([np.inf, 1.0, 1.0, 1.0], "holds inf: it measures something"),
        (np.arange(100), "has 100 different values in 100 rows"),
        ([None, None], "has no value in any row"),
        (["a", "b", "c"], "is different in every row"),
        (["a", "a", "b"], r"the class 'b' of 'y' has one row; every class needs two \(1 such"),
        (pd.date_range("2020", periods=4), "names no classes"),
    ],
)
def test_targets_that_name_no_classes(target, message):
    with pytest.raises(ValueError, match=message):
        split_target(pd.DataFrame({"y": target}), "y")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0, 2.0]}, "there is no column 'town'"),
        ({"x": ["a", "b"], "town": ["u", "v"]}, "held numbers in training; here it holds 'a'"),
        ({"x": ["1", "?"], "town": ["u", "v"]}, r"here it holds '\?' in row 2"),
        ({"x": [1.0, None], "town": ["u", "v"]}, "'x' has no value in 1 of 2 rows"),
        ({"x": [1.0, 2.0], "town": ["u", None]}, "'town' has no value in 1 of 2 rows"),
        ({"x": [1.0, np.inf], "town": ["u", "v"]}, "'x' holds inf in row 2"),
    ],
)
def test_new_rows_that_do_not_fit(columns, message):
    frame = pd.DataFrame(columns, index=[1, 2])
    with pytest.raises(ValueError, match=message):
        check_new_rows(frame, ["x"], ["town"])


def test_new_rows_that_fit_may_have_more_columns():
    frame = pd.DataFrame({"more": [None], "x": [1], "town": ["u"]}, index=[1])
    check_new_rows(frame, ["x"], ["town"])
